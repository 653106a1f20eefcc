package authorization

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// SubjectAccessReviewV1beta1 is an access review in version v1beta1, which calls the groups of the user
// group.
type SubjectAccessReviewV1beta1 struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; it is not stored.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request to review.
	Spec SubjectAccessReviewSpecV1beta1 `json:"spec" protobuf:"2"`

	// Status is the decision; the server fills it in.
	Status SubjectAccessReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// SubjectAccessReviewSpecV1beta1 describes the request to review.
type SubjectAccessReviewSpecV1beta1 struct {
	// ResourceAttributes describe a request for a resource. Exactly one of resourceAttributes and
	// nonResourceAttributes must be set.
	ResourceAttributes *ResourceAttributes `json:"resourceAttributes,omitempty" protobuf:"1"`

	// NonResourceAttributes describe a request for a path outside the resource API.
	NonResourceAttributes *NonResourceAttributes `json:"nonResourceAttributes,omitempty" protobuf:"2"`

	// User is the name of the caller. A user or at least one group is required.
	User string `json:"user,omitempty" protobuf:"3"`

	// Group lists the groups of the caller. The server adds none, such as system:authenticated.
	Group []string `json:"group,omitempty" protobuf:"4" schema:"listType=atomic"`

	// Extra attributes of the caller.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"5"`

	// UID of the caller.
	UID string `json:"uid,omitempty" protobuf:"6"`
}

func same[T any](introduced string) registry.VersionOf[T] {
	return older.Same[T]("v1beta1", introduced, "1.19", "1.22", wellknown.GroupAuthorization+"/v1")
}

func subjectV1beta1() registry.VersionOf[SubjectAccessReview] {
	return registry.Spoke[SubjectAccessReviewV1beta1, SubjectAccessReview]{
		Version: "v1beta1", Lifetime: registry.Lifetime{Introduced: "1.2", Deprecated: "1.19", Removed: "1.22"},
		Replacement: older.Use[SubjectAccessReview](wellknown.GroupAuthorization + "/v1"),
		ToHub: func(in *SubjectAccessReviewV1beta1, out *SubjectAccessReview) error {
			out.Spec, out.Status = in.Spec.renamed(), in.Status
			return nil
		},
		FromHub: func(in *SubjectAccessReview, out *SubjectAccessReviewV1beta1) error {
			out.Spec, out.Status = in.Spec.renamed(), in.Status
			return nil
		},
	}
}

// renamed returns the spec in v1.
func (s SubjectAccessReviewSpecV1beta1) renamed() SubjectAccessReviewSpec {
	return SubjectAccessReviewSpec{s.ResourceAttributes, s.NonResourceAttributes, s.User, s.Group, s.Extra, s.UID}
}

// renamed returns the spec in v1beta1.
func (s SubjectAccessReviewSpec) renamed() SubjectAccessReviewSpecV1beta1 {
	return SubjectAccessReviewSpecV1beta1{s.ResourceAttributes, s.NonResourceAttributes, s.User, s.Groups, s.Extra, s.UID}
}

func localV1beta1() registry.VersionOf[LocalSubjectAccessReview] {
	return registry.Spoke[SubjectAccessReviewV1beta1, LocalSubjectAccessReview]{
		Version: "v1beta1", Lifetime: registry.Lifetime{Introduced: "1.2", Deprecated: "1.19", Removed: "1.22"},
		Replacement: older.Use[LocalSubjectAccessReview](wellknown.GroupAuthorization + "/v1"),
		ToHub: func(in *SubjectAccessReviewV1beta1, out *LocalSubjectAccessReview) error {
			out.Spec, out.Status = in.Spec.renamed(), in.Status
			return nil
		},
		FromHub: func(in *LocalSubjectAccessReview, out *SubjectAccessReviewV1beta1) error {
			out.Spec, out.Status = in.Spec.renamed(), in.Status
			return nil
		},
	}
}
