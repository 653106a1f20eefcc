package resource

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Verbs returns what can be done with the type, as discovery lists it.
func (t *Type) Verbs() []string {
	switch {
	case t.Read != nil:
		return []string{"get", "list"}
	case t.Virtual:
		return []string{"create"}
	}
	verbs := append(make([]string, 0, 8), "create", "delete")
	if !t.NoDeleteCollection {
		verbs = append(verbs, "deletecollection")
	}
	return append(verbs, "get", "list", "patch", "update", "watch")
}

// Verbs returns what callers of the version can do with the objects, as discovery lists it.
func (v *Version) Verbs() []string {
	if v.Dummy != "" {
		return nil
	}
	return v.Type.Verbs()
}

// Verbs returns what can be done with the sub-resource.
func (s *Subresource) Verbs() []string {
	switch {
	case s.Connect != nil:
		return connectVerbs(s.Connect.Style)
	case s.Act != nil:
		return []string{"create"}
	case s.WriteOnly:
		return []string{"update"}
	}
	return []string{"get", "patch", "update"}
}

func connectVerbs(style registry.ConnectStyle) []string {
	switch style {
	case registry.Streams:
		return []string{"create", "get"}
	case registry.Proxies:
		return []string{"create", "delete", "get", "patch", "update"}
	}
	return []string{"get"}
}

// WireKind returns the wire name of the kind in the sub-resource's body, of the item
// if what is read there is part of it.
func (s *Subresource) WireKind(v *Version) meta.GroupVersionKind {
	if s.Body == nil || s.Connect != nil && s.Connect.Style == registry.Reads {
		return v.GVK()
	}
	return s.Body.GVK()
}

// Shown returns what callers see of an item through the endpoint.
func (s *Subresource) Shown(ctx context.Context, obj *meta.Object) (*meta.Object, error) {
	if s == nil || s.Show == nil {
		return obj, nil
	}
	obj = s.Show(obj)
	if s.Body == nil || s.Body == s.Body.Hub {
		return obj, nil
	}
	return s.Body.Convert(ctx, obj)
}

// Take takes what a caller may change through the endpoint, but for metadata, from in into
// obj.
func (s *Subresource) Take(ctx context.Context, obj, in *meta.Object) (err error) {
	if s.Body != nil && s.Body != s.Body.Hub {
		if in, err = s.Body.Hub.Convert(ctx, in); err != nil {
			return err
		}
	}
	s.Merge(obj, in)
	return nil
}

// Accept takes what a caller may change through the endpoint from in into obj, a
// copy of the stored object.
func (s *Subresource) Accept(ctx context.Context, obj, in *meta.Object) error {
	if err := s.Take(ctx, obj, in); err != nil {
		return err
	}
	for _, field := range s.Metadata {
		obj.CopyField(in, "metadata", field)
	}
	return nil
}

// shown returns a copy of a stored object of the version as its definition is now: without the
// fields that the schema lacks, and with defaults.
func (v *Version) shown(stored *meta.Object) *meta.Object {
	obj := v.conformed(stored)
	if v.ConformOnRead && v.Schema() != nil && v.Schema().FillDefaults(obj.Tree()) != nil {
		return v.conformed(stored) // which ones were filled in is chance
	}
	return obj
}

// conformed returns a copy of a stored object without what the version's schema
// does not know.
func (v *Version) conformed(stored *meta.Object) *meta.Object {
	obj := stored.Clone()
	obj.Tree()["apiVersion"] = v.GVK().APIVersion()
	if v.ConformOnRead && v.Schema() != nil {
		v.Schema().Normalize(obj.Tree())
	}
	return obj
}

// AsStored reports whether objects are served as caches hold them.
func (v *Version) AsStored() bool { return v == v.Hub && !v.ConformOnRead }

// SchemaMark identifies a version with the schema that it has now.
type SchemaMark struct{ _ byte }

// SchemaMark returns what an object is marked with that the version shows as it is
// stored: Convert changes nothing. A version made anew has another mark.
func (v *Version) SchemaMark() *SchemaMark {
	v.mark.once.Do(func() { v.mark.value = new(SchemaMark) })
	return v.mark.value
}

