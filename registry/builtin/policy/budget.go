// Package policy holds the kinds of the policy group, which limit what may be done to
// pods: PodDisruptionBudget, and the eviction that keeps to it.
package policy

import (
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/conditions"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// PodDisruptionBudget bounds how many of some pods may be down at a time because
// somebody evicts them.
type PodDisruptionBudget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is which pods, and how many of them.
	Spec PodDisruptionBudgetSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is how many may be evicted now.
	Status PodDisruptionBudgetStatus `json:"status,omitempty" protobuf:"3"`
}

// PodDisruptionBudgetSpec says how many of which pods have to stay.
type PodDisruptionBudgetSpec struct {
	// MinAvailable is how many of the pods have to stay available, a number or a
	// percentage. It excludes maxUnavailable.
	MinAvailable *meta.IntOrString `json:"minAvailable,omitempty" protobuf:"1" schema:"format=int-or-percent"`
	// Selector of the pods. An empty one selects all of the namespace, none none.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"2" patchStrategy:"replace" schema:"format=label-selector"`
	// MaxUnavailable is how many of the pods may be down, a number or a percentage.
	MaxUnavailable *meta.IntOrString `json:"maxUnavailable,omitempty" protobuf:"3" schema:"format=int-or-percent"`
	// UnhealthyPodEvictionPolicy is about pods that are not ready: IfHealthyBudget (as if
	// unset) lets them go if enough others are, AlwaysAllow in any case.
	UnhealthyPodEvictionPolicy *string `json:"unhealthyPodEvictionPolicy,omitempty" protobuf:"4" schema:"enum=AlwaysAllow|IfHealthyBudget"`
}

// PodDisruptionBudgetStatus is what a controller last counted, less what was evicted
// since.
type PodDisruptionBudgetStatus struct {
	// ObservedGeneration is the generation of the budget that was counted for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"1"`
	// DisruptedPods are those whose eviction was allowed and that the controller has
	// not seen gone, each with the time of that.
	DisruptedPods map[string]meta.Time `json:"disruptedPods,omitempty" protobuf:"2"`
	// DisruptionsAllowed is how many more pods may be evicted.
	DisruptionsAllowed int32 `json:"disruptionsAllowed" protobuf:"3" schema:"min=0"`
	// CurrentHealthy is how many of the pods are ready.
	CurrentHealthy int32 `json:"currentHealthy" protobuf:"4" schema:"min=0"`
	// DesiredHealthy is how many have to be.
	DesiredHealthy int32 `json:"desiredHealthy" protobuf:"5" schema:"min=0"`
	// ExpectedPods is how many pods there should be.
	ExpectedPods int32 `json:"expectedPods" protobuf:"6" schema:"min=0"`
	// Conditions are aspects of the state; DisruptionAllowed says whether a pod may be
	// evicted.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"7" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
}

// Kinds returns the kinds of the policy group.
func Kinds() []*registry.Kind { return []*registry.Kind{budgets()} }

func budgets() *registry.Kind {
	k := registry.Of(registry.Definition[PodDisruptionBudget]{
		Group: names.GroupPolicy, Version: "v1", ShortNames: []string{"pdb"}, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.21"}, Versions: []registry.VersionOf[PodDisruptionBudget]{
			older.Same[PodDisruptionBudget]("v1beta1", "1.5", "1.21", "1.25", names.GroupPolicy+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Min Available", Type: "string", Doc: "How many pods have to stay available.", Cell: amount("minAvailable")},
			{Name: "Max Unavailable", Type: "string", Doc: "How many pods may be down.", Cell: amount("maxUnavailable")},
			{Name: "Allowed Disruptions", Type: "integer", Doc: "How many more pods may be evicted.", Cell: func(o *meta.Object) any {
				return o.Int("status", "disruptionsAllowed")
			}},
			registry.Age(),
		},
		Validate:     validateBudget,
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Reference: &compat.Reference{
			DeleteAnswersStatus: true, PutWithVersion: true, StatusMetadata: compat.CallersMetadata(), FreeFinalizers: true,
		},
	})
	convertEmptySelectors(&k.Versions[1])
	return k
}

// amount shows a number of pods of the spec.
func amount(field string) func(*meta.Object) any {
	return func(o *meta.Object) any {
		v, _ := o.Get("spec", field)
		if v == nil {
			return "N/A"
		}
		return fmt.Sprint(v)
	}
}

func validateBudget(w *registry.Change[PodDisruptionBudget]) {
	if w.Subresource == "status" {
		conditions.Check(&w.Faults, check.At("status", "conditions"), w.New.Status.Conditions)
		return
	}
	at, s := check.At("spec"), &w.New.Spec
	if s.MinAvailable != nil && s.MaxUnavailable != nil {
		w.Invalid(at, s, "minAvailable and maxUnavailable cannot be both set")
	}
	for _, part := range []struct {
		field string
		pods  *meta.IntOrString
	}{{"minAvailable", s.MinAvailable}, {"maxUnavailable", s.MaxUnavailable}} {
		if part.pods == nil {
			continue
		}
		if n, ok := part.pods.Percent(); ok && n > 100 {
			w.Invalid(at.Field(part.field), part.pods, "must not be greater than 100%")
		}
	}
}
