package apps

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/replicas"
)

// validateDeployment checks the spec, or for a write of the status only the status.
func validateDeployment(w *registry.Change[Deployment]) {
	switch w.Subresource {
	case "status":
		w.New.Status.validate(&w.Violations, &w.Old.Status)
		return
	case "scale":
		return // the scale subresource validates its single field
	}
	s, at := &w.New.Spec, check.At("spec")
	checkPods(w, s.Selector, &s.Template, w.Old != nil && check.SemanticEqual(s.Template, w.Old.Spec.Template))
	s.Strategy.validate(&w.Violations, at.Field("strategy"))
	if n := s.ProgressDeadlineSeconds; n != nil && *n <= s.MinReadySeconds {
		w.Invalid(at.Field("progressDeadlineSeconds"), *n, "must be greater than minReadySeconds")
	}
	if w.Old != nil && !selectorMutable(w.Version) {
		w.Unchanged(at.Field("selector"), s.Selector, w.Old.Spec.Selector)
	}
}

func (s *DeploymentStrategy) validate(f *check.Violations, at *check.Path) {
	switch s.Type {
	case recreate:
		if s.RollingUpdate != nil {
			f.Forbidden(at.Field("rollingUpdate"), "may not be specified when strategy `type` is 'Recreate'")
		}
	case rollingUpdate:
		if s.RollingUpdate == nil {
			f.Required(at.Field("rollingUpdate"), "this should be defaulted and never be nil")
			return
		}
		s.RollingUpdate.validate(f, at.Field("rollingUpdate"))
	default:
		f.NotSupported(at, s, schema.EnumOf[DeploymentStrategy]("Type")...)
	}
}

func (r *RollingUpdateDeployment) validate(f *check.Violations, at *check.Path) {
	if isZero(r.MaxUnavailable) && isZero(r.MaxSurge) {
		f.Invalid(at.Field("maxUnavailable"), r.MaxUnavailable, "may not be 0 when `maxSurge` is 0")
	}
	checkPercent(f, at.Field("maxUnavailable"), r.MaxUnavailable)
}

func (s *DeploymentStatus) validate(f *check.Violations, old *DeploymentStatus) {
	all, ready := replicas.Part{Field: "replicas", Pods: s.Replicas}, replicas.Part{Field: "readyReplicas", Pods: s.ReadyReplicas}
	available := replicas.Part{Field: "availableReplicas", Pods: s.AvailableReplicas}
	replicas.Within(f, all, replicas.Part{Field: "updatedReplicas", Pods: s.UpdatedReplicas}, ready, available)
	replicas.Within(f, ready, available)
	checkCollisionCount(f, s.CollisionCount, old.CollisionCount)
}
