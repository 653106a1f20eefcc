package core

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/policy"
)

// Pod is a group of containers that run together on one node.
type Pod struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what shall run, and how.
	Spec PodSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what the node and the scheduler last reported.
	Status PodStatus `json:"status,omitempty" protobuf:"3"`
}

func pods() *registry.Kind {
	return registry.Of(registry.Definition[Pod]{
		Version:    version,
		ShortNames: []string{"po"},
		Categories: []string{"all"},
		Status:     true,
		Columns:    podColumns(),
		Validate:   validatePod,
		Fields: []registry.SelectableField{
			{Name: "spec.nodeName"},
			{Name: "spec.restartPolicy"},
			{Name: "spec.schedulerName"},
			{Name: "spec.serviceAccountName"},
			{Name: "spec.hostNetwork", Absent: "false"},
			{Name: "status.phase"},
			{Name: "status.podIP"},
			{Name: "status.podIPs", Path: []string{"status", "podIP"}},
			{Name: "status.nominatedNodeName"},
		},
		Subresources: append(podConnections(), []registry.Subresource{
			{Name: "status", Merge: mergePodStatus},
			{Name: "ephemeralcontainers", Merge: mergeEphemeral, Validate: validateEphemeral},
			{Name: "resize", Merge: mergeResize},
			podBinding(),
			policy.Evict(),
			podProxy(),
		}...),
		Behavior: registry.Behavior{
			Default: defaultPod,
			Prepare: preparePod,
			Grace:   podGrace,
			Warn:    warnOfNewPod,
			Changed: func(w *registry.Change[meta.Object]) bool {
				return w.Subresource != "binding" && !meta.Equal(w.New.Map("spec"), w.Old.Map("spec"))
			},
		},
		Reference: &compat.Reference{
			StatusMetadata: []string{"labels", "annotations", "finalizers"}, // nodes do not hand pods to others
		},
	})
}

// warnOfNewPod returns the warnings about a new pod. Updates of pods have none because
// controllers, not people, make most of them.
func warnOfNewPod(w *registry.Change[meta.Object]) []string {
	if w.Old != nil {
		return nil
	}
	return append(warnOfHostname(w, "the Pod's hostname"), WarnOfPod(w, "spec")...)
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

// mergePodStatus takes the status of in. The class was given on create, and
// nodes may leave it out.
func mergePodStatus(obj, in *meta.Object) {
	class := obj.String("status", "qosClass")
	obj.CopyField(in, "status")
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
