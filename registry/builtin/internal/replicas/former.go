package replicas

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/scale"
	"orch.io/controlplane/registry"
)

// FormerScale is the body of the sub-resource scale in versions that are older than
// autoscaling/v1: it is in the group of the version, and has the selector as labels, too.
type FormerScale struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata" doc:"Standard object's metadata."`

	Spec   scale.Spec        `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec" doc:"The wanted size."`
	Status FormerScaleStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status" doc:"The current size."`
}

// FormerScaleStatus is the current size, as the owner of the object reports it.
type FormerScaleStatus struct {
	Replicas       int32             `json:"replicas" protobuf:"varint,1,opt,name=replicas" doc:"How many instances there are."`
	Selector       map[string]string `json:"selector,omitempty" protobuf:"bytes,2,rep,name=selector" doc:"The labels of the instances, if that is all that selects them."`
	TargetSelector string            `json:"targetSelector,omitempty" protobuf:"bytes,3,opt,name=targetSelector" doc:"The label selector of the instances, as text."`
}

// scales is the body of the sub-resource scale of these kinds, with the versions of it that
// former versions of the kinds have.
func scales() *registry.Kind {
	former := func(group, version string) registry.VersionOf[scale.Scale] {
		return registry.Spoke[FormerScale, scale.Scale]{
			Group: group, Version: version, ToHub: (*FormerScale).hub, FromHub: formerScale, Lifetime: registry.Lifetime{Removed: "1.16"},
		}
	}
	return registry.Of(registry.Definition[scale.Scale]{
		Group: names.GroupAutoscaling, Version: "v1",
		Versions: []registry.VersionOf[scale.Scale]{
			former(names.GroupApps, "v1beta2"), former(names.GroupApps, "v1beta1"), former(names.GroupFormer, "v1beta1"),
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

// labelsOf returns the labels that a selector asks for, nil if it asks for more.
func labelsOf(text string) map[string]string {
	sel, err := meta.ParseLabelSelector(text)
	if err != nil {
		return nil
	}
	labels := map[string]string{}
	for _, e := range sel.Expressions() {
		if _, again := labels[e.Key]; again || e.Operator != "In" || len(e.Values) != 1 {
			return nil
		}
		labels[e.Key] = e.Values[0]
	}
	return labels
}
