package openapi

import "orch.io/controlplane/api/meta"

// object has the fields that all objects share.
type object struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata.
	meta.ObjectMeta `json:"metadata,omitempty"`
}

// list has the fields that all lists share.
type list struct {
	meta.TypeMeta `json:",inline"`

	// Standard list metadata.
	meta.ListMeta `json:"metadata,omitempty"`
}

// Status is the response to a request that failed, or to a request that has no object to respond with.
type Status struct {
	meta.TypeMeta `json:",inline"`

	// Standard list metadata.
	meta.ListMeta `json:"metadata,omitempty"`

	// Status is Success or Failure.
	Status string `json:"status,omitempty"`

	// Message describes for people what happened.
	Message string `json:"message,omitempty"`

	// Reason is the machine-readable reason of the failure.
	Reason string `json:"reason,omitempty"`

	// Details identify the object of the response.
	Details *StatusDetails `json:"details,omitempty"`

	// Code is the HTTP status code.
	Code int32 `json:"code,omitempty"`
}

// StatusDetails identify the object of a Status.
type StatusDetails struct {
	// Name of the object.
	Name string `json:"name,omitempty"`

	// Group of the object's type.
	Group string `json:"group,omitempty"`

	// Kind is the resource type of the object, or its kind.
	Kind string `json:"kind,omitempty"`

	// UID of the object.
	UID string `json:"uid,omitempty"`

	// Causes are the individual errors of the request.
	Causes []StatusCause `json:"causes,omitempty" schema:"listType=atomic"`

	// RetryAfterSeconds is how long to wait before the next attempt, in seconds.
	RetryAfterSeconds int32 `json:"retryAfterSeconds,omitempty"`
}

// StatusCause is an error of a request.
type StatusCause struct {
	// Reason is the machine-readable kind of the error.
	Reason string `json:"reason,omitempty"`

	// Message describes the error for people.
	Message string `json:"message,omitempty"`

	// Field is the path of the field with the error.
	Field string `json:"field,omitempty"`
}

// DeleteOptions are the options of a deletion.
type DeleteOptions struct {
	meta.TypeMeta `json:",inline"`

	// GracePeriodSeconds is how long the object may take to shut down, in seconds; 0 deletes it at once. The default
	// depends on the kind.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`

	// Preconditions must hold. Otherwise nothing is deleted and the response is 409.
	Preconditions *Preconditions `json:"preconditions,omitempty"`

	// OrphanDependents is the deprecated form of propagationPolicy.
	OrphanDependents *bool `json:"orphanDependents,omitempty" schema:"deprecated"`

	// PropagationPolicy determines what happens to dependents: Orphan keeps them, Background deletes them after the
	// object, Foreground deletes them before it.
	PropagationPolicy *string `json:"propagationPolicy,omitempty"`

	// DryRun with the value All runs all stages of the request but deletes nothing.
	DryRun []string `json:"dryRun,omitempty" schema:"listType=atomic"`

	// IgnoreStoreReadErrorWithClusterBreakingPotential deletes an object that cannot be read, regardless of
	// finalizers, owners and admission. It requires the verb unsafe-delete-ignore-read-errors. An object that can be
	// read is not deleted, and the response is 409.
	IgnoreStoreReadErrorWithClusterBreakingPotential *bool `json:"ignoreStoreReadErrorWithClusterBreakingPotential,omitempty"`
}

// Preconditions must hold for an operation to succeed.
type Preconditions struct {
	// UID that the object must have.
	UID *string `json:"uid,omitempty"`

	// ResourceVersion that the object must have.
	ResourceVersion *string `json:"resourceVersion,omitempty"`
}

// WatchEvent is a change of a watched object.
type WatchEvent struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type string `json:"type" schema:"required"`

	// Object is the object after the change, the object before its deletion, or a Status.
	Object Raw `json:"object" schema:"required"`
}

// Raw is any object.
type Raw struct{}

// APIForm returns the encoding of the value for package schema.
func (Raw) APIForm() string { return "raw" }

// Patch describes changes of an object. Its format depends on the media type.
type Patch struct{}

// APIResourceList lists the resource types of a group version.
type APIResourceList struct {
	meta.TypeMeta `json:",inline"`

	// GroupVersion that the resource types belong to.
	GroupVersion string `json:"groupVersion" schema:"required"`

	// Resources are the resource types and their subresources.
	Resources []APIResource `json:"resources" schema:"required,listType=atomic"`
}

// APIResource describes a resource type or a subresource.
type APIResource struct {
	// Name is the plural name of the type, as in paths.
	Name string `json:"name" schema:"required"`

	// SingularName is the name of one object.
	SingularName string `json:"singularName" schema:"required"`

	// Namespaced reports whether the objects belong to namespaces.
	Namespaced bool `json:"namespaced" schema:"required"`

	// Group of the kind, if it differs from the group of the list.
	Group string `json:"group,omitempty"`

	// Version of the kind, if it differs from the version of the list.
	Version string `json:"version,omitempty"`

	// Kind of the objects.
	Kind string `json:"kind" schema:"required"`

	// Verbs are the verbs that the type supports.
	Verbs []string `json:"verbs" schema:"required"`

	// ShortNames are short names of the type.
	ShortNames []string `json:"shortNames,omitempty" schema:"listType=atomic"`

	// Categories are the groups of types that the type belongs to, such as all.
	Categories []string `json:"categories,omitempty" schema:"listType=atomic"`

	// StorageVersionHash is a hash of the version in which objects are stored.
	StorageVersionHash string `json:"storageVersionHash,omitempty"`
}
