package core

// ObjectReference points at any object, or at a part of one.
type ObjectReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Kind of the object.
	Kind string `json:"kind,omitempty" protobuf:"1"`

	// Namespace of the object; empty for cluster scope.
	Namespace string `json:"namespace,omitempty" protobuf:"2"`

	// Name of the object.
	Name string `json:"name,omitempty" protobuf:"3"`

	// UID of the object, to tell it from others that had its name.
	UID string `json:"uid,omitempty" protobuf:"4"`

	// APIVersion of the object.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"5"`

	// ResourceVersion that the reference was made at, if it matters.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"6"`

	// FieldPath leads to the part that is meant, such as
	// spec.containers{name}; empty: the whole object.
	FieldPath string `json:"fieldPath,omitempty" protobuf:"7"`
}

// LocalObjectReference points at an object in the same namespace.
type LocalObjectReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the object.
	Name string `json:"name,omitempty" protobuf:"1"`
}

// TypedLocalObjectReference points at an object of any kind in the same
// namespace.
type TypedLocalObjectReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// APIGroup of the object; unset: the core group.
	APIGroup *string `json:"apiGroup" protobuf:"1" schema:"optional"`

	// Kind of the object.
	Kind string `json:"kind" protobuf:"2" schema:"required"`

	// Name of the object.
	Name string `json:"name" protobuf:"3" schema:"required"`
}

// TypedObjectReference points at an object of any kind.
type TypedObjectReference struct {
	// APIGroup of the object; unset: the core group.
	APIGroup *string `json:"apiGroup" protobuf:"1" schema:"optional"`

	// Kind of the object.
	Kind string `json:"kind" protobuf:"2" schema:"required"`

	// Name of the object.
	Name string `json:"name" protobuf:"3" schema:"required"`

	// Namespace of the object; unset: the same.
	Namespace *string `json:"namespace,omitempty" protobuf:"4"`
}
