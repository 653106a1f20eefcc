package policy

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/acts"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// Eviction asks for the deletion of a pod, if a PodDisruptionBudget allows it.
type Eviction struct {
	meta.TypeMeta `json:",inline"`
	// ObjectMeta names the pod.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// DeleteOptions say how the pod is deleted.
	DeleteOptions *DeleteOptions `json:"deleteOptions,omitempty" protobuf:"2"`
}

// DeleteOptions say how an object is deleted.
type DeleteOptions struct {
	meta.TypeMeta `json:",inline"`

	// GracePeriodSeconds is how long the object gets to end; unset: as it says itself.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" protobuf:"1"`
	// Preconditions must hold, or nothing is deleted.
	Preconditions *Preconditions `json:"preconditions,omitempty" protobuf:"2"`
	// OrphanDependents is the older form of propagationPolicy.
	OrphanDependents *bool `json:"orphanDependents,omitempty" protobuf:"3"`
	// PropagationPolicy is what becomes of what the object owns: Orphan, Background
	// or Foreground.
	PropagationPolicy *string `json:"propagationPolicy,omitempty" protobuf:"4" schema:"enum=Foreground|Background|Orphan"`
	// DryRun with All does nothing but to say what would be.
	DryRun []string `json:"dryRun,omitempty" protobuf:"5" schema:"listType=atomic,items.enum=All"`
	// IgnoreStoreReadErrorWithClusterBreakingPotential deletes what cannot be read.
	IgnoreStoreReadErrorWithClusterBreakingPotential *bool `json:"ignoreStoreReadErrorWithClusterBreakingPotential,omitempty" protobuf:"6"`
}

// Preconditions are what an object must be for it to be deleted.
type Preconditions struct {
	// UID of the object.
	UID *string `json:"uid,omitempty" protobuf:"1"`
	// ResourceVersion of the object.
	ResourceVersion *string `json:"resourceVersion,omitempty" protobuf:"2"`
}

// Evict returns the sub-resource eviction of pods. Its body may be of either version, also in
// releases that have no other kind of the older one.
func Evict() registry.Subresource {
	return registry.Subresource{Name: "eviction", Act: evict, Merge: func(obj, in *meta.Object) { obj.CopyField(in, "status") },
		Body: registry.Of(registry.Definition[Eviction]{
			Group: names.GroupPolicy, Version: "v1", Lifetime: registry.Lifetime{Introduced: "1.22"},
			Versions: []registry.VersionOf[Eviction]{older.Same[Eviction]("v1beta1", "1.5", "", "", "")},
		})}
}

// eviction is a pod that is to go.
type eviction struct {
	*registry.Call
	pod    *meta.Object
	dryRun bool
	delete registry.DeleteOptions
	pinned bool // the pod may go only as it was looked at, which the caller did not ask for
}

var pods = meta.GroupResource{Resource: "pods"}

func evict(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	const tries = 10
	if err := acts.Agrees(call); err != nil {
		return nil, err
	}
	o := meta.NewObject(call.Object.Map("deleteOptions"))
	if o.Bool("ignoreStoreReadErrorWithClusterBreakingPotential") {
		var f check.Faults
		f.Invalid(check.At("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"), true, "can not be set for pod eviction, try after removing the option")
		return nil, meta.Invalid(meta.GroupKind{Group: names.GroupPolicy, Kind: "Eviction"}, call.Key.Name, f)
	}
	asked := eviction{Call: call, dryRun: call.DryRun || len(o.Strings("dryRun")) > 0, delete: registry.DeleteOptions{
		UID: o.String("preconditions", "uid"), Version: o.String("preconditions", "resourceVersion"), Propagation: o.String("propagationPolicy"),
	}}
	if v, _ := o.Get("gracePeriodSeconds"); v != nil {
		grace := o.Int("gracePeriodSeconds")
		asked.delete.GraceSeconds = &grace
	}
	for range tries {
		e := asked
		if err := e.run(ctx); !e.pinned || !meta.IsConflict(err) {
			return nil, err
		}
	}
	return nil, refusal(10, "The pod "+call.Key.Name+" changes while it is looked at.")
}

// run looks at the pod and evicts it.
func (e *eviction) run(ctx context.Context) (err error) {
	if e.pod, err = e.Client.Get(ctx, pods, e.Key); err != nil {
		return err
	}
	if err := e.asked(e.pod); err != nil {
		return err
	}
	if err := e.spend(ctx); err != nil {
		return err
	}
	return e.end(ctx)
}

