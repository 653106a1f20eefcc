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

// ConversionError says that an object of one version cannot be made one of another.
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

// Unwrap returns what the conversion says.
func (e *ConversionError) Unwrap() error { return e.Err }

// Stack returns where the conversion panicked, nil if it did not: a fault of its
// author, whom the log tells, and not of an object.
func (e *ConversionError) Stack() []byte {
	if p := (*conversionPanic)(nil); errors.As(e.Err, &p) {
		return p.stack
	}
	return nil
}

var errNoVersion = errors.New("there is no such version")

// Converts reports whether the versions of the type have shapes of their own, with
// conversions between them and a hub. Versions of a definition differ in nothing but
// their schemas, or a Converter knows how.
func (t *Type) Converts() bool { return t.converts }

// Working returns the version that objects are in while they are written: the hub
// where versions convert, else the version itself.
func (v *Version) Working() *Version {
	if v.converts {
		return v.Hub
	}
	return v
}

// ItemVersion returns the version that an endpoint of this one sees items in: the
// working one where the body of a sub-resource is not the item.
func (v *Version) ItemVersion(s *Subresource) *Version {
	if s != nil && s.Body != nil {
		return v.Working()
	}
	return v
}

// ColumnsVersion returns the version whose objects the columns read: the hub, if a spoke
// has none of its own.
func (v *Version) ColumnsVersion() *Version { return v.columns }

// Asks reports whether the Converter has to be asked to show an object of an apiVersion
// in this version.
func (v *Version) Asks(apiVersion string) bool {
	return v.Converter != nil && apiVersion != v.GVK().APIVersion()
}

// As is Convert for an object that nothing is to be done to if it is of the version.
func (v *Version) As(ctx context.Context, obj *meta.Object) (*meta.Object, error) {
	if obj.APIVersion() == v.GVK().APIVersion() {
		return obj, nil
	}
	return v.Convert(ctx, obj)
}

