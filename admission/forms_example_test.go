package admission_test

import (
	"context"
	"fmt"
	"maps"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// lamps converts a kind whose version v1beta1 calls the field lit bright.
type lamps struct{}

func (lamps) Kind(v meta.GroupVersion) (meta.GroupVersionKind, bool) {
	return meta.GroupVersionKind{Group: v.Group, Version: v.Version, Kind: "Lamp"}, true
}

func (lamps) Show(_ context.Context, obj *meta.Object, v meta.GroupVersion) (*meta.Object, error) {
	if v.Version == "v1" {
		return obj, nil
	}
	return meta.NewObject(map[string]any{"spec": map[string]any{"bright": obj.Bool("spec", "lit")}}), nil
}

func (lamps) Merge(shown *meta.Object, patch map[string]any, _ meta.GroupVersion) (*meta.Object, error) {
	merged := shown.Clone()
	maps.Copy(merged.Map("spec"), meta.NewObject(patch).Map("spec"))
	return merged, nil
}

func (lamps) Take(_ context.Context, r *admission.Request, _, changed *meta.Object, v meta.GroupVersion) ([]string, error) {
	r.Object.Set(changed.Bool("spec", "bright"), "spec", "lit")
	return nil, nil
}

// A plugin sees objects in an old version of their kind. The server sets Request.Representations; here the example
// does.
func ExampleRepresentations() {
	old := meta.GroupVersion{Group: "example.com", Version: "v1beta1"}
	dim := admission.Plugin{
		Name: "Dim",
		Mutate: func(ctx context.Context, r *admission.Request) error {
			shown, err := r.Representations.Show(ctx, r.Object, old)
			if err != nil {
				return err
			}
			changed, err := r.Representations.Merge(shown, map[string]any{"spec": map[string]any{"bright": false}}, old)
			if err != nil {
				return err
			}
			_, err = r.Representations.Take(ctx, r, shown, changed, old)
			return err
		},
	}
	chain, err := admission.New([]admission.Plugin{dim}, admission.Options{}, admission.PluginContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var forms admission.Representations = lamps{}
	lamp := meta.NewObject(map[string]any{"spec": map[string]any{"lit": true}})
	err = chain.Mutate(context.Background(), &admission.Request{Operation: admission.Create, Object: lamp, Representations: forms})
	fmt.Println(lamp.Bool("spec", "lit"), err)
	// Output: false <nil>
}
