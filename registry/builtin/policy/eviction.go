package policy

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/acts"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// Eviction requests the deletion of a pod, subject to PodDisruptionBudgets. It is the body of the
// subresource eviction.
type Eviction struct {
	meta.TypeMeta `json:",inline"`
	// ObjectMeta must have the name of the pod.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// DeleteOptions of the deletion.
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty" protobuf:"2"`
}

// DeleteOptions configure the deletion of an object.
type DeleteOptions struct {
	meta.TypeMeta `json:",inline"`

	// GracePeriodSeconds is the time in seconds for the object to shut down; default the object's own
	// value.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" protobuf:"1"`
	// Preconditions must hold, or the deletion fails with a conflict.
	Preconditions *Preconditions `json:"preconditions,omitempty" protobuf:"2"`
	// OrphanDependents is deprecated; use propagationPolicy.
	OrphanDependents *bool `json:"orphanDependents,omitempty" protobuf:"3"`
	// PropagationPolicy decides about dependents: Orphan, Background or Foreground.
	PropagationPolicy *string `json:"propagationPolicy,omitempty" protobuf:"4" schema:"enum=Foreground|Background|Orphan"`
	// DryRun with the entry All checks the request without deleting the pod.
	DryRun []string `json:"dryRun,omitempty" protobuf:"5" schema:"listType=atomic,items.enum=All"`
	// IgnoreStoreReadErrorWithClusterBreakingPotential is not supported for evictions.
	IgnoreStoreReadErrorWithClusterBreakingPotential *bool `json:"ignoreStoreReadErrorWithClusterBreakingPotential,omitempty" protobuf:"6"`
}

// Preconditions identify the expected state of an object.
type Preconditions struct {
	// UID of the object.
	UID *string `json:"uid,omitempty" protobuf:"1"`
	// ResourceVersion of the object.
	ResourceVersion *string `json:"resourceVersion,omitempty" protobuf:"2"`
}

// Evict returns the subresource eviction of pods. Its body may be in v1 or v1beta1, even in releases
// that serve no other kind of v1beta1.
func Evict() registry.Subresource {
	return registry.Subresource{Name: "eviction", Act: evict, Merge: func(obj, in *meta.Object) { obj.CopyField(in, "status") },
		Body: registry.Of(registry.Definition[Eviction]{
			Group: wellknown.GroupPolicy, Version: "v1", Lifetime: registry.Lifetime{Introduced: "1.22"},
			Versions: []registry.VersionOf[Eviction]{older.Same[Eviction]("v1beta1", "1.5", "", "", "")},
		})}
}

// eviction is an eviction in progress.
type eviction struct {
	*registry.Call
	pod    *meta.Object
	dryRun bool
	delete registry.DeleteOptions
	pinned bool // delete.Version was set by pin instead of the caller
}

var pods = meta.GroupResource{Resource: "pods"}

// evict runs the eviction, and repeats it if a pinned pod changes meanwhile.
func evict(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	const attempts = 10
	if err := acts.Agrees(call); err != nil {
		return nil, err
	}
	o := meta.NewObject(call.Object.Map("deleteOptions"))
	if o.Bool("ignoreStoreReadErrorWithClusterBreakingPotential") {
		var f check.Violations
		f.Invalid(check.At("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"), true, "can not be set for pod eviction, try after removing the option")
		return nil, meta.Invalid(meta.GroupKind{Group: wellknown.GroupPolicy, Kind: "Eviction"}, call.Key.Name, f)
	}
	request := eviction{Call: call, dryRun: call.DryRun || len(o.Strings("dryRun")) > 0, delete: registry.DeleteOptions{
		UID: o.String("preconditions", "uid"), Version: o.String("preconditions", "resourceVersion"), Propagation: o.String("propagationPolicy"),
	}}
	if v, _ := o.Get("gracePeriodSeconds"); v != nil {
		grace := o.Int("gracePeriodSeconds")
		request.delete.GraceSeconds = &grace
	}
	for range attempts {
		e := request
		if err := e.run(ctx); !e.pinned || !meta.IsConflict(err) {
			return nil, err
		}
	}
	return nil, refusal(10, "The pod "+call.Key.Name+" was modified during each attempt.")
}

// run checks the pod, charges the budget and deletes the pod.
func (e *eviction) run(ctx context.Context) (err error) {
	if e.pod, err = e.Client.Get(ctx, pods, e.Key); err != nil {
		return err
	}
	if err := e.checkPreconditions(e.pod); err != nil {
		return err
	}
	if err := e.chargeBudget(ctx); err != nil {
		return err
	}
	return e.deletePod(ctx)
}

// pin makes the deletion conditional on the version of the pod that was checked, because the decision
// depends on its state.
func (e *eviction) pin() {
	if e.delete.Version == "" {
		e.delete.Version, e.pinned = e.pod.ResourceVersion(), true
	}
}

