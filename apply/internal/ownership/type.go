package ownership

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

const (
	// MaxCauses is the largest number of violations that an error lists.
	MaxCauses = 100

	maxPaths = 64 << 20 // bytes of the paths of all values in an object
)

// Type is the schema of a version of a kind, compiled for field ownership.
type Type struct {
	zero map[string]any // the fields that a Go struct always writes
	plan *plan          // from the strict form

	// The strict form reports undeclared fields and checks applied objects. The lenient
	// form accepts undeclared fields, because a stored object may be older than the schema.
	// Both are compiled on first use: most kinds never need them.
	strict, lenient func() typed.ParseableType
}

// Compile compiles the schema of an object; nil allows any object.
func Compile(s *schema.Schema) *Type {
	form := func(strict bool) func() typed.ParseableType {
		return sync.OnceValue(func() typed.ParseableType { return compile(s, strict) })
	}
	t := &Type{zero: map[string]any{}, strict: form(true), lenient: form(false)}
	if s != nil && s.Struct.Canonical() {
		s.Normalize(t.zero)
	}
	strict := compile(s, true) // discarded: the plan has the same content in less memory
	t.plan = newPlan(strict.Schema, strict.TypeRef)
	return t
}

// Zero returns an object with only its apiVersion, its kind and the fields that a Go struct
// always writes. Those fields have no owner.
func (t *Type) Zero(apiVersion string, kind any) map[string]any {
	out := maps.Clone(t.zero)
	out["apiVersion"], out["kind"] = apiVersion, kind
	return out
}

// Fields returns the fields of an applied object. The error is a *meta.Status: Invalid if
// the object violates the schema, RequestEntityTooLarge if its violations cannot be listed
// in bounded memory.
func (t *Type) Fields(tree map[string]any) (*fieldpath.Set, error) {
	if set, ok := t.plan.fieldSet(tree); ok {
		return set, nil
	}
	if !pathsWithin(maxPaths, tree) {
		return nil, meta.TooLarge("the applied object violates its schema, and the paths of its values have more than %d bytes", maxPaths)
	}
	v, err := t.strict().FromUnstructured(tree)
	if err != nil {
		return nil, InvalidObject(tree, err)
	}
	set, err := v.ToFieldSet()
	if err != nil {
		return nil, InvalidObject(tree, err)
	}
	return set, nil
}

// Validate returns the violations of the schema in an object as structured-merge-diff
// reports them.
func (t *Type) Validate(tree map[string]any) error {
	if !pathsWithin(maxPaths, tree) {
		return errLongPaths
	}
	_, err := t.strict().FromUnstructured(tree)
	return err
}

// Violations returns the sorted violations of the schema in a stored object.
func (t *Type) Violations(tree map[string]any) ([]string, error) {
	if t.plan.collect(tree, nil) {
		return nil, nil
	}
	if !pathsWithin(maxPaths, tree) {
		return nil, mismatch(errLongPaths)
	}
	_, err := t.strict().FromUnstructured(tree, typed.AllowDuplicates)
	found, _ := err.(typed.ValidationErrors)
	texts := make([]string, len(found))
	for i, e := range found {
		e.Path = meta.TruncatePath([]byte(e.Path))
		texts[i] = e.Error()
	}
	slices.Sort(texts)
	return texts, nil
}

// Merge returns a copy of live with the fields of an applied object.
func (t *Type) Merge(live, applied map[string]any) (map[string]any, error) {
	if out, ok := t.plan.merge(live, applied); ok {
		return out.(map[string]any), nil
	}
	merged, err := t.Value(live).Merge(t.Value(applied))
	if err != nil {
		return nil, InvalidObject(applied, err)
	}
	tree, _ := meta.Clone(merged.AsValue().Unstructured()).(map[string]any)
	return tree, nil
}

// Compare returns the fields that a write removed from an object and the fields that it
// added or modified. The error is a *MismatchError if the objects cannot be compared.
func (t *Type) Compare(old, new map[string]any) (removed, changed *fieldpath.Set, err error) {
	a, b, same := t.plan.reduce(old, new)
	if same {
		return fieldpath.NewSet(), fieldpath.NewSet(), nil
	}
	if !pathsWithin(maxPaths, a, b) {
		return nil, nil, mismatch(errLongPaths)
	}
	if set := (&fieldpath.Set{}); t.plan.added(a, b, set) {
		return fieldpath.NewSet(), set, nil
	}
	diff, err := t.Value(t.plan.separated(a)).Compare(t.Value(t.plan.separated(b)))
	if err != nil {
		return nil, nil, mismatch(err)
	}
	changed = diff.Added
	if !diff.Modified.Empty() {
		changed = diff.Modified.Union(changed)
	}
	return diff.Removed, changed, nil
}

// EqualFields returns the fields of last that live has with the same value, nil if the
// objects cannot be compared.
func (t *Type) EqualFields(last, live map[string]any) *fieldpath.Set {
	v := t.Value(t.plan.separated(last))
	set, err := v.ToFieldSet()
	if err != nil {
		return nil
	}
	diff, err := v.Compare(t.Value(t.plan.separated(live)))
	if err != nil {
		return nil
	}
	return set.Difference(diff.Modified).Difference(diff.Added).Difference(diff.Removed)
}

