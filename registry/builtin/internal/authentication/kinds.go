package authentication

import "orch.io/controlplane/api/meta"

// TokenReview asks whose token something is.
type TokenReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; nothing of it is kept.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the question.
	Spec TokenReviewSpec `json:"spec" protobuf:"2"`

	// Status is the answer.
	Status TokenReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// TokenReviewSpec is the token that is asked about.
type TokenReviewSpec struct {
	// Token is the bearer token.
	Token string `json:"token,omitempty" protobuf:"1"`

	// Audiences that the asking program has; the token must be for one of them.
	// Unset: those of the API server.
	Audiences []string `json:"audiences,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// TokenReviewStatus says whose token it is.
type TokenReviewStatus struct {
	// Authenticated is true if the token is good.
	Authenticated bool `json:"authenticated,omitempty" protobuf:"1"`

	// User is whose token it is.
	User UserInfo `json:"user,omitempty" protobuf:"2"`

	// Error says what is wrong with the token.
	Error string `json:"error,omitempty" protobuf:"3"`

	// Audiences are those of the asked ones that the token is good for. Empty
	// with authenticated true: the token is good for the API server.
	Audiences []string `json:"audiences,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// UserInfo is a user as authentication found it.
type UserInfo struct {
	// Username is the name that tells this user from all others.
	Username string `json:"username,omitempty" protobuf:"1"`

	// UID tells this user from others that had the name before.
	UID string `json:"uid,omitempty" protobuf:"2"`

	// Groups that the user belongs to.
	Groups []string `json:"groups,omitempty" protobuf:"3" schema:"listType=atomic"`

	// Extra is what else the authenticator tells.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"4"`
}

// SelfSubjectReview asks who the caller is.
type SelfSubjectReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; nothing of it is kept.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Status is the answer.
	Status SelfSubjectReviewStatus `json:"status,omitempty" protobuf:"2"`
}

// SelfSubjectReviewStatus says who the caller is.
type SelfSubjectReviewStatus struct {
	// UserInfo is the caller.
	UserInfo UserInfo `json:"userInfo,omitempty" protobuf:"1"`
}

// TokenRequest asks for a token of a service account; it is the body of the
// sub-resource token.
type TokenRequest struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; nothing of it is kept.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what is asked for.
	Spec TokenRequestSpec `json:"spec" protobuf:"2"`

	// Status is the token.
	Status TokenRequestStatus `json:"status,omitempty" protobuf:"3"`
}

// TokenRequestSpec is the token that is asked for.
type TokenRequestSpec struct {
	// Audiences that the token shall be for; empty: the API server.
	Audiences []string `json:"audiences" protobuf:"1" schema:"listType=atomic"`

	// BoundObjectRef names an object that the token shall end with.
	BoundObjectRef *BoundObjectReference `json:"boundObjectRef" protobuf:"3" schema:"optional"`

	// ExpirationSeconds is how long the token shall last; the answer may say
	// less. At least 600, 3600 by default.
	ExpirationSeconds *int64 `json:"expirationSeconds" protobuf:"4" schema:"optional"`

	// Attestations are what the token shall say beside who its owner is. None are
	// known here, and a token says none.
	Attestations map[string][]string `json:"attestations,omitempty" protobuf:"5"`
}

// BoundObjectReference names the object that a token is bound to.
type BoundObjectReference struct {
	// Kind is Pod or Secret.
	Kind string `json:"kind,omitempty" protobuf:"1"`

	// APIVersion of the object.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"2"`

	// Name of the object.
	Name string `json:"name,omitempty" protobuf:"3"`

	// UID of the object.
	UID string `json:"uid,omitempty" protobuf:"4"`
}

// TokenRequestStatus is a token.
type TokenRequestStatus struct {
	// Token is the bearer token.
	Token string `json:"token" protobuf:"1"`

	// ExpirationTimestamp is when the token ends.
	ExpirationTimestamp meta.Time `json:"expirationTimestamp" protobuf:"2"`
}
