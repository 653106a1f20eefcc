package resource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// ConversionError reports that an object could not be converted to another version.
type ConversionError struct {
	Resource meta.GroupResource
	Key      meta.Key
	From, To string // apiVersions
	Err      error
}

// Error implements error.
func (e *ConversionError) Error() string {
	return fmt.Sprintf("%s %q of version %s cannot be converted to %s: %v", e.Resource, e.Key.Name, e.From, e.To, e.Err)
}

// Unwrap returns the error of the conversion function.
func (e *ConversionError) Unwrap() error { return e.Err }

// Stack returns the stack trace if the conversion function panicked, else nil. A panic is a bug of
// the function, not a property of the object, so the server logs it.
func (e *ConversionError) Stack() []byte {
	if p := (*conversionPanic)(nil); errors.As(e.Err, &p) {
		return p.stack
	}
	return nil
}

var errUnknownVersion = errors.New("unknown version")

// Converts reports whether conversion functions between the versions and a hub exist. Without them,
// versions differ only in their schemas, or Converter converts.
func (t *Type) Converts() bool { return t.converts }

// Working returns the version in which objects are processed during a write: the hub if the type
// has conversions, else v.
func (v *Version) Working() *Version {
	if v.converts {
		return v.Hub
	}
	return v
}

// ItemVersion returns the version in which a request for subresource s reads and writes the object:
// Working if the subresource has a body of its own, else v. s may be nil.
func (v *Version) ItemVersion(s *Subresource) *Version {
	if s != nil && s.Body != nil {
		return v.Working()
	}
	return v
}

// ColumnsVersion returns the version of the objects that the columns read: the hub if v converts and
// declares no columns, else v.
func (v *Version) ColumnsVersion() *Version { return v.columns }

// NeedsConverter reports whether an object of apiVersion must go through the Converter to be shown in v.
func (v *Version) NeedsConverter(apiVersion string) bool {
	return v.Converter != nil && apiVersion != v.GVK().APIVersion()
}

// ConvertIfNeeded returns obj if it is of version v already, and its conversion to v otherwise. Unlike Convert,
// it does not prune or default an object of version v.
func (v *Version) ConvertIfNeeded(ctx context.Context, obj *meta.Object) (*meta.Object, error) {
	if obj.APIVersion() == v.GVK().APIVersion() {
		return obj, nil
	}
	return v.Convert(ctx, obj)
}