// Value returns tree as a typed value without checking it. Trees conform to the schema
// when they get here, and checking them again costs more than a merge.
func (t *Type) Value(tree map[string]any) *typed.TypedValue {
	lenient := t.lenient()
	return typed.AsTypedUnvalidated(value.NewValueInterface(tree), lenient.Schema, lenient.TypeRef) //lint:ignore SA1019 see above
}

// AtomicFields returns the paths of the values in tree that are owned as a whole although
// they have parts, such as .spec.selector.
func (t *Type) AtomicFields(tree map[string]any) []string { return t.plan.atomicFields("", tree) }

func (p *plan) atomicFields(path string, v any) (paths []string) {
	switch v := v.(type) {
	case map[string]any:
		if p.shape == shapeAtomic || p.shape == shapeMap && p.atomic {
			paths = append(paths, path)
		}
		for _, name := range sortedKeys(v) {
			if f := p.fields[name]; f != nil {
				paths = append(paths, f.atomicFields(path+"."+name, v[name])...)
			}
		}
	case []any:
		if p.shape == shapeAtomicList || p.shape == shapeAtomic || p.shape == shapeDeduced || p.shape == shapeMixed {
			paths = append(paths, path)
		}
		if p.items == nil {
			return paths
		}
		for i, item := range v {
			paths = append(paths, p.items.atomicFields(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
	}
	return paths
}

var errLongPaths = fmt.Errorf("the paths of its values have more than %d bytes", maxPaths)

// pathsWithin reports whether the paths of all values in trees have at most limit bytes
// together. structured-merge-diff reports each violation with its whole path.
func pathsWithin(limit int, trees ...map[string]any) bool {
	for _, tree := range trees {
		if limit = pathBytes(tree, 0, limit); limit < 0 {
			return false
		}
	}
	return true
}

// pathBytes subtracts from left the lengths of the paths of all values in v. at is the length
// of the path of v. It stops when the result is negative.
func pathBytes(v any, at, left int) int {
	left -= at
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if left < 0 {
				return left
			}
			left = pathBytes(e, at+len(k)+1, left)
		}
	case []any:
		for _, e := range v {
			if left < 0 {
				return left
			}
			left = pathBytes(e, at+1, left)
		}
	}
	return left
}

// MismatchError reports that an object cannot be read by its schema, for example because
// two items of a list have the same key.
type MismatchError struct{ status *meta.Status }

func mismatch(err error) error {
	s := meta.Failure(http.StatusUnprocessableEntity, meta.ReasonInvalid, "the object does not match its schema: %v", err)
	s.Details = &meta.StatusDetails{}
	return &MismatchError{s}
}

// Error returns the message of the Status.
func (m *MismatchError) Error() string { return m.status.Error() }

// Unwrap returns the *meta.Status that a server answers.
func (m *MismatchError) Unwrap() error { return m.status }

// InvalidObject returns the Status for an error that structured-merge-diff reports about an
// applied object. An error that is or wraps a Status is returned unchanged.
func InvalidObject(applied map[string]any, err error) error {
	if status := (*meta.Status)(nil); errors.As(err, &status) {
		return err
	}
	var causes []meta.StatusCause
	texts := []string{err.Error()}
	if list, ok := err.(typed.ValidationErrors); ok {
		texts = nil
		for _, e := range list[:min(len(list), MaxCauses)] {
			e.Path = meta.TruncatePath([]byte(e.Path))
			causes = append(causes, meta.StatusCause{Reason: meta.CauseInvalid, Message: e.ErrorMessage, Field: strings.TrimPrefix(e.Path, ".")})
			texts = append(texts, e.Error())
		}
	} else {
		causes = []meta.StatusCause{{Reason: meta.CauseInvalid, Message: err.Error()}}
	}
	slices.SortFunc(causes, func(a, b meta.StatusCause) int { return strings.Compare(a.Field, b.Field) })
	slices.Sort(texts)
	obj := meta.NewObject(applied)
	s := meta.Failure(http.StatusUnprocessableEntity, meta.ReasonInvalid, "failed to create typed patch object (%s/%s; %s, Kind=%s): %s",
		obj.Namespace(), obj.Name(), groupVersion(obj.APIVersion()), obj.Kind(), JoinTexts(texts))
	s.Details = &meta.StatusDetails{Group: meta.ParseAPIVersion(obj.APIVersion()).Group, Kind: obj.Kind(), Name: obj.Name(), Causes: causes}
	return s
}

// JoinTexts formats the texts of errors as structured-merge-diff does.
func JoinTexts(texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	return "errors:\n  " + strings.Join(texts, "\n  ")
}

// groupVersion returns apiVersion as group/version; the core group is empty.
func groupVersion(apiVersion string) string {
	if strings.Contains(apiVersion, "/") {
		return apiVersion
	}
	return "/" + apiVersion
}
