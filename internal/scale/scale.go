// Package scale holds the body of the sub-resource scale.
package scale

import "orch.io/controlplane/api/meta"

// Scale is the body of the sub-resource scale, autoscaling/v1 Scale.
type Scale struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata" doc:"Standard object's metadata."`

	Spec   Spec   `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec" doc:"The wanted size."`
	Status Status `json:"status,omitempty" protobuf:"bytes,3,opt,name=status" doc:"The current size."`
}

// Spec is the wanted size.
type Spec struct {
	Replicas int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas" doc:"How many instances are wanted."`
}

// Status is the current size, as the owner of the object reports it.
type Status struct {
	Replicas int32  `json:"replicas" protobuf:"varint,1,opt,name=replicas" doc:"How many instances there are."`
	Selector string `json:"selector,omitempty" protobuf:"bytes,2,opt,name=selector" doc:"The label selector of the instances, as text."`
}
