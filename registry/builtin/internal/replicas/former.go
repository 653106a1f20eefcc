package replicas

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/scale"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// FormerScale is the body of the subresource scale in the groups before autoscaling/v1. It is in the
// group of the workload and shows the selector as labels and as text.
type FormerScale struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata" doc:"Standard object's metadata."`

	Spec   scale.Spec        `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec" doc:"The desired number of replicas."`
	Status FormerScaleStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status" doc:"The observed number of replicas."`
}

// FormerScaleStatus is the current size of a workload.
type FormerScaleStatus struct {
	Replicas       int32             `json:"replicas" protobuf:"varint,1,opt,name=replicas" doc:"The number of observed instances."`
	Selector       map[string]string `json:"selector,omitempty" protobuf:"bytes,2,rep,name=selector" doc:"The selector of the instances as labels, if labels alone express it."`
	TargetSelector string            `json:"targetSelector,omitempty" protobuf:"bytes,3,opt,name=targetSelector" doc:"The selector of the instances in the syntax of the query parameter."`
}

// scales returns the kind Scale with the versions that older versions of the workload kinds use.
func scales() *registry.Kind {
	former := func(group, version string) registry.VersionOf[scale.Scale] {
		return registry.Spoke[FormerScale, scale.Scale]{
			Group: group, Version: version, ToHub: (*FormerScale).hub, FromHub: formerScale, Lifetime: registry.Lifetime{Removed: "1.16"},
		}
	}
	return registry.Of(registry.Definition[scale.Scale]{
		Group: wellknown.GroupAutoscaling, Version: "v1",
		Versions: []registry.VersionOf[scale.Scale]{
			former(wellknown.GroupApps, "v1beta2"), former(wellknown.GroupApps, "v1beta1"), former(wellknown.GroupFormer, "v1beta1"),
		},
	})
}

func (in *FormerScale) hub(out *scale.Scale) error {
	out.Spec, out.Status = in.Spec, scale.Status{Replicas: in.Status.Replicas, Selector: in.Status.TargetSelector}
	return nil
}

func formerScale(in *scale.Scale, out *FormerScale) error {
	text := in.Status.Selector
	out.Spec, out.Status = in.Spec, FormerScaleStatus{Replicas: in.Status.Replicas, TargetSelector: text, Selector: labelsOf(text)}
	return nil
}

// labelsOf returns the labels that a selector requires, or nil if it cannot be expressed as labels
// alone.
func labelsOf(text string) map[string]string {
	sel, err := meta.ParseLabelSelector(text)
	if err != nil {
		return nil
	}
	labels := map[string]string{}
	for _, e := range sel.Requirements() {
		if _, duplicate := labels[e.Key]; duplicate || e.Operator != "In" || len(e.Values) != 1 {
			return nil
		}
		labels[e.Key] = e.Values[0]
	}
	return labels
}
