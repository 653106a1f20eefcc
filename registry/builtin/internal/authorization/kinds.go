package authorization

import "orch.io/controlplane/api/meta"

// SubjectAccessReview asks whether a user or group may do something.
type SubjectAccessReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; nothing of it is kept.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the question.
	Spec SubjectAccessReviewSpec `json:"spec" protobuf:"2"`

	// Status is the answer.
	Status SubjectAccessReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// LocalSubjectAccessReview is a SubjectAccessReview about one namespace, which
// those can ask who have rights in that namespace alone.
type LocalSubjectAccessReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; nothing of it is kept.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the question, about a resource in the namespace of the request.
	Spec SubjectAccessReviewSpec `json:"spec" protobuf:"2"`

	// Status is the answer.
	Status SubjectAccessReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// SelfSubjectAccessReview asks whether the caller may do something.
type SelfSubjectAccessReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; nothing of it is kept.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the question.
	Spec SelfSubjectAccessReviewSpec `json:"spec" protobuf:"2"`

	// Status is the answer.
	Status SubjectAccessReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// SelfSubjectRulesReview asks for everything that the caller may do in a
// namespace. The answer is for display; it need not be complete.
type SelfSubjectRulesReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; nothing of it is kept.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the question.
	Spec SelfSubjectRulesReviewSpec `json:"spec" protobuf:"2"`

	// Status is the answer.
	Status SubjectRulesReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// SubjectAccessReviewSpec is the question who may do what.
type SubjectAccessReviewSpec struct {
	// ResourceAttributes describe a request for a resource; exactly one of this
	// and nonResourceAttributes is set.
	ResourceAttributes *ResourceAttributes `json:"resourceAttributes,omitempty" protobuf:"1"`

	// NonResourceAttributes describe a request for a path that is no resource.
	NonResourceAttributes *NonResourceAttributes `json:"nonResourceAttributes,omitempty" protobuf:"2"`

	// User who asks for it.
	User string `json:"user,omitempty" protobuf:"3"`

	// Groups of the user; all of them, none is added.
	Groups []string `json:"groups,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Extra attributes of the user.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"5"`

	// UID of the user.
	UID string `json:"uid,omitempty" protobuf:"6"`
}

// SelfSubjectAccessReviewSpec is the question what the caller may do.
type SelfSubjectAccessReviewSpec struct {
	// ResourceAttributes describe a request for a resource; exactly one of this
	// and nonResourceAttributes is set.
	ResourceAttributes *ResourceAttributes `json:"resourceAttributes,omitempty" protobuf:"1"`

	// NonResourceAttributes describe a request for a path that is no resource.
	NonResourceAttributes *NonResourceAttributes `json:"nonResourceAttributes,omitempty" protobuf:"2"`
}

// ResourceAttributes describe a request for a resource.
type ResourceAttributes struct {
	// Namespace of the object; empty for cluster scope and for all namespaces.
	Namespace string `json:"namespace,omitempty" protobuf:"1"`

	// Verb of the request; * is all.
	Verb string `json:"verb,omitempty" protobuf:"2"`

	// Group of the resource; * is all.
	Group string `json:"group,omitempty" protobuf:"3"`

	// Version of the resource; * is all.
	Version string `json:"version,omitempty" protobuf:"4"`

	// Resource type; * is all.
	Resource string `json:"resource,omitempty" protobuf:"5"`

	// Subresource of the object; empty for the object itself.
	Subresource string `json:"subresource,omitempty" protobuf:"6"`

	// Name of the object; empty for all.
	Name string `json:"name,omitempty" protobuf:"7"`

	// FieldSelector limits a list, watch or deletecollection.
	FieldSelector *FieldSelectorAttributes `json:"fieldSelector,omitempty" protobuf:"8"`

	// LabelSelector limits a list, watch or deletecollection.
	LabelSelector *LabelSelectorAttributes `json:"labelSelector,omitempty" protobuf:"9"`
}

