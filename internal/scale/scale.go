// Package scale defines the body of the subresource scale.
package scale

import "orch.io/controlplane/api/meta"

// Scale is the kind Scale of autoscaling/v1.
type Scale struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata" doc:"Standard object's metadata."`

	Spec   Spec   `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec" doc:"The desired number of replicas."`
	Status Status `json:"status,omitempty" protobuf:"bytes,3,opt,name=status" doc:"The observed number of replicas."`
}

// Spec is the desired size of a workload.
type Spec struct {
	Replicas int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas" doc:"The desired number of instances."`
}

// Status is the observed size of a workload.
type Status struct {
	Replicas int32  `json:"replicas" protobuf:"varint,1,opt,name=replicas" doc:"The number of observed instances."`
	Selector string `json:"selector,omitempty" protobuf:"bytes,2,opt,name=selector" doc:"The selector of the instances in the syntax of the query parameter."`
}
