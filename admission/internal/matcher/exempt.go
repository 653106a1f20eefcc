package matcher

import (
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/internal/wellknown"
)

// ExemptFromPolicies reports whether no policy is evaluated for a request: it writes a policy
// or a binding, which a policy could otherwise make impossible to remove, or it is a review of
// an identity or of permissions.
func ExemptFromPolicies(r *admission.Request) bool {
	return writesPolicy(r) || isReview(r)
}

// ExemptFromWebhooks reports whether no webhook is called for a request. Besides the requests
// of ExemptFromPolicies, requests that write webhook configurations are exempt: a webhook
// could otherwise make its own configuration impossible to remove.
func ExemptFromWebhooks(r *admission.Request) bool {
	return writesPolicy(r) || in(r, wellknown.GroupRegistration, "mutatingwebhookconfigurations", "validatingwebhookconfigurations") ||
		isReview(r) && r.Server.Features.Enabled(features.ExcludeAdmissionWebhookVirtualResources)
}

func writesPolicy(r *admission.Request) bool {
	return in(r, wellknown.GroupRegistration,
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings")
}

// isReview reports whether a request asks for an identity or for permissions. Webhooks and
// other servers make such requests to answer their own, so refusing one could block them all.
func isReview(r *admission.Request) bool {
	return in(r, wellknown.GroupAuthentication, "selfsubjectreviews", "tokenreviews") ||
		in(r, wellknown.GroupAuthorization, "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews")
}

// in reports whether a request is about one of the resources of a group, or about a
// sub-resource of one.
func in(r *admission.Request, group string, resources ...string) bool {
	return r.Resource.Group == r.Server.Names.Group(group) && slices.Contains(resources, r.Resource.Resource)
}