// FieldSelectorAttributes are a field selector, as text or in parts.
type FieldSelectorAttributes struct {
	// RawSelector is the selector as the query parameter has it.
	RawSelector string `json:"rawSelector,omitempty" protobuf:"1"`

	// Requirements are the parts; all must hold.
	Requirements []FieldSelectorRequirement `json:"requirements,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// FieldSelectorRequirement is a condition on one field.
type FieldSelectorRequirement struct {
	// Key is the field.
	Key string `json:"key" protobuf:"1"`

	// Operator is In, NotIn, Exists or DoesNotExist.
	Operator string `json:"operator" protobuf:"2"`

	// Values belong to In and NotIn.
	Values []string `json:"values,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// LabelSelectorAttributes are a label selector, as text or in parts.
type LabelSelectorAttributes struct {
	// RawSelector is the selector as the query parameter has it.
	RawSelector string `json:"rawSelector,omitempty" protobuf:"1"`

	// Requirements are the parts; all must hold.
	Requirements []meta.SelectorExpression `json:"requirements,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NonResourceAttributes describe a request for a path that is no resource.
type NonResourceAttributes struct {
	// Path of the request.
	Path string `json:"path,omitempty" protobuf:"1"`

	// Verb of the request: the HTTP method in lower case.
	Verb string `json:"verb,omitempty" protobuf:"2"`
}

// SubjectAccessReviewStatus is the answer to an access review.
type SubjectAccessReviewStatus struct {
	// Allowed is true if the request would be allowed.
	Allowed bool `json:"allowed" protobuf:"1"`

	// Reason says why.
	Reason string `json:"reason,omitempty" protobuf:"2"`

	// EvaluationError says what went wrong on the way to the answer.
	EvaluationError string `json:"evaluationError,omitempty" protobuf:"3"`

	// Denied is true if an authorizer refused it; false with allowed false means
	// that none had an opinion.
	Denied bool `json:"denied,omitempty" protobuf:"4"`
}

// SelfSubjectRulesReviewSpec is the question for the caller's rights.
type SelfSubjectRulesReviewSpec struct {
	// Namespace that the rights are asked for.
	Namespace string `json:"namespace,omitempty" protobuf:"1"`
}

// SubjectRulesReviewStatus lists rights.
type SubjectRulesReviewStatus struct {
	// ResourceRules are rights on resources, in no order.
	ResourceRules []ResourceRule `json:"resourceRules" protobuf:"1" schema:"listType=atomic"`

	// NonResourceRules are rights on paths that are no resource, in no order.
	NonResourceRules []NonResourceRule `json:"nonResourceRules" protobuf:"2" schema:"listType=atomic"`

	// Incomplete is true if there may be more rights.
	Incomplete bool `json:"incomplete" protobuf:"3"`

	// EvaluationError says what went wrong; the lists hold what was found
	// nevertheless.
	EvaluationError string `json:"evaluationError,omitempty" protobuf:"4"`
}

// ResourceRule is a right on resources.
type ResourceRule struct {
	// Verbs that are allowed; * is all.
	Verbs []string `json:"verbs" protobuf:"1" schema:"listType=atomic"`

	// APIGroups of the resources; * is all.
	APIGroups []string `json:"apiGroups,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Resources in these groups; * is all.
	Resources []string `json:"resources,omitempty" protobuf:"3" schema:"listType=atomic"`

	// ResourceNames limits the right to objects of these names; empty: any.
	ResourceNames []string `json:"resourceNames,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// NonResourceRule is a right on paths that are no resource.
type NonResourceRule struct {
	// Verbs that are allowed; * is all.
	Verbs []string `json:"verbs" protobuf:"1" schema:"listType=atomic"`

	// NonResourceURLs are the paths; * stands for the rest of a path.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty" protobuf:"2" schema:"listType=atomic"`
}
