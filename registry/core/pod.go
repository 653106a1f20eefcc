package core

import (
	"context"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// Pod is a group of containers that run together on one node.
type Pod struct {
	meta.TypeMeta `json:",inline"`

	// Standard object metadata.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what shall run, and how.
	Spec PodSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the node and the scheduler last reported.
	Status PodStatus `json:"status,omitempty" protobuf:"3"`
}

func pods(p names.Profile) *registry.Kind {
	return registry.Of(registry.Definition[Pod]{
		Version:    version,
		Source:     source,
		Kind:       "Pod",
		ShortNames: []string{"po"},
		Categories: []string{"all"},
		Status:     true,
		Columns:    podColumns(),
		Validate:   func(ctx context.Context, old, new *Pod) []meta.Cause { return validatePod(ctx, p, old, new) },
		Behavior: registry.Behavior{
			SelfChecked: true,
			StatusKeeps: []string{"ownerReferences"},
			Default:     defaultPod,
			Prepare:     preparePod(p),
			Grace:       podGrace,
			Warn:        WarnOfVolumes(p, "spec"),
			Fields: []registry.SelectableField{
				{Name: "spec.nodeName"},
				{Name: "spec.restartPolicy"},
				{Name: "spec.schedulerName"},
				{Name: "spec.serviceAccountName"},
				{Name: "spec.hostNetwork", Absent: "false"},
				{Name: "status.phase"},
				{Name: "status.podIP"},
				{Name: "status.nominatedNodeName"},
			},
			Subresources: []registry.Subresource{
				{Name: "status", Merge: mergePodStatus},
				{Name: "ephemeralcontainers", Merge: mergeEphemeral, Validate: validateEphemeral},
			},
		},
	})
}

// preparePod gives a new pod its first status, and what nodes and schedulers
// count on: an account, a priority, and how long it stays on a node in trouble.
func preparePod(p names.Profile) func(context.Context, *meta.Object, *meta.Object) {
	return func(_ context.Context, obj, old *meta.Object) {
		for _, taint := range []string{names.TaintNotReady, names.TaintUnreachable} {
			tolerate(obj, p.Wire(taint))
		}
		if old != nil {
			return
		}
		obj.Set(map[string]any{"phase": "Pending", "qosClass": qosClass(obj.Map("spec"))}, "status")
		fill(obj, defaultAccount, "spec", "serviceAccountName")
		obj.Set(obj.String("spec", "serviceAccountName"), "spec", "serviceAccount")
		if obj.String("spec", "priorityClassName") == "" {
			fill(obj, int64(0), "spec", "priority")
		}
		fill(obj, "PreemptLowerPriority", "spec", "preemptionPolicy")
	}
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

// podGrace returns the seconds that a pod gets to end: none unless it may run
// on a node.
func podGrace(obj *meta.Object, asked *int64) int64 {
	if obj.String("spec", "nodeName") == "" {
		return 0
	}
	if phase := obj.String("status", "phase"); phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	grace := obj.Int("spec", "terminationGracePeriodSeconds")
	if asked != nil {
		grace = *asked
	}
	if grace < 0 {
		return 1
	}
	return grace
}

// qosClass returns the class that requests and limits of cpu and memory give.
func qosClass(spec map[string]any) string {
	some, guaranteed := false, true
	for _, m := range containersOf(spec, "containers", "initContainers") {
		c := meta.NewObject(m)
		for _, name := range []string{"cpu", "memory"} {
			request, limit := c.String("resources", "requests", name), c.String("resources", "limits", name)
			some = some || request != "" && request != "0" || limit != "" && limit != "0"
			guaranteed = guaranteed && limit != "" && request == limit
		}
	}
	switch {
	case !some:
		return "BestEffort"
	case guaranteed:
		return "Guaranteed"
	}
	return "Burstable"
}

// mergePodStatus takes the status of in. The class was given on create, and
// nodes may leave it out.
func mergePodStatus(obj, in *meta.Object) {
	class := obj.String("status", "qosClass")
	registry.MergeStatus(obj, in, "labels", "annotations", "finalizers")
	if class != "" {
		fill(obj, class, "status", "qosClass")
	}
}

// mergeEphemeral takes the ephemeral containers of in.
func mergeEphemeral(obj, in *meta.Object) {
	obj.Delete("spec", "ephemeralContainers")
	if list := in.List("spec", "ephemeralContainers"); len(list) > 0 {
		obj.Set(meta.Clone(list), "spec", "ephemeralContainers")
	}
}