// Convert converts one object, see ConvertAll.
func (v *Version) Convert(ctx context.Context, obj *meta.Object) (*meta.Object, error) {
	out, err := v.ConvertAll(ctx, obj)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// ConvertAll converts objects of any versions of the kind to v. It does not modify objs; a result
// may be the same object or share its metadata.
//
// An object of a custom kind is first read in its own version: fields that the schema of that
// version lacks are dropped, and its defaults are filled in, because the definition may have
// changed since the object was written. If the defaults exceed the size limit, none is filled in.
// After the conversion, fields that the schema of v lacks are dropped, but the defaults of v are
// not filled in: a field that the conversion removed stays absent. The error is a *ConversionError
// or the error of the Converter.
func (v *Version) ConvertAll(ctx context.Context, objs ...*meta.Object) ([]*meta.Object, error) {
	if !v.converts {
		return v.convertDefined(ctx, objs)
	}
	out, err := v.callConverter(ctx, objs)
	if err != nil {
		return nil, err
	}
	for i, obj := range out {
		if out[i], err = v.convertObject(obj); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// convertDefined implements ConvertAll for types without conversion functions.
func (v *Version) convertDefined(ctx context.Context, objs []*meta.Object) ([]*meta.Object, error) {
	read := make([]*meta.Object, len(objs))
	for i, obj := range objs {
		from := v.ByAPIVersion(obj.APIVersion())
		if from == nil {
			from = v
			if v.Converter != nil {
				read[i] = obj // the Converter knows versions that the definition no longer has
				continue
			}
		}
		read[i] = from.readStored(obj)
	}
	out, err := v.callConverter(ctx, read)
	if err != nil {
		return nil, err
	}
	for i, obj := range out {
		if read[i].APIVersion() != v.GVK().APIVersion() {
			out[i] = v.pruned(obj)
		}
	}
	return out, nil
}

// callConverter returns a copy of objs in which the objects that need the Converter are converted.
// Objects that consist of nothing but apiVersion and kind are not sent.
func (v *Version) callConverter(ctx context.Context, objs []*meta.Object) ([]*meta.Object, error) {
	out := slices.Clone(objs)
	var about []int
	var questions []*meta.Object
	for i, obj := range objs {
		if v.NeedsConverter(obj.APIVersion()) && !isEmpty(obj) {
			about, questions = append(about, i), append(questions, obj)
		}
	}
	if len(about) == 0 {
		return out, nil
	}
	answers, err := v.Converter.Convert(ctx, questions, v)
	if err != nil {
		return nil, err
	}
	for i, at := range about {
		out[at] = answers[i]
	}
	return out, nil
}

// isEmpty reports whether an object has no fields but apiVersion and kind.
func isEmpty(obj *meta.Object) bool {
	for field := range obj.Tree() {
		if field != "apiVersion" && field != "kind" {
			return false
		}
	}
	return true
}

// convertObject converts an object by the conversion functions of the type.
func (v *Version) convertObject(obj *meta.Object) (*meta.Object, error) {
	apiVersion := obj.APIVersion()
	if apiVersion == v.GVK().APIVersion() {
		return obj, nil
	}
	tree, err := v.convert(apiVersion, obj.Tree())
	if err != nil {
		key := meta.Key{Namespace: obj.Namespace(), Name: obj.Name()}
		return nil, &ConversionError{Resource: v.GroupResource(), Key: key, From: apiVersion, To: v.GVK().APIVersion(), Err: err}
	}
	return meta.NewObject(v.withTypeAndMetadata(tree, tree["metadata"])), nil
}

// withAnnotations returns a copy of metadata in which the annotations in names are replaced by the
// entries of values. names without a value are removed.
func withAnnotations(metadata any, names []string, values map[string]any) any {
	was, _ := metadata.(map[string]any)
	annotations := map[string]any{}
	if before, ok := was["annotations"].(map[string]any); ok {
		maps.Copy(annotations, before)
	}
	for _, name := range names {
		delete(annotations, name)
	}
	maps.Copy(annotations, values)
	out := map[string]any{}
	maps.Copy(out, was)
	if out["annotations"] = annotations; len(annotations) == 0 {
		delete(out, "annotations")
	}
	return out
}

// convert converts a tree of apiVersion to the hub, and from there to v.
func (v *Version) convert(apiVersion string, tree map[string]any) (_ map[string]any, err error) {
	from := v.ByAPIVersion(apiVersion)
	if from == nil {
		return nil, errUnknownVersion
	}
	if c := from.conversion; c != nil {
		if tree, err = convertStep(c.ToHub, tree, c); err != nil {
			return nil, err
		}
	}
	if c := v.conversion; c != nil {
		return convertStep(c.FromHub, tree, c)
	}
	return tree, nil
}

// convertStep runs a conversion to or from the hub. The result gets the metadata of tree, except
// the annotations that the conversion declares, which it may set itself.
func convertStep(convert func(map[string]any) (map[string]any, error), tree map[string]any, c *registry.Conversion) (map[string]any, error) {
	out, err := recoverPanic(convert, tree)
	if err != nil {
		return nil, err
	}
	metadata := tree["metadata"]
	if names := slices.Concat(c.Annotations, c.HubAnnotations); len(names) > 0 {
		metadata = withAnnotations(metadata, names, meta.NewObject(out).Map("metadata", "annotations"))
	}
	out = maps.Clone(out)
	if out["metadata"] = metadata; metadata == nil {
		delete(out, "metadata")
	}
	return out, nil
}

// recoverPanic runs a conversion and returns a panic as an error. Conversions are code of the
// program and run in goroutines in which a panic would end the process.
func recoverPanic(convert func(map[string]any) (map[string]any, error), tree map[string]any) (_ map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &conversionPanic{p, debug.Stack()}
		}
	}()
	return convert(tree)
}

// conversionPanic is the error of a conversion function that panicked.
type conversionPanic struct {
	value any
	stack []byte
}

func (p *conversionPanic) Error() string { return fmt.Sprintf("the conversion panicked: %v", p.value) }

// withTypeAndMetadata returns a shallow copy of tree with the apiVersion and kind of v and the
// given metadata; nil removes the metadata.
func (v *Version) withTypeAndMetadata(tree map[string]any, metadata any) map[string]any {
	out := maps.Clone(tree)
	out["apiVersion"], out["kind"] = v.GVK().APIVersion(), v.Kind
	delete(out, "metadata")
	if metadata != nil {
		out["metadata"] = metadata
	}
	return out
}

// FillIn fills the defaults of v into sent, an object that a client sent. shown is the stored
// object as v shows it, or nil on create. If applied is true, the defaults are those of a
// server-side apply.
//
// If shown is not nil, FillIn returns the base of the three-way merge: shown with the same
// defaults, except for fields that the client sent itself. So a default that the server filled in
// is no change, whereas a value that the client sent is a change even if it equals the default.
func (v *Version) FillIn(ctx context.Context, sent, shown *meta.Object, subresource string, applied bool) (base *meta.Object, err error) {
	original, defaults := sent, v.Defaults
	if applied {
		defaults = v.AppliedDefaults
	}
	if shown != nil {
		original = sent.Clone()
	}
	if err := defaults(v.NewChange(ctx, sent, shown, subresource)); err != nil || shown == nil {
		return nil, err
	}
	filled := shown.Clone()
	if err := v.Defaults(v.NewChange(ctx, filled, shown, subresource)); err != nil {
		return nil, err
	}
	return meta.NewObject(mergeBaseFields(v.Schema(), shown.Tree(), filled.Tree(), original.Tree())), nil
}

// Merge applies the difference between before and after to live, an object of version v. before is
// live as another version shows it, and after is the same object after the client's change. Fields
// that the other version cannot represent keep their value in live. The result shares the metadata
// of after. Merge does not modify its arguments.
//
// The schema of v determines how values merge: objects field by field, lists with keys item by
// item. In other lists, the items that the client did not change are kept as they are in live.
func (v *Version) Merge(ctx context.Context, live, before, after *meta.Object) (*meta.Object, error) {
	base, err := v.Convert(ctx, before)
	if err != nil {
		return nil, err
	}
	ours, err := v.Convert(ctx, after)
	if err != nil {
		return nil, err
	}
	if sameContent(base, live) {
		return ours, nil // the other version represents the whole object
	}
	tree := mergeFields(v.Schema(), base.Tree(), ours.Tree(), live.Tree())
	return meta.NewObject(v.withTypeAndMetadata(tree, ours.Tree()["metadata"])), nil
}

// readStored returns a copy of a stored object as the current definition of v shows it: without
// fields that the schema lacks, and with defaults.
func (v *Version) readStored(stored *meta.Object) *meta.Object {
	obj := v.pruned(stored)
	if v.ConformOnRead && v.Schema() != nil && v.Schema().FillDefaults(obj.Tree()) != nil {
		return v.pruned(stored) // the defaults exceed the limit; use none, because those filled in are random
	}
	return obj
}

// pruned returns a copy of an object with the apiVersion of v and, for custom kinds, without the
// fields that the schema lacks.
func (v *Version) pruned(stored *meta.Object) *meta.Object {
	obj := stored.Clone()
	obj.Tree()["apiVersion"] = v.GVK().APIVersion()
	if v.ConformOnRead && v.Schema() != nil {
		v.Schema().Normalize(obj.Tree())
	}
	return obj
}