// mark is an allocation of its own, so that a mark does not keep the version.
type mark struct {
	once  sync.Once
	value *SchemaMark
}

// Normalize brings a decoded object into the form of the version, see schema.Schema.Normalize,
// which drops empty lists: an empty list that clears the owners becomes one that does so by
// a single empty entry.
func (v *Version) Normalize(obj *meta.Object) (unknown []string, faults []meta.StatusCause) {
	const owners = "managedFields"
	if list, ok := obj.Map("metadata")[owners].([]any); ok && len(list) == 0 && !v.DelegatedPaths && v.Rules.Has(compat.EmptyListClears) {
		obj.Metadata()[owners] = []any{map[string]any{}}
	}
	return v.Schema().Normalize(obj.Tree())
}

// DecodeError is the error for an object whose values do not have their fields' types.
func (v *Version) DecodeError(faults []meta.StatusCause) error {
	var texts []string
	for _, f := range faults {
		texts = append(texts, f.Message)
	}
	return v.CannotHandle(strings.Join(texts, ", "))
}

// CannotHandle is the error for a body that is no good object of the version.
func (v *Version) CannotHandle(why string) *meta.Status {
	return meta.BadRequest("%s in version %q cannot be handled as a %s: %s", v.Kind, v.Name, v.Kind, why)
}

// Defaults fills in what the schema and the kind say, and drops what features are about
// that are off. It is 413 if that is more than one object may be, and 500 if the kind's
// Default fails.
func (v *Version) Defaults(w *change) error { return v.defaults(w, v.Schema().FillDefaults) }

// AppliedDefaults is Defaults for an applied object, see schema.Schema.FillDefaultsOfApplied.
func (v *Version) AppliedDefaults(w *change) error {
	return v.defaults(w, v.Schema().FillDefaultsOfApplied)
}

func (v *Version) defaults(w *change, fill func(tree map[string]any) error) error {
	if v.Schema() != nil {
		if err := fill(w.New.Tree()); err != nil {
			return meta.TooLarge("%s %q cannot be kept: %v: limit is %d bytes", v.Kind, w.New.Name(), err, schema.MaxDefaults)
		}
	}
	if v.conversion != nil {
		if err := v.runEdit("Default", v.conversion.Default, w); err != nil {
			return err
		}
	}
	if v.conversion == nil || v.conversion.SameShape {
		if err := v.runEdit("Default", v.Default, w); err != nil {
			return err
		}
	}
	v.dropGated(w.New, w.Old)
	return nil
}

// PrepareForWrite leaves out what callers may not set, runs the kind's Prepare,
// and counts the generation: up by one when anything but metadata and status
// changed, never through the status endpoint. It is 500 if Prepare fails.
func (v *Version) PrepareForWrite(w *change) error {
	if w.Subresource == "" {
		if v.statusApart(w) && (w.Old != nil || !v.StatusOnCreate) {
			v.keepStatus(w.New, w.Old)
		}
		if err := v.runEdit("Prepare", v.Prepare, w); err != nil {
			return err
		}
	}
	if w.Old == nil || v.NoGeneration || v.FirstGeneration || w.Subresource == "status" {
		return nil
	}
	if v.changed(w) {
		w.New.SetGeneration(w.Old.Generation() + 1)
	}
	return nil
}

// statusApart reports whether the status is written through its sub-resource alone: one
// that the caller's version does not have is written with the rest of the object.
func (v *Version) statusApart(w *change) bool {
	if caller := v.VersionIn(w.Version); caller != nil {
		return caller.hasStatus()
	}
	return v.Status
}

// hasStatus reports whether the version has the sub-resource status.
func (v *Version) hasStatus() bool { return v.Status && !slices.Contains(v.lacks, "status") }

// keepStatus leaves the status to its sub-resource: a new object has an empty
// one, an update keeps the old.
func (v *Version) keepStatus(obj, old *meta.Object) {
	from := old
	if old == nil {
		from = meta.NewObject(nil)
		if v.Schema() != nil && v.Schema().Struct.Canonical() {
			v.Schema().Normalize(from.Tree())
		}
	}
	if status, ok := from.Get("status"); ok {
		obj.Set(meta.Clone(status), "status")
		return
	}
	obj.Delete("status")
}

