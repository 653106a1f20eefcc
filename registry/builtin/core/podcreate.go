package core

import (
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// preparePod gives a new pod its first status, and what nodes and schedulers
// count on: an account, a priority, and how long it stays on a node in trouble.
func preparePod(w *registry.Change[meta.Object]) {
	obj := w.New
	for _, taint := range []string{names.TaintNotReady, names.TaintUnreachable} {
		tolerate(obj, w.Names.Wire(taint))
	}
	if w.Old != nil {
		return
	}
	obj.Set(map[string]any{"phase": "Pending", "qosClass": qosClass(sharesOf(obj.Map("spec")))}, "status")
	if len(obj.List("spec", "schedulingGates")) > 0 {
		obj.Set([]any{map[string]any{
			"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "lastProbeTime": nil, "lastTransitionTime": meta.FormatTime(time.Now()),
			"message": "The pod is not scheduled as long as it has scheduling gates",
		}}, "status", "conditions")
	}
	if obj.Int("spec", "terminationGracePeriodSeconds") < 0 {
		obj.Set(int64(1), "spec", "terminationGracePeriodSeconds")
	}
	fill(obj, defaultAccount, "spec", "serviceAccountName")
	obj.Set(obj.String("spec", "serviceAccountName"), "spec", "serviceAccount")
	if obj.String("spec", "priorityClassName") == "" {
		fill(obj, int64(0), "spec", "priority")
	}
	fill(obj, "PreemptLowerPriority", "spec", "preemptionPolicy")
	widenSelectors(obj)
}

const (
	defaultAccount = "default"
	tolerated      = 300 // seconds
)

// tolerate lets a pod stay for a while on a node that got a taint, unless the
// pod says itself what it tolerates.
func tolerate(obj *meta.Object, taint string) {
	list := obj.List("spec", "tolerations")
	for _, v := range list {
		t, _ := v.(map[string]any)
		effect, _ := t["effect"].(string)
		key, _ := t["key"].(string)
		if (key == taint || key == "" && t["operator"] == "Exists") && (effect == "NoExecute" || effect == "") {
			return
		}
	}
	obj.Set(append(list, map[string]any{
		"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(tolerated),
	}), "spec", "tolerations")
}

// widenSelectors adds to the selectors of a new pod's affinities and spreading
// the labels of the pod that they are to share with it, or not to share.
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
