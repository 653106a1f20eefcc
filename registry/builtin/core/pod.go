package core

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/policy"
)

// Pod is a group of containers that run together on a node.
type Pod struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the desired state.
	Spec PodSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the observed state, which the kubelet and the scheduler report.
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
			Default:     defaultPod,
			Prepare:     preparePod,
			GracePeriod: podGrace,
			Warn:        warnOfNewPod,
			Changed: func(w *registry.Change[meta.Object]) bool {
				return w.Subresource != "binding" && !meta.Equal(w.New.Map("spec"), w.Old.Map("spec"))
			},
		},
		Reference: &compat.Reference{
			StatusMetadata: []string{"labels", "annotations", "finalizers"}, // the kubelet must not change owners
		},
	})
}

// warnOfNewPod returns warnings about a new pod. Updates have none, because controllers make most of
// them.
func warnOfNewPod(w *registry.Change[meta.Object]) []string {
	if w.Old != nil {
		return nil
	}
	return append(warnOfHostname(w, "the Pod's hostname"), WarnOfPod(w, "spec")...)
}

// podGrace returns the grace period of a deletion in seconds: 0 unless the pod may be running on a
// node.
func podGrace(obj *meta.Object, requested *int64) int64 {
	if obj.String("spec", "nodeName") == "" {
		return 0
	}
	if phase := obj.String("status", "phase"); phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	grace := obj.Int("spec", "terminationGracePeriodSeconds")
	if requested != nil {
		grace = *requested
	}
	if grace < 0 {
		return 1
	}
	return grace
}

// mergePodStatus copies the status of in to obj. It keeps the QoS class, which kubelets may omit.
func mergePodStatus(obj, in *meta.Object) {
	class := obj.String("status", "qosClass")
	obj.CopyField(in, "status")
	if class != "" {
		setDefault(obj, class, "status", "qosClass")
	}
}

// mergeEphemeral copies the ephemeral containers of in to obj.
func mergeEphemeral(obj, in *meta.Object) {
	obj.Delete("spec", "ephemeralContainers")
	if list := in.List("spec", "ephemeralContainers"); len(list) > 0 {
		obj.Set(meta.Clone(list), "spec", "ephemeralContainers")
	}
}
