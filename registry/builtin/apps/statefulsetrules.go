package apps

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/replicas"
)

// retain is the policy that keeps claims.
const retain = "Retain"

// validateStatefulSet checks the spec, or for a write of the status only the status. The service name
// and the claim templates are immutable and therefore checked on create only.
func validateStatefulSet(w *registry.Change[StatefulSet]) {
	switch w.Subresource {
	case "status":
		w.New.Status.validate(&w.Violations, &w.Old.Status)
		return
	case "scale":
		return // the scale subresource validates its single field
	}
	s, at := &w.New.Spec, check.At("spec")
	if p := s.PodManagementPolicy; p != "OrderedReady" && p != "Parallel" {
		w.Invalid(at.Field("podManagementPolicy"), p, "must be 'OrderedReady' or 'Parallel'")
	}
	s.UpdateStrategy.validate(&w.Violations, at.Field("updateStrategy"))
	if w.Old == nil {
		if s.ServiceName != "" {
			w.Format(at.Field("serviceName"), s.ServiceName, meta.CheckDNSLabel(s.ServiceName))
		}
		for i := range s.VolumeClaimTemplates {
			w.Violations = append(w.Violations, core.CheckClaimTemplate(w.Names, w.SchemaViolations, at.Field("volumeClaimTemplates").Index(i), &s.VolumeClaimTemplates[i])...)
		}
	}
	template, faults := core.WithClaims(at.Field("template"), &s.Template, s.VolumeClaimTemplates)
	unchanged := w.Old != nil && check.SemanticEqual(s.Template, w.Old.Spec.Template) && check.SemanticEqual(s.VolumeClaimTemplates, w.Old.Spec.VolumeClaimTemplates)
	if !unchanged {
		w.Violations, w.SchemaViolations = append(w.Violations, faults...), slices.Concat(w.SchemaViolations, faults)
	}
	checkPods(w, s.Selector, template, unchanged)
	w.Violations = repeatViolations(w.Violations, at.Field("template").Field("labels").String(), at.Field("template").Field("annotations").String())
	if w.Old != nil {
		s.checkImmutable(&w.Violations, at, &w.Old.Spec)
	}
}

// repeatViolations repeats each run of violations of the given fields after itself, because
// kube-apiserver reports them repeatViolations.
func repeatViolations(faults check.Violations, fields ...string) check.Violations {
	var out check.Violations
	first := 0 // index of the first violation of the current run
	for i, f := range faults {
		if f.Field != faults[first].Field {
			first = i
		}
		out = append(out, f)
		if last := i+1 == len(faults) || faults[i+1].Field != f.Field; last && slices.Contains(fields, f.Field) {
			out = append(out, faults[first:i+1]...)
		}
	}
	return out
}

// checkImmutable checks that an update changes no immutable field.
func (s *StatefulSetSpec) checkImmutable(f *check.Violations, at *check.Path, old *StatefulSetSpec) {
	f.Unchanged(at.Field("selector"), s.Selector, old.Selector)
	f.Unchanged(at.Field("volumeClaimTemplates"), s.VolumeClaimTemplates, old.VolumeClaimTemplates)
	f.Unchanged(at.Field("serviceName"), s.ServiceName, old.ServiceName)
	f.Unchanged(at.Field("podManagementPolicy"), s.PodManagementPolicy, old.PodManagementPolicy)
}

func (s *StatefulSetUpdateStrategy) validate(f *check.Violations, at *check.Path) {
	r, rolling := s.RollingUpdate, at.Field("rollingUpdate")
	switch {
	case s.Type != rollingUpdate && s.Type != onDelete:
		f.Invalid(at, s, "type must be 'RollingUpdate' or 'OnDelete'")
	case r == nil:
	case s.Type == onDelete:
		f.Invalid(rolling, r, "may only be set when `type` is 'RollingUpdate'")
	case r.MaxUnavailable != nil:
		maxUnavailable := rolling.Field("maxUnavailable")
		if isZero(r.MaxUnavailable) {
			f.Invalid(maxUnavailable, r.MaxUnavailable, "cannot be 0")
		}
		checkPercent(f, maxUnavailable, r.MaxUnavailable)
	}
}

func (s *StatefulSetStatus) validate(f *check.Violations, old *StatefulSetStatus) {
	all, ready := replicas.Part{Field: "replicas", Pods: s.Replicas}, replicas.Part{Field: "readyReplicas", Pods: s.ReadyReplicas}
	current, updated := replicas.Part{Field: "currentReplicas", Pods: s.CurrentReplicas}, replicas.Part{Field: "updatedReplicas", Pods: s.UpdatedReplicas}
	available := replicas.Part{Field: "availableReplicas", Pods: s.AvailableReplicas}
	replicas.Within(f, all, ready, current, updated, available)
	replicas.Within(f, ready, available)
	checkCollisionCount(f, s.CollisionCount, old.CollisionCount)
}

func warnOfStatefulSet(w *registry.Change[StatefulSet]) (texts []string) {
	s := &w.New.Spec
	if n := s.RevisionHistoryLimit; n != nil && *n < 0 {
		texts = append(texts, "spec.revisionHistoryLimit: a negative value keeps all old templates; 0 or more is recommended")
	}
	for i, claim := range s.VolumeClaimTemplates {
		if q := claim.Spec.Resources.Requests["storage"]; !q.IsInteger() {
			texts = append(texts, fmt.Sprintf("spec.volumeClaimTemplates[%d].resources.requests[storage]: fractional byte value %q is invalid, must be an integer", i, q))
		}
	}
	return texts
}