// checkPreconditions checks the preconditions of the request.
func (e *eviction) checkPreconditions(pod *meta.Object) error {
	name := meta.GroupResource{Resource: "Pod"}
	switch {
	case e.delete.UID != "" && e.delete.UID != pod.UID():
		return meta.Conflict(name, e.Key.Name, fmt.Sprintf("the UID in the precondition (%s) does not match the UID of the object (%s)", e.delete.UID, pod.UID()))
	case e.delete.Version != "" && e.delete.Version != pod.ResourceVersion():
		return meta.Conflict(name, e.Key.Name, fmt.Sprintf("the resourceVersion in the precondition (%s) does not match the resourceVersion of the object (%s)", e.delete.Version, pod.ResourceVersion()))
	}
	return nil
}

// chargeBudget decrements the budget of the pod. A pod that is not running needs no budget; a pending
// pod is pinned, because it may start meanwhile.
func (e *eviction) chargeBudget(ctx context.Context) error {
	switch e.pod.String("status", "phase") {
	case "Pending":
		e.pin()
		return nil
	case "Succeeded", "Failed":
		return nil
	}
	if e.pod.Terminating() {
		return nil
	}
	budgets := meta.GroupResource{Group: e.Names.Group(wellknown.GroupPolicy), Resource: "poddisruptionbudgets"}
	budget, err := e.budget(ctx, budgets)
	if err != nil || budget == nil || e.exempt(budget) {
		return err
	}
	if e.dryRun {
		return e.charge(budget.Clone())
	}
	_, err = e.Client.Update(ctx, budgets, meta.Key{Namespace: e.Key.Namespace, Name: budget.Name()}, "status", e.charge)
	return err
}

// budget returns the budget that selects the pod, or nil. Several budgets are an error, because they
// could not be charged atomically.
func (e *eviction) budget(ctx context.Context, r meta.GroupResource) (found *meta.Object, err error) {
	list, err := e.Client.List(ctx, r, e.Key.Namespace)
	if err != nil && !meta.IsNotFound(err) {
		return nil, err
	}
	for _, b := range list {
		s, err := meta.LabelSelectorAsSelector(b.Map("spec", "selector"))
		labels := e.pod.Labels()
		if err != nil || b.Map("spec", "selector") == nil || !s.Matches(func(key string) (string, bool) { v, ok := labels[key]; return v, ok }) {
			continue
		}
		if found != nil {
			return nil, meta.Failure(http.StatusInternalServerError, "", "pod %s is selected by several disruption budgets; eviction supports only 1", e.Key)
		}
		found = b
	}
	return found, nil
}

// exempt reports whether the pod may be evicted without charging the budget, because it is not ready.
// It pins the pod.
func (e *eviction) exempt(budget *meta.Object) bool {
	if e.pod.HasCondition("Ready") {
		return false
	}
	desired := budget.Int("status", "desiredHealthy")
	if budget.String("spec", "unhealthyPodEvictionPolicy") != "AlwaysAllow" && (desired == 0 || budget.Int("status", "currentHealthy") < desired) {
		return false
	}
	e.pin()
	return true
}

// charge decrements a budget, or returns the reason for a refusal.
func (e *eviction) charge(budget *meta.Object) error {
	const maxDisrupted = 2000
	allowed, name := budget.Int("status", "disruptionsAllowed"), budget.Name()
	switch {
	case budget.Int("status", "observedGeneration") < budget.Generation():
		return refusal(10, "The disruption budget "+name+" is still being processed by the server.")
	case allowed <= 0:
		return refusal(0, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
			name, budget.Int("status", "desiredHealthy"), budget.Int("status", "currentHealthy")))
	case len(budget.Map("status", "disruptedPods")) > maxDisrupted:
		return meta.Forbidden(meta.GroupResource{Group: e.Names.Group(wellknown.GroupPolicy), Resource: "poddisruptionbudgets"}, name, "too many evictions are waiting for the disruption controller")
	}
	budget.Set(allowed-1, "status", "disruptionsAllowed")
	if allowed == 1 {
		budget.SetCondition("DisruptionAllowed", "False", "InsufficientPods", "")
		for _, c := range budget.Objects("status", "conditions") {
			if c.String("type") == "DisruptionAllowed" {
				c.Set(budget.Int("status", "observedGeneration"), "observedGeneration")
			}
		}
	}
	budget.Set(meta.FormatTime(time.Now()), "status", "disruptedPods", e.Key.Name)
	return nil
}

// refusal returns a 429 error with the cause why. Clients retry after the given seconds.
func refusal(seconds int, why string) error {
	st := meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget.")
	st.Details = &meta.StatusDetails{RetryAfterSeconds: seconds, Causes: []meta.StatusCause{{Reason: "DisruptionBudget", Message: why}}}
	return st
}

// deletePod records the reason in the status of the pod, and deletes it.
func (e *eviction) deletePod(ctx context.Context) error {
	if e.dryRun {
		return nil
	}
	pod, err := e.Client.Update(ctx, pods, e.Key, "eviction", func(pod *meta.Object) error {
		if err := e.checkPreconditions(pod); err != nil {
			return err
		}
		if !pod.HasCondition("DisruptionTarget") {
			pod.SetCondition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
		}
		return nil
	})
	if err != nil {
		return err
	}
	if e.delete.UID = pod.UID(); e.delete.Version != "" {
		e.delete.Version = pod.ResourceVersion()
	}
	return e.Client.Delete(ctx, pods, e.Key, e.delete)
}
