package core

import (
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
	"orch.io/controlplane/registry"
)

// preparePod sets the status of a new pod, and completes fields that depend on annotations and labels.
func preparePod(w *registry.Change[meta.Object]) {
	obj := w.New
	if w.Old != nil {
		return
	}
	obj.Set(map[string]any{"phase": "Pending", "qosClass": podspec.QoS(podspec.Shares(obj.Map("spec")))}, "status")
	if len(obj.List("spec", "schedulingGates")) > 0 {
		obj.Set([]any{map[string]any{
			"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": nil, "lastTransitionTime": meta.FormatTime(time.Now()),
			"message": "The pod is not scheduled as long as it has scheduling gates",
		}}, "status", "conditions")
	}
	if obj.Int("spec", "terminationGracePeriodSeconds") < 0 {
		obj.Set(int64(1), "spec", "terminationGracePeriodSeconds")
	}
	adoptProfiles(w.Names, obj)
	widenSelectors(obj)
}

// widenSelectors adds matchLabelKeys and mismatchLabelKeys of a new pod, with its label values, to the
// selectors of affinity terms and topology spread constraints.
func widenSelectors(obj *meta.Object) {
	labels := obj.Map("metadata", "labels")
	widen := func(v any) {
		m, _ := v.(map[string]any)
		s, ok := m["labelSelector"].(map[string]any)
		if !ok {
			return
		}
		list, _ := s["matchExpressions"].([]any)
		for _, keys := range []struct{ field, operator string }{{"matchLabelKeys", "In"}, {"mismatchLabelKeys", "NotIn"}} {
			for _, key := range meta.NewObject(m).Strings(keys.field) {
				if value, ok := labels[key]; ok {
					list = append(list, map[string]any{"key": key, "operator": keys.operator, "values": []any{value}})
				}
			}
		}
		if len(list) > 0 {
			s["matchExpressions"] = list
		}
	}
	for _, v := range obj.List("spec", "topologySpreadConstraints") {
		widen(v)
	}
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		for _, v := range obj.List("spec", "affinity", kind, required) {
			widen(v)
		}
		for _, v := range obj.List("spec", "affinity", kind, preferred) {
			m, _ := v.(map[string]any)
			widen(m["podAffinityTerm"])
		}
	}
}
