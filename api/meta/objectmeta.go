package meta

import "encoding/json"

// TypeMeta identifies the type of an object or list. Inline it into the struct of a kind.
type TypeMeta struct {
	// Kind names the schema of the object, in upper camel case; it cannot change.
	Kind string `json:"kind,omitempty" protobuf:"bytes,1,opt,name=kind"`

	// APIVersion defines the group and version of the schema, "v1" or "apps/v1".
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,2,opt,name=apiVersion"`
}

// ListMeta is the metadata of a list.
type ListMeta struct {
	// SelfLink is no longer set.
	SelfLink string `json:"selfLink,omitempty" protobuf:"bytes,1,opt,name=selfLink"`

	// ResourceVersion is the version that the list shows; start a watch from it.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"bytes,2,opt,name=resourceVersion"`

	// Continue is the token of the next page; empty on the last.
	Continue string `json:"continue,omitempty" protobuf:"bytes,3,opt,name=continue"`

	// RemainingItemCount says how many items follow this page. It is left out
	// where the server does not know and for lists with a selector.
	RemainingItemCount *int64 `json:"remainingItemCount,omitempty" protobuf:"bytes,4,opt,name=remainingItemCount"`
}

// ObjectMeta is the metadata that every object has. The server keeps most of
// it; callers set the name, labels, annotations, owners and finalizers.
type ObjectMeta struct {
	// Name identifies the object among those of its kind in a namespace. It
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

	// UID tells this object from every other that had or will have its name.
	// The server sets it on create.
	UID string `json:"uid,omitempty" protobuf:"bytes,5,opt,name=uid"`

	// ResourceVersion changes with every change of the object. Sent with an
	// update, the update is refused if the object changed since.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"bytes,6,opt,name=resourceVersion"`

	// Generation counts the changes of the desired state.
	Generation int64 `json:"generation,omitempty" protobuf:"varint,7,opt,name=generation"`

	// CreationTimestamp is a timestamp, of the server's clock at the creation.
	CreationTimestamp Time `json:"creationTimestamp,omitzero" protobuf:"bytes,8,opt,name=creationTimestamp"`

	// DeletionTimestamp is set by the server when deletion was asked for and
	// something still has to happen first; it says when the object may go.
	DeletionTimestamp *Time `json:"deletionTimestamp,omitempty" protobuf:"bytes,9,opt,name=deletionTimestamp"`

	// DeletionGracePeriodSeconds is how many seconds the object gets to end;
	// set together with the deletion timestamp, it may only become shorter.
	DeletionGracePeriodSeconds *int64 `json:"deletionGracePeriodSeconds,omitempty" protobuf:"varint,10,opt,name=deletionGracePeriodSeconds"`

	// Labels are words to select objects by.
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,11,rep,name=labels"`

	// Annotations are any data of tools, kept as they are and not selectable.
	Annotations map[string]string `json:"annotations,omitempty" protobuf:"bytes,12,rep,name=annotations"`

	// OwnerReferences name the objects that this one belongs to. When all of
	// them are gone, this one is collected.
	OwnerReferences []OwnerReference `json:"ownerReferences,omitempty" protobuf:"bytes,13,rep,name=ownerReferences" patchStrategy:"merge" patchMergeKey:"uid" schema:"listType=map,listMapKeys=uid"`

	// Finalizers keep a deleted object until each of them is removed by the
	// component that put it there.
	Finalizers []string `json:"finalizers,omitempty" protobuf:"bytes,14,rep,name=finalizers" patchStrategy:"merge" schema:"listType=set"`

	// ManagedFields say which manager set which fields; the server keeps them.
	ManagedFields []ManagedFieldsEntry `json:"managedFields,omitempty" protobuf:"bytes,17,rep,name=managedFields" schema:"listType=atomic"`
}

// OwnerReference is one of the objects that another belongs to.
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

	// FieldsType names the format of fieldsV1; there is one, FieldsV1.
	FieldsType string `json:"fieldsType,omitempty" protobuf:"bytes,6,opt,name=fieldsType"`

	// FieldsV1 is the set of fields: "f:name" leads to a field, "k:{...}" and
	// "v:..." to list items, "." is the value itself.
	FieldsV1 *Fields `json:"fieldsV1,omitempty" protobuf:"bytes,7,opt,name=fieldsV1"`

	// Subresource is the sub-resource that was written, empty for the object.
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