// pin lets the pod go only as it is now.
func (e *eviction) pin() {
	if e.delete.Version == "" {
		e.delete.Version, e.pinned = e.pod.ResourceVersion(), true
	}
}

// asked checks that a pod is the one that is meant.
func (e *eviction) asked(pod *meta.Object) error {
	name := meta.GroupResource{Resource: "Pod"}
	switch {
	case e.delete.UID != "" && e.delete.UID != pod.UID():
		return meta.Conflict(name, e.Key.Name, fmt.Sprintf("the UID of the precondition (%s) is not that of the object (%s)", e.delete.UID, pod.UID()))
	case e.delete.Version != "" && e.delete.Version != pod.ResourceVersion():
		return meta.Conflict(name, e.Key.Name, fmt.Sprintf("the resourceVersion of the precondition (%s) is not that of the object (%s)", e.delete.Version, pod.ResourceVersion()))
	}
	return nil
}

// spend takes the eviction out of the budget that the pod has. A pod that does not run
// needs none, as long as it does not.
func (e *eviction) spend(ctx context.Context) error {
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
	budgets := meta.GroupResource{Group: e.Names.Group(names.GroupPolicy), Resource: "poddisruptionbudgets"}
	budget, err := e.budget(ctx, budgets)
	if err != nil || budget == nil || e.free(budget) {
		return err
	}
	if e.dryRun {
		return e.take(budget.Clone())
	}
	_, err = e.Client.Update(ctx, budgets, meta.Key{Namespace: e.Key.Namespace, Name: budget.Name()}, "status", e.take)
	return err
}

// budget returns the one budget whose selector the pod matches, or nil.
func (e *eviction) budget(ctx context.Context, r meta.GroupResource) (found *meta.Object, err error) {
	list, err := e.Client.List(ctx, r, e.Key.Namespace)
	if err != nil && !meta.IsNotFound(err) {
		return nil, err
	}
	for _, b := range list {
		s, err := meta.LabelSelectorFromObject(b.Map("spec", "selector"))
		labels := e.pod.Labels()
		if err != nil || b.Map("spec", "selector") == nil || !s.Matches(func(key string) (string, bool) { v, ok := labels[key]; return v, ok }) {
			continue
		}
		if found != nil {
			return nil, meta.Failure(http.StatusInternalServerError, "", "the pod %s has several disruption budgets, which an eviction cannot keep to", e.Key)
		}
		found = b
	}
	return found, nil
}

// free reports whether the pod may go without a change of the budget, since it is not
// ready. It must stay as it is until then.
func (e *eviction) free(budget *meta.Object) bool {
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

// take counts down a budget, or says why it cannot.
func (e *eviction) take(budget *meta.Object) error {
	const most = 2000
	allowed, name := budget.Int("status", "disruptionsAllowed"), budget.Name()
	switch {
	case budget.Int("status", "observedGeneration") < budget.Generation():
		return refusal(10, "The disruption budget "+name+" is still being processed by the server.")
	case allowed <= 0:
		return refusal(0, fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently",
			name, budget.Int("status", "desiredHealthy"), budget.Int("status", "currentHealthy")))
	case len(budget.Map("status", "disruptedPods")) > most:
		return meta.Forbidden(meta.GroupResource{Group: e.Names.Group(names.GroupPolicy), Resource: "poddisruptionbudgets"}, name, "too many evictions are not confirmed by the controller")
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

// refusal says that a budget does not allow an eviction now.
func refusal(seconds int, why string) error {
	st := meta.Failure(http.StatusTooManyRequests, meta.ReasonTooManyRequests, "Cannot evict pod as it would violate the pod's disruption budget.")
	st.Details = &meta.Details{RetryAfterSeconds: seconds, Causes: []meta.Cause{{Reason: "DisruptionBudget", Message: why}}}
	return st
}

// end tells in the pod's status why it goes, and deletes it.
func (e *eviction) end(ctx context.Context) error {
	if e.dryRun {
		return nil
	}
	pod, err := e.Client.Update(ctx, pods, e.Key, "eviction", func(pod *meta.Object) error {
		if err := e.asked(pod); err != nil {
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
