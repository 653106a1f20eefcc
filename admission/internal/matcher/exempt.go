package matcher

import (
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/internal/wellknown"
)

// ExemptFromPolicies reports whether no policy is evaluated for a request. Writes of policies and bindings are exempt,
// because a policy could otherwise make itself impossible to remove. Reviews of identities and permissions are exempt,
// see isReview.
func ExemptFromPolicies(r *admission.Request) bool {
	return writesPolicy(r) || isReview(r)
}

// ExemptFromWebhooks reports whether no webhook is called for a request. In addition to the requests of
// ExemptFromPolicies, writes of webhook configurations are exempt, because a webhook could otherwise make its own
// configuration impossible to remove.
func ExemptFromWebhooks(r *admission.Request) bool {
	return writesPolicy(r) || in(r, wellknown.GroupRegistration, "mutatingwebhookconfigurations", "validatingwebhookconfigurations") ||
		isReview(r) && r.Server.Features.Enabled(features.ExcludeAdmissionWebhookVirtualResources)
}

func writesPolicy(r *admission.Request) bool {
	return in(r, wellknown.GroupRegistration,
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings")
}

// isReview reports whether a request is a review of an identity or of permissions. Webhooks and other servers send
// reviews while they answer requests of this server, so refusing a review could block all of them.
func isReview(r *admission.Request) bool {
	return in(r, wellknown.GroupAuthentication, "selfsubjectreviews", "tokenreviews") ||
		in(r, wellknown.GroupAuthorization, "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews")
}

// in reports whether a request is for a resource in the list, or for a subresource of such a resource.
func in(r *admission.Request, group string, resources ...string) bool {
	return r.Resource.Group == r.Server.Names.Group(group) && slices.Contains(resources, r.Resource.Resource)
}
