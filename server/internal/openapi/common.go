package openapi

import "orch.io/controlplane/api/meta"

// object is the part that all objects share.
type object struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata.
	meta.ObjectMeta `json:"metadata,omitempty"`
}

// list is the part that all lists share.
type list struct {
	meta.TypeMeta `json:",inline"`

	// Standard list metadata.
	meta.ListMeta `json:"metadata,omitempty"`
}

// Status is the answer to a request that failed, or to one that has no object
// to answer with.
type Status struct {
	meta.TypeMeta `json:",inline"`

	// Standard list metadata.
	meta.ListMeta `json:"metadata,omitempty"`

	// Status is Success or Failure.
	Status string `json:"status,omitempty"`

	// Message says for people what happened.
	Message string `json:"message,omitempty"`

	// Reason is a word for programs that says why it failed.
	Reason string `json:"reason,omitempty"`

	// Details say what the answer is about.
	Details *StatusDetails `json:"details,omitempty"`

	// Code is the HTTP status code.
	Code int32 `json:"code,omitempty"`
}

// StatusDetails say what a Status is about.
type StatusDetails struct {
	// Name of the object.
	Name string `json:"name,omitempty"`

	// Group of the object's type.
	Group string `json:"group,omitempty"`

	// Kind is the resource type of the object, or its kind.
	Kind string `json:"kind,omitempty"`

	// UID of the object.
	UID string `json:"uid,omitempty"`

	// Causes are the single faults of the request.
	Causes []StatusCause `json:"causes,omitempty" schema:"listType=atomic"`

	// RetryAfterSeconds is how long to wait before another try.
	RetryAfterSeconds int32 `json:"retryAfterSeconds,omitempty"`
}

// StatusCause is one fault of a request.
type StatusCause struct {
	// Reason is a word for programs that says what kind of fault it is.
	Reason string `json:"reason,omitempty"`

	// Message describes the fault for people.
	Message string `json:"message,omitempty"`

	// Field is the path of the field that the fault is in.
	Field string `json:"field,omitempty"`
}

// DeleteOptions say how an object is to be deleted.
type DeleteOptions struct {
	meta.TypeMeta `json:",inline"`

	// GracePeriodSeconds is how long the object may take to end; zero is at
	// once. Unset is what the kind does by default.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`

	// Preconditions must hold, or nothing is deleted and the answer is 409.
	Preconditions *Preconditions `json:"preconditions,omitempty"`

	// OrphanDependents is the older form of propagationPolicy.
	OrphanDependents *bool `json:"orphanDependents,omitempty" schema:"deprecated"`

	// PropagationPolicy says what happens to dependents: Orphan leaves them,
	// Background deletes them afterwards, Foreground deletes them first.
	PropagationPolicy *string `json:"propagationPolicy,omitempty"`

	// DryRun with the value All goes through all stages and deletes nothing.
	DryRun []string `json:"dryRun,omitempty" schema:"listType=atomic"`

	// IgnoreStoreReadErrorWithClusterBreakingPotential deletes an object that cannot be
	// read, without regard to finalizers, owners and admission. It takes the verb
	// unsafe-delete-ignore-read-errors. An object that can be read is not deleted: the
	// answer is 409.
	IgnoreStoreReadErrorWithClusterBreakingPotential *bool `json:"ignoreStoreReadErrorWithClusterBreakingPotential,omitempty"`
}

// Preconditions must hold for an operation to be carried out.
type Preconditions struct {
	// UID that the object must have.
	UID *string `json:"uid,omitempty"`

	// ResourceVersion that the object must have.
	ResourceVersion *string `json:"resourceVersion,omitempty"`
}

// WatchEvent is one change of a watched object.
type WatchEvent struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type string `json:"type" schema:"required"`

	// Object is the object as it is after the change, as it was before its
	// deletion, or a Status.
	Object Raw `json:"object" schema:"required"`
}

// Raw is any object.
type Raw struct{}

// APIForm tells package schema how the value is written.
func (Raw) APIForm() string { return "raw" }

// Patch describes changes of an object; its form depends on the media type.
type Patch struct{}

// APIResourceList lists the resource types of a group version.
type APIResourceList struct {
	meta.TypeMeta `json:",inline"`

	// GroupVersion that the resource types belong to.
	GroupVersion string `json:"groupVersion" schema:"required"`

	// Resources are the resource types and their sub-resources.
	Resources []APIResource `json:"resources" schema:"required,listType=atomic"`
}

// APIResource describes a resource type or a sub-resource.
type APIResource struct {
	// Name is the plural name of the type, as it stands in paths.
	Name string `json:"name" schema:"required"`

	// SingularName is the name of one object.
	SingularName string `json:"singularName" schema:"required"`

	// Namespaced reports whether the objects live in namespaces.
	Namespaced bool `json:"namespaced" schema:"required"`

	// Group of the kind, if it is not that of the list.
	Group string `json:"group,omitempty"`

	// Version of the kind, if it is not that of the list.
	Version string `json:"version,omitempty"`

	// Kind of the objects.
	Kind string `json:"kind" schema:"required"`

	// Verbs are what can be done with the objects.
	Verbs []string `json:"verbs" schema:"required"`

	// ShortNames are shorter words for the type.
	ShortNames []string `json:"shortNames,omitempty" schema:"listType=atomic"`

	// Categories are groups of types that clients ask for together, such as all.
	Categories []string `json:"categories,omitempty" schema:"listType=atomic"`

	// StorageVersionHash changes with the version that objects are stored in.
	StorageVersionHash string `json:"storageVersionHash,omitempty"`
}
