package builtin

import (
	"slices"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/authentication"
	"orch.io/controlplane/registry/builtin/internal/authorization"
)

// Answers are the functions that answer reviews. One reaches its function only if
// its spec is complete and without contradictions; a kind without a function is not
// there. Package auth/review has those of every server.
type Answers struct {
	TokenReview, SelfSubjectReview registry.Act // who somebody is

	SubjectAccessReview, SelfSubjectAccessReview     registry.Act // what somebody may do
	LocalSubjectAccessReview, SelfSubjectRulesReview registry.Act
}

// Reviews returns the kinds that ask who somebody is and what they may do. Nothing of
// them is stored: a POST is answered with the filled-in object.
func Reviews(a Answers) []*registry.Kind {
	return slices.Concat(
		authentication.Kinds(authentication.Answers{Token: a.TokenReview, SelfSubject: a.SelfSubjectReview}),
		authorization.Kinds(authorization.Answers{Subject: a.SubjectAccessReview, SelfSubject: a.SelfSubjectAccessReview,
			LocalSubject: a.LocalSubjectAccessReview, SelfSubjectRules: a.SelfSubjectRulesReview}))
}

// TokenRequest returns the sub-resource token of the kind ServiceAccount, for which act
// issues the tokens.
func TokenRequest(act registry.Act) registry.Subresource {
	return registry.Subresource{Name: "token", Act: act, Body: registry.Of(registry.Definition[authentication.TokenRequest]{
		Group: names.GroupAuthentication, Version: "v1",
	})}
}