func (v *Version) changed(w *change) bool {
	if v.Changed != nil {
		return v.Changed(w)
	}
	a, b, apart := w.New.Tree(), w.Old.Tree(), v.statusApart(w)
	for _, side := range []map[string]any{a, b} {
		for field := range side {
			if field == "metadata" || field == "status" && apart || field == "apiVersion" {
				continue
			}
			if !meta.Equal(a[field], b[field]) {
				return true
			}
		}
	}
	return false
}

// ValidateWrite returns everything that is wrong with an object that is to be
// written: its metadata, what its schema says, what its kind says. The error says
// that a hook of the kind could not find out.
func (v *Version) ValidateWrite(w *change) ([]meta.StatusCause, error) {
	rules := v.metadataRules()
	sub := v.Type.Subresource(w.Subresource)
	causes := meta.ValidateMetadata(w.New, w.Old, rules)
	content, err := v.ValidateContent(w)
	if err != nil {
		return nil, err
	}
	causes = append(causes, content...)
	if sub != nil {
		if err := v.runHook("Validate", sub.Validate, w); err != nil {
			return nil, err
		}
		causes = append(causes, w.Violations...)
	}
	return causes, nil
}

// ValidateContent is ValidateWrite without metadata, which bodies that are answered and
// not stored need not have.
func (v *Version) ValidateContent(w *change) ([]meta.StatusCause, error) {
	found, err := v.content(w)
	if err != nil || !v.mayKeep(found, w) {
		return found, err
	}
	kept, err := v.content(unchanged(w))
	return withoutKept(found, kept), err
}

func (v *Version) content(w *change) ([]meta.StatusCause, error) {
	w.SchemaViolations = nil
	if v.Schema() != nil {
		var old map[string]any
		if w.Old != nil {
			old = w.Old.Tree()
		}
		w.SchemaViolations = v.Schema().Validate(w.New.Tree(), old)
		if w.Subresource != "" && old != nil {
			w.SchemaViolations = slices.DeleteFunc(w.SchemaViolations, func(c meta.StatusCause) bool { return keptPart(c.Field, w.New.Tree(), old) })
		}
		if w.Subresource == "status" && v.ConformOnRead {
			BelowStatus(w.SchemaViolations)
		}
	}
	if err := v.runHook("Validate", v.Validate, w); err != nil {
		return nil, err
	}
	return v.Schema().InFieldOrder(w.SchemaViolations, w.Violations), nil
}

// mayKeep reports whether a write may keep what is wrong with an object beside its metadata
// and was before, since the metadata is all that it changes: the object may have been stored
// before there was the rule, and has to lose a finalizer all the same. Objects of
// definitions have ratcheting instead, as clients know it.
func (v *Version) mayKeep(found []meta.StatusCause, w *change) bool {
	return len(found) > 0 && w.Old != nil && !v.ConformOnRead && sameContent(w.New, w.Old)
}

// unchanged is the write of the object that is stored.
func unchanged(w *change) *change {
	return &change{Context: w.Context, New: w.Old.Clone(), Old: w.Old, Subresource: w.Subresource, Names: w.Names, Features: w.Features, Rules: w.Rules, Version: w.Version}
}

// withoutKept leaves out of causes those beside the metadata that are among kept.
func withoutKept(causes, kept []meta.StatusCause) []meta.StatusCause {
	return slices.DeleteFunc(causes, func(c meta.StatusCause) bool {
		part, _, _ := strings.Cut(c.Field, ".")
		return part != "metadata" && slices.Contains(kept, c)
	})
}

// keptPart reports whether a write left the part of the object, such as its spec, as it
// was that a path leads into. Who writes another part through a sub-resource is not told
// of it: it may have been stored before there was a rule.
func keptPart(path string, now, before map[string]any) bool {
	part, _, _ := strings.Cut(path, ".")
	part, _, _ = strings.Cut(part, "[")
	was, ok := before[part]
	return ok && meta.Equal(now[part], was)
}

