package authorization

import "orch.io/controlplane/api/meta"

// SubjectAccessReview asks whether a user or group may make a request.
type SubjectAccessReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; it is not stored.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request to review.
	Spec SubjectAccessReviewSpec `json:"spec" protobuf:"2"`

	// Status is the decision; the server fills it in.
	Status SubjectAccessReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// LocalSubjectAccessReview is a SubjectAccessReview for a single namespace. Permission to create it can
// be granted within that namespace.
type LocalSubjectAccessReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; it is not stored.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request to review. It must be for a resource in the namespace of the review.
	Spec SubjectAccessReviewSpec `json:"spec" protobuf:"2"`

	// Status is the decision; the server fills it in.
	Status SubjectAccessReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// SelfSubjectAccessReview asks whether the caller may make a request.
type SelfSubjectAccessReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; it is not stored.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request to review.
	Spec SelfSubjectAccessReviewSpec `json:"spec" protobuf:"2"`

	// Status is the decision; the server fills it in.
	Status SubjectAccessReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// SelfSubjectRulesReview lists the actions that the caller may perform in a namespace. The list is
// meant for display and may be incomplete; use SelfSubjectAccessReview for decisions.
type SelfSubjectRulesReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; it is not stored.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec selects the namespace.
	Spec SelfSubjectRulesReviewSpec `json:"spec" protobuf:"2"`

	// Status is the list; the server fills it in.
	Status SubjectRulesReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// SubjectAccessReviewSpec describes the request to review and its caller.
type SubjectAccessReviewSpec struct {
	// ResourceAttributes describe a request for a resource. Exactly one of resourceAttributes and
	// nonResourceAttributes must be set.
	ResourceAttributes *ResourceAttributes `json:"resourceAttributes,omitempty" protobuf:"1"`

	// NonResourceAttributes describe a request for a path outside the resource API.
	NonResourceAttributes *NonResourceAttributes `json:"nonResourceAttributes,omitempty" protobuf:"2"`

	// User is the name of the caller. A user or at least one group is required.
	User string `json:"user,omitempty" protobuf:"3"`

	// Groups of the caller. The server adds none, such as system:authenticated.
	Groups []string `json:"groups,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Extra attributes of the caller.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"5"`

	// UID of the caller.
	UID string `json:"uid,omitempty" protobuf:"6"`
}

// SelfSubjectAccessReviewSpec describes the request to review.
type SelfSubjectAccessReviewSpec struct {
	// ResourceAttributes describe a request for a resource. Exactly one of resourceAttributes and
	// nonResourceAttributes must be set.
	ResourceAttributes *ResourceAttributes `json:"resourceAttributes,omitempty" protobuf:"1"`

	// NonResourceAttributes describe a request for a path outside the resource API.
	NonResourceAttributes *NonResourceAttributes `json:"nonResourceAttributes,omitempty" protobuf:"2"`
}

// ResourceAttributes describe a request for a resource.
type ResourceAttributes struct {
	// Namespace of the object. Empty means all namespaces, or no namespace for cluster-scoped
	// resources.
	Namespace string `json:"namespace,omitempty" protobuf:"1"`

	// Verb of the request, such as get; * means all verbs.
	Verb string `json:"verb,omitempty" protobuf:"2"`

	// Group of the resource; * means all groups.
	Group string `json:"group,omitempty" protobuf:"3"`

	// Version of the resource; * means all versions.
	Version string `json:"version,omitempty" protobuf:"4"`

	// Resource is the plural name of the resource; * means all resources.
	Resource string `json:"resource,omitempty" protobuf:"5"`

	// Subresource of the object. Empty means the object itself.
	Subresource string `json:"subresource,omitempty" protobuf:"6"`

	// Name of the object. Empty means all names.
	Name string `json:"name,omitempty" protobuf:"7"`

	// FieldSelector restricts a list, watch or deletecollection.
	FieldSelector *FieldSelectorAttributes `json:"fieldSelector,omitempty" protobuf:"8"`

	// LabelSelector restricts a list, watch or deletecollection.
	LabelSelector *LabelSelectorAttributes `json:"labelSelector,omitempty" protobuf:"9"`
}