// Convert is ConvertAll for one object.
func (v *Version) Convert(ctx context.Context, obj *meta.Object) (*meta.Object, error) {
	out, err := v.ConvertAll(ctx, obj)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// ConvertAll returns objects of any versions of the kind in this version. The objects
// stay as they are; the results may be the same or share their metadata.
//
// An object of a definition is first read in its own version: fields that the schema of that
// version lacks are dropped, and its defaults are filled in, because the definition may have
// changed since the object was written. If the defaults exceed the size limit, none is filled in.
// After the conversion, fields that the schema of v lacks are dropped, but the defaults of v are
// not filled in: a field that the conversion removed stays absent. The error is a
// *ConversionError, or that of the Converter.
func (v *Version) ConvertAll(ctx context.Context, objs ...*meta.Object) ([]*meta.Object, error) {
	if !v.converts {
		return v.convertDefined(ctx, objs)
	}
	out, err := v.asked(ctx, objs)
	if err != nil {
		return nil, err
	}
	for i, obj := range out {
		if out[i], err = v.converted(obj); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// convertDefined is ConvertAll for a type whose versions differ in their schemas alone, or are
// converted by the Converter.
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
		read[i] = from.shown(obj)
	}
	out, err := v.asked(ctx, read)
	if err != nil {
		return nil, err
	}
	for i, obj := range out {
		if read[i].APIVersion() != v.GVK().APIVersion() {
			out[i] = v.conformed(obj)
		}
	}
	return out, nil
}

// asked returns objects after the Converter, those that it has to be asked about.
func (v *Version) asked(ctx context.Context, objs []*meta.Object) ([]*meta.Object, error) {
	out := slices.Clone(objs)
	var about []int
	var questions []*meta.Object
	for i, obj := range objs {
		if v.Asks(obj.APIVersion()) && !empty(obj) {
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

// empty reports whether an object is nothing but of its kind.
func empty(obj *meta.Object) bool {
	for field := range obj.Tree() {
		if field != "apiVersion" && field != "kind" {
			return false
		}
	}
	return true
}

// converted converts an object of a type with conversions.
func (v *Version) converted(obj *meta.Object) (*meta.Object, error) {
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

// withAnnotations returns metadata with other values of these annotations, those that
// now has. The metadata stays as it is.
func withAnnotations(metadata any, these []string, now map[string]any) any {
	was, _ := metadata.(map[string]any)
	annotations := map[string]any{}
	if before, ok := was["annotations"].(map[string]any); ok {
		maps.Copy(annotations, before)
	}
	for _, name := range these {
		delete(annotations, name)
	}
	maps.Copy(annotations, now)
	out := map[string]any{}
	maps.Copy(out, was)
	if out["annotations"] = annotations; len(annotations) == 0 {
		delete(out, "annotations")
	}
	return out
}

// convert goes from a version to the hub, and on from there.
func (v *Version) convert(apiVersion string, tree map[string]any) (_ map[string]any, err error) {
	from := v.ByAPIVersion(apiVersion)
	if from == nil {
		return nil, errNoVersion
	}
	if c := from.conversion; c != nil {
		if tree, err = step(c.ToHub, tree, c); err != nil {
			return nil, err
		}
	}
	if c := v.conversion; c != nil {
		return step(c.FromHub, tree, c)
	}
	return tree, nil
}

// step runs one of two conversions and gives the result the metadata of what it was made
// of, with those of the conversions' annotations that it says.
func step(convert func(map[string]any) (map[string]any, error), tree map[string]any, c *registry.Conversion) (map[string]any, error) {
	out, err := run(convert, tree)
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

// run runs a conversion. It may be an author's first, and runs where a panic would end
// the process: a panic is an error.
func run(convert func(map[string]any) (map[string]any, error), tree map[string]any) (_ map[string]any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &conversionPanic{p, debug.Stack()}
		}
	}()
	return convert(tree)
}

type conversionPanic struct {
	value any
	stack []byte
}

func (p *conversionPanic) Error() string { return fmt.Sprintf("the conversion panicked: %v", p.value) }

// withTypeAndMetadata gives a tree the type of the version and the metadata.
func (v *Version) withTypeAndMetadata(tree map[string]any, metadata any) map[string]any {
	out := maps.Clone(tree)
	out["apiVersion"], out["kind"] = v.GVK().APIVersion(), v.Kind
	delete(out, "metadata")
	if metadata != nil {
		out["metadata"] = metadata
	}
	return out
}

// FillIn fills in what an object that was sent leaves out, by the version's defaults,
// and returns what its writer began with: what the version shows of the live object,
// with the same defaults. A default is no change of the writer's, unless he says it
// himself. Without a live object the result is nil. applied: the object was applied.
func (v *Version) FillIn(ctx context.Context, sent, shown *meta.Object, subresource string, applied bool) (began *meta.Object, err error) {
	said, defaults := sent, v.Defaults
	if applied {
		defaults = v.AppliedDefaults
	}
	if shown != nil {
		said = sent.Clone()
	}
	if err := defaults(v.NewChange(ctx, sent, shown, subresource)); err != nil || shown == nil {
		return nil, err
	}
	filled := shown.Clone()
	if err := v.Defaults(v.NewChange(ctx, filled, shown, subresource)); err != nil {
		return nil, err
	}
	return meta.NewObject(untouchedFields(v.Schema(), shown.Tree(), filled.Tree(), said.Tree())), nil
}

// Merge returns live, of this version, with what was changed between before and
// after, before being what another version shows of live: what that version cannot say
// stays as it is. Both are of that version or made of its objects. The metadata is that
// of after, with which the result shares it. None of them is changed.
//
// Objects are merged field by field and lists with keys item by item, by the schema;
// of any other list the items stay that are as they were.
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
		return ours, nil // the other version can say everything
	}
	tree := mergeFields(v.Schema(), base.Tree(), ours.Tree(), live.Tree())
	return meta.NewObject(v.withTypeAndMetadata(tree, ours.Tree()["metadata"])), nil
}
