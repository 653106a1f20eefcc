package core

// ObjectReference identifies an object or a part of it.
type ObjectReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Kind of the object.
	Kind string `json:"kind,omitempty" protobuf:"1"`

	// Namespace of the object. Empty for cluster-scoped objects.
	Namespace string `json:"namespace,omitempty" protobuf:"2"`

	// Name of the object.
	Name string `json:"name,omitempty" protobuf:"3"`

	// UID of the object.
	UID string `json:"uid,omitempty" protobuf:"4"`

	// APIVersion of the object.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"5"`

	// ResourceVersion of the object when the reference was made.
	ResourceVersion string `json:"resourceVersion,omitempty" protobuf:"6"`

	// FieldPath is the part of the object, such as spec.containers{name}. Empty means the whole object.
	FieldPath string `json:"fieldPath,omitempty" protobuf:"7"`
}

// LocalObjectReference identifies an object in the same namespace.
type LocalObjectReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the object.
	Name string `json:"name,omitempty" protobuf:"1"`
}

// TypedLocalObjectReference identifies an object of any kind in the same namespace.
type TypedLocalObjectReference struct {
	_ struct{} `schema:"mapType=atomic"`

	// APIGroup of the object. Unset is the core group.
	APIGroup *string `json:"apiGroup" protobuf:"1" schema:"optional"`

	// Kind of the object.
	Kind string `json:"kind" protobuf:"2" schema:"required"`

	// Name of the object.
	Name string `json:"name" protobuf:"3" schema:"required"`
}

// TypedObjectReference identifies an object of any kind.
type TypedObjectReference struct {
	// APIGroup of the object. Unset is the core group.
	APIGroup *string `json:"apiGroup" protobuf:"1" schema:"optional"`

	// Kind of the object.
	Kind string `json:"kind" protobuf:"2" schema:"required"`

	// Name of the object.
	Name string `json:"name" protobuf:"3" schema:"required"`

	// Namespace of the object. Unset means the same namespace.
	Namespace *string `json:"namespace,omitempty" protobuf:"4"`
}