// FieldSelectorAttributes are a field selector, either as text or as requirements.
type FieldSelectorAttributes struct {
	// RawSelector is the selector in the syntax of the query parameter. It excludes requirements.
	RawSelector string `json:"rawSelector,omitempty" protobuf:"1"`

	// Requirements that must all hold. They exclude rawSelector.
	Requirements []FieldSelectorRequirement `json:"requirements,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// FieldSelectorRequirement compares a field with values.
type FieldSelectorRequirement struct {
	// Key is the path of the field.
	Key string `json:"key" protobuf:"1"`

	// Operator is In, NotIn, Exists or DoesNotExist.
	Operator string `json:"operator" protobuf:"2"`

	// Values for In and NotIn; empty for the other operators.
	Values []string `json:"values,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// LabelSelectorAttributes are a label selector, either as text or as requirements.
type LabelSelectorAttributes struct {
	// RawSelector is the selector in the syntax of the query parameter. It excludes requirements.
	RawSelector string `json:"rawSelector,omitempty" protobuf:"1"`

	// Requirements that must all hold. They exclude rawSelector.
	Requirements []meta.LabelSelectorRequirement `json:"requirements,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NonResourceAttributes describe a request for a path outside the resource API.
type NonResourceAttributes struct {
	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`

	// Verb is the HTTP method in lower case.
	Verb string `json:"verb,omitempty" protobuf:"2"`
}

// SubjectAccessReviewStatus is the decision about a request.
type SubjectAccessReviewStatus struct {
	// Allowed is true if the request is allowed.
	Allowed bool `json:"allowed" protobuf:"1"`

	// Reason explains the decision.
	Reason string `json:"reason,omitempty" protobuf:"2"`

	// EvaluationError describes an error during the evaluation. The decision may be correct in spite of
	// it.
	EvaluationError string `json:"evaluationError,omitempty" protobuf:"3"`

	// Denied is true if an authorizer denied the request. If allowed and denied are both false, no
	// authorizer decided, and the request is refused.
	Denied bool `json:"denied,omitempty" protobuf:"4"`
}

// SelfSubjectRulesReviewSpec selects the namespace of a rules review.
type SelfSubjectRulesReviewSpec struct {
	// Namespace to list the rules for. Required.
	Namespace string `json:"namespace,omitempty" protobuf:"1"`
}

// SubjectRulesReviewStatus lists the actions that a user may perform.
type SubjectRulesReviewStatus struct {
	// ResourceRules allow actions on resources, in no particular order.
	ResourceRules []ResourceRule `json:"resourceRules" protobuf:"1" schema:"listType=atomic"`

	// NonResourceRules allow requests for other paths, in no particular order.
	NonResourceRules []NonResourceRule `json:"nonResourceRules" protobuf:"2" schema:"listType=atomic"`

	// Incomplete is true if there may be further rules, because an authorizer failed or cannot list its
	// rules.
	Incomplete bool `json:"incomplete" protobuf:"3"`

	// EvaluationError describes an error during the evaluation. The lists hold the rules that were
	// found in spite of it.
	EvaluationError string `json:"evaluationError,omitempty" protobuf:"4"`
}

// ResourceRule allows actions on resources.
type ResourceRule struct {
	// Verbs that are allowed; * means all.
	Verbs []string `json:"verbs" protobuf:"1" schema:"listType=atomic"`

	// APIGroups of the resources; * means all.
	APIGroups []string `json:"apiGroups,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Resources in these groups; * means all.
	Resources []string `json:"resources,omitempty" protobuf:"3" schema:"listType=atomic"`

	// ResourceNames restricts the rule to objects of these names. Empty means all names.
	ResourceNames []string `json:"resourceNames,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// NonResourceRule allows requests for paths outside the resource API.
type NonResourceRule struct {
	// Verbs that are allowed; * means all.
	Verbs []string `json:"verbs" protobuf:"1" schema:"listType=atomic"`

	// NonResourceURLs are the allowed paths. A trailing * matches the rest of the path.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty" protobuf:"2" schema:"listType=atomic"`
}
