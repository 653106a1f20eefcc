package codec

import (
	"reflect"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

// MetaProtos has the protobuf encodings of objects that are not kinds, and the schema for
// decoding DeleteOptions.
type MetaProtos struct {
	Status, DeleteOptions *Proto
	Partial               *Proto // PartialObjectMetadata of any kind

	DeleteOptionsSchema *schema.Schema
}

// Metas returns the encodings. They are the same in every profile.
func Metas() MetaProtos { return metas() }

var metas = sync.OnceValue(func() MetaProtos {
	status, _ := mustProto[status]()
	options, shape := mustProto[deleteOptions]()
	partial, _ := mustProto[partial]()
	return MetaProtos{Status: status, DeleteOptions: options, Partial: partial, DeleteOptionsSchema: shape}
})

func mustProto[T any]() (*Proto, *schema.Schema) {
	s, err := schema.Go(reflect.TypeFor[T](), names.Orch)
	if err != nil {
		return &Proto{&protoMessage{}}, &schema.Schema{} // tests fail if this happens
	}
	p, err := NewProto(s)
	if err != nil {
		return &Proto{&protoMessage{}}, s
	}
	return p, s
}

type status struct {
	meta.TypeMeta `json:",inline"`
	meta.ListMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	Status        string         `json:"status,omitempty" protobuf:"bytes,2,opt,name=status"`
	Message       string         `json:"message,omitempty" protobuf:"bytes,3,opt,name=message"`
	Reason        string         `json:"reason,omitempty" protobuf:"bytes,4,opt,name=reason"`
	Details       *statusDetails `json:"details,omitempty" protobuf:"bytes,5,opt,name=details"`
	Code          int32          `json:"code,omitempty" protobuf:"varint,6,opt,name=code"`
}

type partial struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
}

type statusDetails struct {
	Name              string        `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
	Group             string        `json:"group,omitempty" protobuf:"bytes,2,opt,name=group"`
	Kind              string        `json:"kind,omitempty" protobuf:"bytes,3,opt,name=kind"`
	Causes            []statusCause `json:"causes,omitempty" protobuf:"bytes,4,rep,name=causes"`
	RetryAfterSeconds int32         `json:"retryAfterSeconds,omitempty" protobuf:"varint,5,opt,name=retryAfterSeconds"`
	UID               string        `json:"uid,omitempty" protobuf:"bytes,6,opt,name=uid"`
}

type statusCause struct {
	Reason  string `json:"reason,omitempty" protobuf:"bytes,1,opt,name=reason"`
	Message string `json:"message,omitempty" protobuf:"bytes,2,opt,name=message"`
	Field   string `json:"field,omitempty" protobuf:"bytes,3,opt,name=field"`
}

type deleteOptions struct {
	meta.TypeMeta      `json:",inline"`
	GracePeriodSeconds *int64         `json:"gracePeriodSeconds,omitempty" protobuf:"varint,1,opt,name=gracePeriodSeconds"`
	Preconditions      *preconditions `json:"preconditions,omitempty" protobuf:"bytes,2,opt,name=preconditions"`
	OrphanDependents   *bool          `json:"orphanDependents,omitempty" protobuf:"varint,3,opt,name=orphanDependents"`
	PropagationPolicy  *string        `json:"propagationPolicy,omitempty" protobuf:"bytes,4,opt,name=propagationPolicy"`
	DryRun             []string       `json:"dryRun,omitempty" protobuf:"bytes,5,rep,name=dryRun"`
	IgnoreReadError    *bool          `json:"ignoreStoreReadErrorWithClusterBreakingPotential,omitempty" protobuf:"varint,6,opt,name=ignoreStoreReadErrorWithClusterBreakingPotential"`
}

type preconditions struct {
	UID             *string `json:"uid,omitempty" protobuf:"bytes,1,opt,name=uid"`
	ResourceVersion *string `json:"resourceVersion,omitempty" protobuf:"bytes,2,opt,name=resourceVersion"`
}
