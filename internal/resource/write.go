package resource

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
)

// Normalize normalizes a decoded object to the version, see schema.Schema.Normalize. Normalize drops
// empty lists; where an empty metadata.managedFields clears the field managers, Normalize therefore
// replaces it by a list with a single empty entry, which has the same meaning.
func (v *Version) Normalize(obj *meta.Object) (unknown []string, faults []meta.StatusCause) {
	const owners = "managedFields"
	if list, ok := obj.Map("metadata")[owners].([]any); ok && len(list) == 0 && !v.DelegatedPaths && v.Rules.Has(compat.EmptyListClears) {
		obj.Metadata()[owners] = []any{map[string]any{}}
	}
	return v.Schema().Normalize(obj.Tree())
}

// DecodeError returns the error for an object with values of wrong types.
func (v *Version) DecodeError(faults []meta.StatusCause) error {
	var texts []string
	for _, f := range faults {
		texts = append(texts, f.Message)
	}
	return v.CannotHandle(strings.Join(texts, ", "))
}

// CannotHandle returns the 400 Status for a body that is not a valid object of the version.
func (v *Version) CannotHandle(why string) *meta.Status {
	return meta.BadRequest("%s in version %q cannot be handled as a %s: %s", v.Kind, v.Name, v.Kind, why)
}

// Defaults fills in the defaults of the schema and then those of the kind's Default hook, and drops
// fields with a disabled feature gate. The error is a 413 if the defaults exceed the size limit, and a
// 500 if the hook fails.
func (v *Version) Defaults(w *change) error { return v.defaults(w, v.Schema().FillDefaults) }

// AppliedDefaults is Defaults for an object of a server-side apply, see
// schema.Schema.FillDefaultsOfApplied.
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

// PrepareForWrite resets fields that clients may not set, runs the kind's Prepare hook, and
// increments metadata.generation if anything but metadata and status changed. A write to the status
// subresource never changes the generation. The error is a 500 if the hook fails.
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
	if v.changesSpec(w) {
		w.New.SetGeneration(w.Old.Generation() + 1)
	}
	return nil
}

// statusApart reports whether the status is written only through its subresource. If the client's
// version does not have the subresource, the status is written with the rest of the object.
func (v *Version) statusApart(w *change) bool {
	if caller := v.VersionIn(w.Version); caller != nil {
		return caller.hasStatus()
	}
	return v.Status
}

// hasStatus reports whether the version has the status subresource.
func (v *Version) hasStatus() bool { return v.Status && !slices.Contains(v.lacks, "status") }

// keepStatus replaces the status of obj by the status of old, or by an empty status on create.
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

// changesSpec reports whether a write changes anything that metadata.generation counts.
func (v *Version) changesSpec(w *change) bool {
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

// ValidateWrite returns all violations of an object that is about to be written: of its metadata,
// of the schema, and of the Validate hooks of the kind and the subresource. The error is set if a
// hook could not complete.
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

// ValidateContent is ValidateWrite without the metadata, for bodies that are answered and not
// stored. If the write changes only metadata, it leaves out violations that the stored object
// already has.
func (v *Version) ValidateContent(w *change) ([]meta.StatusCause, error) {
	found, err := v.validateContent(w)
	if err != nil || !v.keepsViolations(found, w) {
		return found, err
	}
	kept, err := v.validateContent(unchangedWrite(w))
	return removeKept(found, kept), err
}

// validateContent returns the violations of the schema and of the kind's Validate hook.
func (v *Version) validateContent(w *change) ([]meta.StatusCause, error) {
	w.SchemaViolations = nil
	if v.Schema() != nil {
		var old map[string]any
		if w.Old != nil {
			old = w.Old.Tree()
		}
		w.SchemaViolations = v.Schema().Validate(w.New.Tree(), old)
		if w.Subresource != "" && old != nil {
			w.SchemaViolations = slices.DeleteFunc(w.SchemaViolations, func(c meta.StatusCause) bool { return partUnchanged(c.Field, w.New.Tree(), old) })
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

// keepsViolations reports whether the write may keep violations that the object already had,
// because it changes only metadata. The object may have been stored before a rule existed, and
// removing a finalizer must still be possible. Custom kinds use the validation ratcheting of
// kube-apiserver instead.
func (v *Version) keepsViolations(found []meta.StatusCause, w *change) bool {
	return len(found) > 0 && w.Old != nil && !v.ConformOnRead && sameContent(w.New, w.Old)
}

// unchangedWrite returns a write that stores the old object again.
func unchangedWrite(w *change) *change {
	return &change{Context: w.Context, New: w.Old.Clone(), Old: w.Old, Subresource: w.Subresource, Names: w.Names, Features: w.Features, Rules: w.Rules, Version: w.Version}
}

// removeKept removes from causes the violations outside the metadata that are also in kept.
func removeKept(causes, kept []meta.StatusCause) []meta.StatusCause {
	return slices.DeleteFunc(causes, func(c meta.StatusCause) bool {
		part, _, _ := strings.Cut(c.Field, ".")
		return part != "metadata" && slices.Contains(kept, c)
	})
}

// partUnchanged reports whether a write left the top-level field that path leads into, such as
// spec, as it was. A write to a subresource does not report violations in such a field: they may be
// older than the rule.
func partUnchanged(path string, now, before map[string]any) bool {
	part, _, _ := strings.Cut(path, ".")
	part, _, _ = strings.Cut(part, "[")
	was, ok := before[part]
	return ok && meta.Equal(now[part], was)
}

// metadataRules returns the rules for the metadata of the version's objects.
func (v *Version) metadataRules() meta.MetadataRules {
	return meta.MetadataRules{
		Namespaced: v.Namespaced, Name: v.ValidateName, AnyFinalizer: v.AnyFinalizer, FreeFinalizers: v.FreeFinalizers,
		Finalizers: []string{v.Names.Wire(wellknown.NamespaceFinalizer), v.Names.Wire(wellknown.DefinitionFinalizer)},
	}
}

// Warnings returns the warnings about the metadata of a written object. The Warn hook returns the
// warnings about the other fields, after validation.
func (v *Version) Warnings(obj, old *meta.Object) []string {
	return meta.MetadataWarnings(obj, old, v.metadataRules())
}
