package builtin

import (
	"slices"

	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/authentication"
	"orch.io/controlplane/registry/builtin/internal/authorization"
)

// Answers are the functions that complete reviews. They are called for valid reviews only. A kind whose
// function is nil is not served. Package auth/review implements them for a server.
type Answers struct {
	TokenReview, SelfSubjectReview registry.Act // authentication

	SubjectAccessReview, SelfSubjectAccessReview     registry.Act // authorization
	LocalSubjectAccessReview, SelfSubjectRulesReview registry.Act
}

// Reviews returns the review kinds of authentication and authorization. Their objects are not stored:
// the answer to a POST is the completed object.
func Reviews(a Answers) []*registry.Kind {
	return slices.Concat(
		authentication.Kinds(authentication.Answers{Token: a.TokenReview, SelfSubject: a.SelfSubjectReview}),
		authorization.Kinds(authorization.Answers{Subject: a.SubjectAccessReview, SelfSubject: a.SelfSubjectAccessReview,
			LocalSubject: a.LocalSubjectAccessReview, SelfSubjectRules: a.SelfSubjectRulesReview}))
}

// TokenRequest returns the subresource token of ServiceAccount. act issues the tokens.
func TokenRequest(act registry.Act) registry.Subresource {
	return registry.Subresource{Name: "token", Act: act, Body: registry.Of(registry.Definition[authentication.TokenRequest]{
		Group: wellknown.GroupAuthentication, Version: "v1",
	})}
}
