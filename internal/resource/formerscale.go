package resource

import (
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// formerScaleBody is the body of the sub-resource scale in versions that are older than
// autoscaling/v1.
type formerScaleBody struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata" doc:"Standard object metadata."`

	Spec   scaleSpec         `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec" doc:"The wanted size."`
	Status formerScaleStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status" doc:"The current size."`
}

// formerScaleStatus is the current size, as the owner of the object reports it.
type formerScaleStatus struct {
	Replicas       int32             `json:"replicas" protobuf:"varint,1,opt,name=replicas" doc:"How many instances there are."`
	Selector       map[string]string `json:"selector,omitempty" protobuf:"bytes,2,rep,name=selector" doc:"The labels of the instances, if that is all that selects them."`
	TargetSelector string            `json:"targetSelector,omitempty" protobuf:"bytes,3,opt,name=targetSelector" doc:"The label selector of the instances, as text."`
}

// formerScales are the versions that have a Scale of their own, in their own group.
func formerScales() []meta.GroupVersion {
	return []meta.GroupVersion{
		{Group: names.GroupFormer, Version: "v1beta1"}, {Group: names.GroupApps, Version: "v1beta1"}, {Group: names.GroupApps, Version: "v1beta2"},
	}
}

// scaleIn returns the sub-resource scale as callers of a version know it.
func (c *compiler) scaleIn(v *Version, sub Subresource) Subresource {
	gv := v.GroupVersion()
	if !slices.Contains(formerScales(), gv) {
		return sub
	}
	show := sub.Show
	sub.Show = func(obj *meta.Object) *meta.Object { return formerScale(gv, show(obj)) }
	sub.Subresource.Body = registry.Of(registry.Definition[formerScaleBody]{Group: gv.Group, Version: gv.Version, Kind: "Scale", Columns: scaleColumns()})
	sub.Body = c.body(sub.Subresource)
	return sub
}

// formerScale makes a Scale that was just made one of an older version. Its selector is
// one of labels, unless there is more to it than they can say.
func formerScale(gv meta.GroupVersion, s *meta.Object) *meta.Object {
	s.SetGVK(meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: "Scale"})
	text := s.String("status", "selector")
	if text == "" {
		return s
	}
	s.Delete("status", "selector")
	s.Set(text, "status", "targetSelector")
	if labels := labelsOf(text); labels != nil {
		s.Set(labels, "status", "selector")
	}
	return s
}

// labelsOf returns the labels that a selector asks for, nil if it asks for more.
func labelsOf(text string) map[string]any {
	sel, err := meta.ParseLabelSelector(text)
	if err != nil {
		return nil
	}
	labels := map[string]any{}
	for _, e := range sel.Expressions() {
		if _, again := labels[e.Key]; again || e.Operator != "In" || len(e.Values) != 1 {
			return nil
		}
		labels[e.Key] = e.Values[0]
	}
	return labels
}
