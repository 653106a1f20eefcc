package apps

import (
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/selector"
)

func validateDeployment(w *registry.Change[Deployment]) {
	switch w.Subresource {
	case "status":
		w.Faults = w.New.Status.faults(&w.Old.Status)
		return
	case "scale":
		return // which checks the one field that it changes
	}
	f, at, s := &w.Faults, check.At("spec"), &w.New.Spec
	if checkSelector(f, at.Field("selector"), s.Selector) {
		w.Faults = append(w.Faults, templateFaults(w.Names, w.Found, at.Field("template"), s.Selector, &s.Template)...)
	}
	s.Strategy.validate(f, at.Field("strategy"))
	if n := s.ProgressDeadlineSeconds; n != nil && *n <= s.MinReadySeconds {
		f.Invalid(at.Field("progressDeadlineSeconds"), *n, "must be greater than minReadySeconds")
	}
}

// checkSelector checks the selector of a controller's pods. It reports
// whether the selector can be held against labels.
func checkSelector(f *check.Faults, at *check.Path, s *meta.Selector) bool {
	before := len(*f)
	f.Selector(at, s)
	if len(*f) > before {
		f.Invalid(at, s, "invalid label selector")
		return false
	}
	if s != nil && selector.Empty(s) {
		f.Invalid(at, s, "empty selector is invalid")
	}
	return true
}

// templateFaults checks the template of pods that run for good.
func templateFaults(p names.Profile, found check.Faults, at *check.Path, s *meta.Selector, t *core.PodTemplateSpec) []meta.Cause {
	var f check.Faults
	if !selector.Matches(s, t.Labels) {
		f.Invalid(at.Field("metadata").Field("labels"), t.Labels, "`selector` does not match template `labels`")
	}
	f = append(f, core.CheckPodTemplate(p, found, at, t)...)
	spec := at.Field("spec")
	if policy := t.Spec.RestartPolicy; policy != "Always" {
		f.NotSupported(spec.Field("restartPolicy"), policy, "Always")
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		f.Forbidden(spec.Field("activeDeadlineSeconds"), "activeDeadlineSeconds in a template is not supported")
	}
	return f
}

func (s *DeploymentStrategy) validate(f *check.Faults, at *check.Path) {
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

func (r *RollingUpdateDeployment) validate(f *check.Faults, at *check.Path) {
	if zero(r.MaxUnavailable) && zero(r.MaxSurge) {
		f.Invalid(at.Field("maxUnavailable"), r.MaxUnavailable, "may not be 0 when `maxSurge` is 0")
	}
	if r.MaxUnavailable != nil {
		if n, ok := r.MaxUnavailable.Percent(); ok && n > 100 {
			f.Invalid(at.Field("maxUnavailable"), r.MaxUnavailable, "must not be greater than 100%")
		}
	}
}

// zero reports whether a number of pods is none, as texts that are no number
// are taken to be.
func zero(v *meta.IntOrString) bool {
	if v == nil || !v.IsString {
		return v == nil || v.Int == 0
	}
	n, percent := v.Percent()
	if !percent {
		n, _ = strconv.Atoi(v.Text)
	}
	return n == 0
}

func (s *DeploymentStatus) faults(old *DeploymentStatus) []meta.Cause {
	var f check.Faults
	at := check.At("status")
	for _, n := range []struct {
		field string
		value int32
	}{{"updatedReplicas", s.UpdatedReplicas}, {"readyReplicas", s.ReadyReplicas}, {"availableReplicas", s.AvailableReplicas}} {
		if n.value > s.Replicas {
			f.Invalid(at.Field(n.field), n.value, "cannot be greater than status.replicas")
		}
	}
	if s.AvailableReplicas > s.ReadyReplicas {
		f.Invalid(at.Field("availableReplicas"), s.AvailableReplicas, "cannot be greater than readyReplicas")
	}
	if before := old.CollisionCount; before != nil && (s.CollisionCount == nil || *s.CollisionCount < *before) {
		f.Invalid(at.Field("collisionCount"), s.CollisionCount, "cannot be decremented")
	}
	return f
}
