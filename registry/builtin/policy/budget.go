// Package policy defines the kind PodDisruptionBudget, and the subresource eviction of pods, which
// respects budgets.
package policy

import (
	"fmt"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/conditions"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// PodDisruptionBudget limits the number of pods that evictions may disrupt at the same time.
type PodDisruptionBudget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the limit and the selection of the pods.
	Spec PodDisruptionBudgetSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is the observed state.
	Status PodDisruptionBudgetStatus `json:"status,omitempty" protobuf:"3"`
}

// PodDisruptionBudgetSpec is the limit and the selection of the pods. At most one of minAvailable and
// maxUnavailable can be set.
type PodDisruptionBudgetSpec struct {
	// MinAvailable is the number or percentage of the pods that must remain available.
	MinAvailable *meta.IntOrString `json:"minAvailable,omitempty" protobuf:"1" schema:"format=int-or-percent"`
	// Selector of the pods. An empty selector selects all pods of the namespace; an unset selector
	// selects none.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"2" patchStrategy:"replace" schema:"format=label-selector"`
	// MaxUnavailable is the number or percentage of the pods that may be unavailable.
	MaxUnavailable *meta.IntOrString `json:"maxUnavailable,omitempty" protobuf:"3" schema:"format=int-or-percent"`
	// UnhealthyPodEvictionPolicy decides about pods that are not ready: IfHealthyBudget (default)
	// evicts them if enough pods are healthy, AlwaysAllow evicts them in any case.
	UnhealthyPodEvictionPolicy *string `json:"unhealthyPodEvictionPolicy,omitempty" protobuf:"4" schema:"enum=AlwaysAllow|IfHealthyBudget"`
}

// PodDisruptionBudgetStatus is the state that the controller observed, reduced by the evictions since
// then.
type PodDisruptionBudgetStatus struct {
	// ObservedGeneration is the latest generation that the controller has processed. Evictions wait for
	// it.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"1"`
	// DisruptedPods maps pods to the times of their evictions, until the controller has observed their
	// deletion.
	DisruptedPods map[string]meta.Time `json:"disruptedPods,omitempty" protobuf:"2"`
	// DisruptionsAllowed is the number of pods that may be evicted now.
	DisruptionsAllowed int32 `json:"disruptionsAllowed" protobuf:"3" schema:"min=0"`
	// CurrentHealthy is the number of healthy pods.
	CurrentHealthy int32 `json:"currentHealthy" protobuf:"4" schema:"min=0"`
	// DesiredHealthy is the number of pods that must be healthy.
	DesiredHealthy int32 `json:"desiredHealthy" protobuf:"5" schema:"min=0"`
	// ExpectedPods is the number of pods that the budget counts.
	ExpectedPods int32 `json:"expectedPods" protobuf:"6" schema:"min=0"`
	// Conditions of the budget. DisruptionAllowed is True if a pod may be evicted.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"7" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
}

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind { return []*registry.Kind{budgets()} }

func budgets() *registry.Kind {
	k := registry.Of(registry.Definition[PodDisruptionBudget]{
		Group: wellknown.GroupPolicy, Version: "v1", ShortNames: []string{"pdb"}, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.21"}, Versions: []registry.VersionOf[PodDisruptionBudget]{
			older.Same[PodDisruptionBudget]("v1beta1", "1.5", "1.21", "1.25", wellknown.GroupPolicy+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "Min Available", Type: "string", Doc: "The number of pods that must remain available.", Cell: amountCell("minAvailable")},
			{Name: "Max Unavailable", Type: "string", Doc: "The number of pods that may be unavailable.", Cell: amountCell("maxUnavailable")},
			{Name: "Allowed Disruptions", Type: "integer", Doc: "The number of pods that may be evicted now.", Cell: func(o *meta.Object) any {
				return o.Int("status", "disruptionsAllowed")
			}},
			registry.AgeColumn(),
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

// amountCell shows a number or percentage of the spec.
func amountCell(field string) func(*meta.Object) any {
	return func(o *meta.Object) any {
		v, _ := o.Get("spec", field)
		if v == nil {
			return "N/A"
		}
		return fmt.Sprint(v)
	}
}

// validateBudget checks the spec, or for a write of the status only the conditions.
func validateBudget(w *registry.Change[PodDisruptionBudget]) {
	if w.Subresource == "status" {
		conditions.Check(&w.Violations, check.At("status", "conditions"), w.New.Status.Conditions)
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
