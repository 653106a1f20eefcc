package meta

import "encoding/json"

// TypeMeta identifies the type of an object or list. Inline it into the struct of a kind.
type TypeMeta struct {
	// Kind is the kind of the object, in upper camel case. It cannot change.
	Kind string `json:"kind,omitempty" protobuf:"bytes,1,opt,name=kind"`

	// APIVersion defines the group and version of the schema, "v1" or "apps/v1".
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,2,opt,name=apiVersion"`
}

// ListMeta is the metadata of a list.
type ListMeta struct {
	// SelfLink is no longer set.
	SelfLink string `json:"selfLink,omitempty" protobuf:"bytes,1,opt,name=selfLink"`

	// ResourceVersion is the version of the list. A watch can start from it.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"bytes,2,opt,name=resourceVersion"`

	// Continue is the token of the next page; empty on the last.
	Continue string `json:"continue,omitempty" protobuf:"bytes,3,opt,name=continue"`

	// RemainingItemCount is the number of items after this page. It is unset
	// if the number is unknown or the list has a selector.
	RemainingItemCount *int64 `json:"remainingItemCount,omitempty" protobuf:"bytes,4,opt,name=remainingItemCount"`
}

// ObjectMeta is the metadata of every object. Clients set the name, labels,
// annotations, owner references and finalizers; the server sets the rest.
type ObjectMeta struct {
	// Name is unique among the objects of the same kind and namespace. It
	// cannot change.
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`

	// GenerateName is the start of a name that the server completes with a
	// random suffix, if name is empty on create.
	GenerateName string `json:"generateName,omitempty" protobuf:"bytes,2,opt,name=generateName"`

	// Namespace is the namespace that the object lives in; empty for kinds of
	// cluster scope. It cannot change.
	Namespace string `json:"namespace,omitempty" protobuf:"bytes,3,opt,name=namespace"`

	// SelfLink is no longer set.
	SelfLink string `json:"selfLink,omitempty" protobuf:"bytes,4,opt,name=selfLink"`

	// UID distinguishes the object from earlier and later objects of the same
	// name. The server sets it on create.
	UID string `json:"uid,omitempty" protobuf:"bytes,5,opt,name=uid"`

	// ResourceVersion changes with every change of the object. If an update
	// has it, the update is refused if the object was changed since.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"bytes,6,opt,name=resourceVersion"`

	// Generation counts the changes of the desired state.
	Generation int64 `json:"generation,omitempty" protobuf:"varint,7,opt,name=generation"`

	// CreationTimestamp is the time of the creation, by the server's clock.
	CreationTimestamp Time `json:"creationTimestamp,omitzero" protobuf:"bytes,8,opt,name=creationTimestamp"`

	// DeletionTimestamp is set by the server when a deletion has been requested
	// but must wait for finalizers or the grace period. It is the time at which
	// the grace period ends.
	DeletionTimestamp *Time `json:"deletionTimestamp,omitempty" protobuf:"bytes,9,opt,name=deletionTimestamp"`

	// DeletionGracePeriodSeconds is the time that the object has to terminate.
	// It is set together with deletionTimestamp and can only be shortened.
	DeletionGracePeriodSeconds *int64 `json:"deletionGracePeriodSeconds,omitempty" protobuf:"varint,10,opt,name=deletionGracePeriodSeconds"`

	// Labels are keys and values by which selectors select objects.
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,11,rep,name=labels"`

	// Annotations are arbitrary data of tools. Selectors cannot use them.
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,12,rep,name=annotations"`

	// OwnerReferences identify the owners of the object. When all owners are
	// deleted, the object is garbage collected.
	OwnerReferences []OwnerReference `json:"ownerReferences,omitempty" protobuf:"bytes,13,rep,name=ownerReferences" patchStrategy:"merge" patchMergeKey:"uid" schema:"listType=map,listMapKeys=uid"`

	// Finalizers delay the removal of a deleted object. Each is removed by the
	// component that added it.
	Finalizers []string `json:"finalizers,omitempty" protobuf:"bytes,14,rep,name=finalizers" patchStrategy:"merge" schema:"listType=set"`

	// ManagedFields record which manager set which fields. The server
	// maintains them.
	ManagedFields []ManagedFieldsEntry `json:"managedFields,omitempty" protobuf:"bytes,17,rep,name=managedFields" schema:"listType=atomic"`
}

// OwnerReference identifies an owner of an object.
type OwnerReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Kind of the owner.
	Kind string `json:"kind" protobuf:"bytes,1,opt,name=kind" schema:"required"`

	// Name of the owner.
	Name string `json:"name" protobuf:"bytes,3,opt,name=name" schema:"required"`

	// UID of the owner.
	UID string `json:"uid" protobuf:"bytes,4,opt,name=uid" schema:"required"`

	// APIVersion of the owner.
	APIVersion string `json:"apiVersion" protobuf:"bytes,5,opt,name=apiVersion" schema:"required"`

	// Controller is true for the one owner that manages the object.
	Controller *bool `json:"controller,omitempty" protobuf:"varint,6,opt,name=controller"`

	// BlockOwnerDeletion keeps the owner, if it is deleted in the foreground,
	// until this object is gone.
	BlockOwnerDeletion *bool `json:"blockOwnerDeletion,omitempty" protobuf:"varint,7,opt,name=blockOwnerDeletion"`
}

// ManagedFieldsEntry describes the fields that one manager set by one kind of operation.
type ManagedFieldsEntry struct {
	// Manager is the name of the workflow that set the fields.
	Manager string `json:"manager,omitempty" protobuf:"bytes,1,opt,name=manager"`

	// Operation is Apply or Update.
	Operation string `json:"operation,omitempty" protobuf:"bytes,2,opt,name=operation"`

	// APIVersion is the version that the field names belong to.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,3,opt,name=apiVersion"`

	// Time is when the set of fields last changed.
	Time *Time `json:"time,omitempty" protobuf:"bytes,4,opt,name=time"`

	// FieldsType is the format of fieldsV1. The only format is FieldsV1.
	FieldsType string `json:"fieldsType,omitempty" protobuf:"bytes,6,opt,name=fieldsType"`

	// FieldsV1 is the set of fields: "f:name" leads to a field, "k:{...}" and
	// "v:..." to list items, "." is the value itself.
	FieldsV1 *Fields `json:"fieldsV1,omitempty" protobuf:"bytes,7,opt,name=fieldsV1"`

	// Subresource is the subresource that was written; empty for the object.
	Subresource string `json:"subresource,omitempty" protobuf:"bytes,8,opt,name=subresource"`
}

// Fields is a set of field paths as JSON.
type Fields struct{ Raw json.RawMessage }

// APIForm returns the name of the encoding for package schema.
func (Fields) APIForm() string { return "fields" }

// MarshalJSON writes the text unchanged.
func (f Fields) MarshalJSON() ([]byte, error) {
	if f.Raw == nil {
		return []byte("null"), nil
	}
	return f.Raw, nil
}

// UnmarshalJSON copies the text.
func (f *Fields) UnmarshalJSON(b []byte) error {
	if string(b) != "null" {
		f.Raw = append(f.Raw[:0], b...)
	}
	return nil
}
