package authentication

import "orch.io/controlplane/api/meta"

// TokenReview asks which user a bearer token authenticates.
type TokenReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; it is not stored.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the token to review.
	Spec TokenReviewSpec `json:"spec" protobuf:"2"`

	// Status is the result; the server fills it in.
	Status TokenReviewStatus `json:"status,omitempty" protobuf:"3"`
}

// TokenReviewSpec is the token to review.
type TokenReviewSpec struct {
	// Token is the bearer token. Required.
	Token string `json:"token,omitempty" protobuf:"1"`

	// Audiences that the caller identifies as. The token must be valid for at least one of them. Unset
	// means the audiences of the API server.
	Audiences []string `json:"audiences,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// TokenReviewStatus is the result of a token review.
type TokenReviewStatus struct {
	// Authenticated is true if the token is valid.
	Authenticated bool `json:"authenticated,omitempty" protobuf:"1"`

	// User is the user that the token authenticates.
	User UserInfo `json:"user,omitempty" protobuf:"2"`

	// Error describes why the token could not be checked.
	Error string `json:"error,omitempty" protobuf:"3"`

	// Audiences are the audiences of the review that the token is valid for. If empty although
	// authenticated is true, the token is valid for the API server.
	Audiences []string `json:"audiences,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// UserInfo describes an authenticated user.
type UserInfo struct {
	// Username identifies the user among all users at a time.
	Username string `json:"username,omitempty" protobuf:"1"`

	// UID identifies the user over time, if names are reused.
	UID string `json:"uid,omitempty" protobuf:"2"`

	// Groups of the user.
	Groups []string `json:"groups,omitempty" protobuf:"3" schema:"listType=atomic"`

	// Extra holds further attributes from the authenticator.
	Extra map[string][]string `json:"extra,omitempty" protobuf:"4"`
}

// SelfSubjectReview returns the attributes of the calling user.
type SelfSubjectReview struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; it is not stored.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Status is the result; the server fills it in.
	Status SelfSubjectReviewStatus `json:"status,omitempty" protobuf:"2"`
}

// SelfSubjectReviewStatus is the result of a SelfSubjectReview.
type SelfSubjectReviewStatus struct {
	// UserInfo describes the caller.
	UserInfo UserInfo `json:"userInfo,omitempty" protobuf:"1"`
}

// TokenRequest requests a token for a service account. It is the body of the subresource token of
// ServiceAccount.
type TokenRequest struct {
	meta.TypeMeta `json:",inline"`

	// Standard object's metadata; it is not stored.
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec describes the requested token.
	Spec TokenRequestSpec `json:"spec" protobuf:"2"`

	// Status is the issued token; the server fills it in.
	Status TokenRequestStatus `json:"status,omitempty" protobuf:"3"`
}

// TokenRequestSpec describes the requested token.
type TokenRequestSpec struct {
	// Audiences of the token. Empty means the audiences of the API server.
	Audiences []string `json:"audiences" protobuf:"1" schema:"listType=atomic"`

	// BoundObjectRef is an object that the token is bound to: when it is deleted, the token becomes
	// invalid.
	BoundObjectRef *BoundObjectReference `json:"boundObjectRef" protobuf:"3" schema:"optional"`

	// ExpirationSeconds is the requested lifetime in seconds: at least 600, default 3600. The server
	// may issue a token with another lifetime.
	ExpirationSeconds *int64 `json:"expirationSeconds" protobuf:"4" schema:"optional"`

	// Attestations are further claims for the token. This server supports none and ignores them.
	Attestations map[string][]string `json:"attestations,omitempty" protobuf:"5"`
}

// BoundObjectReference identifies the object that a token is bound to.
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

// TokenRequestStatus is an issued token.
type TokenRequestStatus struct {
	// Token is the bearer token.
	Token string `json:"token" protobuf:"1"`

	// ExpirationTimestamp is the time at which the token expires.
	ExpirationTimestamp meta.Time `json:"expirationTimestamp" protobuf:"2"`
}
