package certificates

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
	"orch.io/controlplane/registry/pki"
)

// resource is the plural of the kind.
const resource = "certificatesigningrequests"

// Approval returns the plugin CertificateApproval: writing the sub-resource
// approval needs the verb approve on the signer that the request names.
func Approval(a auth.Authorizer, p names.Profile) admission.Plugin {
	group := p.Group(names.GroupCertificates)
	return admission.Plugin{
		Name:  "CertificateApproval",
		Match: func(r meta.Resource, sub string) bool { return matches(r, sub, group, "approval") },
		Validate: func(ctx context.Context, q *admission.Request) error {
			if q.Operation != admission.Update || q.Old == nil {
				return nil
			}
			return mayUse(ctx, a, q, "approve")
		},
	}
}

// Signing returns the plugin CertificateSigning: changing the certificate or the
// conditions through the sub-resource status needs the verb sign on the signer.
func Signing(a auth.Authorizer, p names.Profile) admission.Plugin {
	group := p.Group(names.GroupCertificates)
	return admission.Plugin{
		Name:  "CertificateSigning",
		Match: func(r meta.Resource, sub string) bool { return matches(r, sub, group, "status") },
		Validate: func(ctx context.Context, q *admission.Request) error {
			if q.Operation != admission.Update || q.Old == nil || q.Object == nil {
				return nil
			}
			if q.Old.String("status", "certificate") == q.Object.String("status", "certificate") &&
				meta.Equal(q.Old.List("status", "conditions"), q.Object.List("status", "conditions")) {
				return nil
			}
			return mayUse(ctx, a, q, "sign")
		},
	}
}

// SubjectRestriction returns the plugin CertificateSubjectRestriction: nobody
// gets a client certificate of the group auth.Masters.
func SubjectRestriction(p names.Profile) admission.Plugin {
	group, client := p.Group(names.GroupCertificates), p.Wire(names.SignerClient)
	return admission.Plugin{
		Name:  "CertificateSubjectRestriction",
		Match: func(r meta.Resource, sub string) bool { return matches(r, sub, group, "") },
		Validate: func(_ context.Context, q *admission.Request) error {
			if q.Operation != admission.Create || q.Object == nil || q.Object.String("spec", "signerName") != client {
				return nil
			}
			data, err := base64.StdEncoding.DecodeString(q.Object.String("spec", "request"))
			if err != nil {
				return forbidden(q, "spec.request is not base64")
			}
			req, err := pki.ParseRequest(data)
			if err != nil {
				return forbidden(q, "spec.request cannot be read: "+err.Error())
			}
			if slices.Contains(req.Subject.Organization, auth.Masters) {
				return forbidden(q, fmt.Sprintf("use of %s signer with %s group is not allowed", client, auth.Masters))
			}
			return nil
		},
	}
}

func matches(r meta.Resource, sub, group, wanted string) bool {
	return r.Group == group && r.Resource == resource && sub == wanted
}

// mayUse asks for a verb on the signer by name, or on all of its domain.
func mayUse(ctx context.Context, a auth.Authorizer, q *admission.Request, verb string) error {
	signer := q.Old.String("spec", "signerName")
	wanted := []string{signer}
	if domain, _, ok := strings.Cut(signer, "/"); ok {
		wanted = append(wanted, domain+"/*")
	}
	for _, name := range wanted {
		d, _, _ := a.Authorize(ctx, auth.Action{
			User: q.User, Verb: verb, Group: q.Resource.Group, Version: "*", Resource: "signers", Name: name,
		})
		if d == auth.Allow {
			return nil
		}
	}
	return forbidden(q, fmt.Sprintf("user not permitted to %s requests with signerName %q", verb, signer))
}

func forbidden(q *admission.Request, why string) error {
	return meta.Forbidden(q.Resource.GroupResource(), q.Name, why)
}