func (v *Version) metadataRules() meta.MetadataRules {
	return meta.MetadataRules{
		Namespaced: v.Namespaced, Name: v.ValidateName, AnyFinalizer: v.AnyFinalizer, FreeFinalizers: v.FreeFinalizers,
		Finalizers: []string{v.Names.Wire(wellknown.NamespaceFinalizer), v.Names.Wire(wellknown.DefinitionFinalizer)},
	}
}

// Warnings returns what the writer of an object should know about its metadata;
// Warn speaks of the rest, once the object is found to be valid.
func (v *Version) Warnings(obj, old *meta.Object) []string {
	return meta.MetadataWarnings(obj, old, v.metadataRules())
}

// FieldManager returns the field manager of the type. ctx bounds its conversions.
func (t *Type) FieldManager(ctx context.Context) *apply.FieldManager {
	t.fieldManager.once.Do(func() {
		c := apply.Config{Kind: t.Kind, StatusMetadata: t.StatusMetadata, Unowned: t.Unowned,
			UntrackedReset:     t.Rules.Has(compat.ClearedOwners),
			ReservedAnnotation: t.Names.Wire(wellknown.HubForm), LastAppliedAnnotation: t.Names.Wire(wellknown.LastApplied)}
		for _, v := range t.Versions {
			c.Versions = append(c.Versions, apply.Version{APIVersion: v.GVK().APIVersion(), Schema: v.Schema(), Status: v.hasStatus()})
		}
		switch {
		case t.converts:
			c.Merge = t.mergeTree
		case t.Converter == nil && t.Rules.Has(compat.OwnersFit):
			c.StoredVersion = t.Storage.GVK().APIVersion()
		}
		t.fieldManager.value = apply.NewFieldManager(c)
	})
	if !t.converts && t.Converter == nil {
		return t.fieldManager.value
	}
	return t.fieldManager.value.WithConvert(func(apiVersion string, trees ...map[string]any) ([]map[string]any, error) {
		return t.convertTrees(ctx, apiVersion, trees)
	})
}

// convertTrees is ConvertAll for trees; there are none if the conversion of one refuses.
func (t *Type) convertTrees(ctx context.Context, apiVersion string, trees []map[string]any) ([]map[string]any, error) {
	objs := make([]*meta.Object, len(trees))
	for i, tree := range trees {
		objs[i] = meta.NewObject(tree)
	}
	objs, err := t.ByAPIVersion(apiVersion).ConvertAll(ctx, objs...)
	var refused *ConversionError
	if errors.As(err, &refused) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, len(objs))
	for i, obj := range objs {
		out[i] = obj.Tree()
	}
	return out, nil
}

// mergeTree is Merge for trees.
func (t *Type) mergeTree(live, before, after map[string]any) (map[string]any, error) {
	whole := meta.NewObject(live)
	obj, err := t.ByAPIVersion(whole.APIVersion()).Merge(context.Background(), whole, meta.NewObject(before), meta.NewObject(after))
	if err != nil {
		return nil, err
	}
	return obj.Tree(), nil
}

// fieldManager is compiled on first use: many types are never written.
type fieldManager struct {
	once  sync.Once
	value *apply.FieldManager
}

// Proto is the protobuf form of the version's objects, nil if they have none.
func (v *Version) Proto() *codec.Proto {
	v.proto.once.Do(func() {
		if v.NoProtobuf {
			return
		}
		// A kind whose struct has no field numbers is one without the form.
		v.proto.value, _ = codec.NewProto(v.Schema())
	})
	return v.proto.value
}

// proto is made when first needed.
type proto struct {
	once  sync.Once
	value *codec.Proto
}

// FormName names the version among the forms of an entry that are kept.
func (v *Version) FormName() string {
	switch {
	case v.Group != v.Type.Group:
		return v.Group + "/" + v.Name
	case !v.Defined():
		return v.Name
	}
	return v.Name + "@" + v.Origin.UID + "/" + strconv.FormatInt(v.Origin.Generation, 10)
}
