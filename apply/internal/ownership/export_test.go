package ownership

import (
	"fmt"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// ComparePlans says which part of an apply of patch to live the plans of this
// package leave to structured-merge-diff, or do otherwise than it.
func ComparePlans(s *schema.Schema, live, patch map[string]any) error {
	t := Compile(s)
	set, ok := t.plan.fieldSet(patch)
	if !ok {
		return fmt.Errorf("the fields of the applied object are left to structured-merge-diff")
	}
	value, err := t.strict().FromUnstructured(patch)
	if err != nil {
		return err
	}
	want, err := value.ToFieldSet()
	if err != nil {
		return err
	}
	if !want.Equals(set) {
		return fmt.Errorf("fields: got %s, want %s", set, want)
	}
	merged, ok := t.plan.merge(live, patch)
	if !ok {
		return fmt.Errorf("the merge is left to structured-merge-diff")
	}
	theirs, err := t.Value(live).Merge(t.Value(patch))
	if err != nil {
		return err
	}
	if !meta.Equal(merged, theirs.AsValue().Unstructured()) {
		return fmt.Errorf("merge: got %v, want %v", merged, theirs.AsValue().Unstructured())
	}
	if err := t.compareAdded(merged.(map[string]any)); err != nil {
		return err
	}
	return t.compareReduced(live, merged.(map[string]any))
}

// compareAdded returns an error if the plan leaves the fields of a new object to
// structured-merge-diff, or finds other fields.
func (t *Type) compareAdded(new map[string]any) error {
	old := t.Zero(new["apiVersion"].(string), new["kind"])
	want, err := t.Value(old).Compare(t.Value(new))
	if err != nil {
		return err
	}
	a, b, _ := t.plan.reduce(old, new)
	got := &fieldpath.Set{}
	if !t.plan.added(a, b, got) {
		return fmt.Errorf("the fields of a new object are left to structured-merge-diff")
	}
	if all := want.Added.Union(want.Modified); !all.Equals(got) || !want.Removed.Empty() {
		return fmt.Errorf("fields of a new object: got %s, want %s", got, all)
	}
	return nil
}

// compareReduced returns an error if the comparison of only the differing parts finds
// other changes than the comparison of the whole objects.
func (t *Type) compareReduced(old, new map[string]any) error {
	want, err := t.Value(old).Compare(t.Value(new))
	if err != nil {
		return err
	}
	a, b, same := t.plan.reduce(old, new)
	if same {
		return fmt.Errorf("the objects do not differ")
	}
	got, err := t.Value(a).Compare(t.Value(b))
	if err != nil {
		return err
	}
	if want.String() != got.String() {
		return fmt.Errorf("changes: got %s, want %s", got, want)
	}
	return nil
}
