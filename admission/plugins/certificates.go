package plugins

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/pki"
	"orch.io/controlplane/internal/wellknown"
)

// certificateApproval requires the verb approve on the signer of the request for writes of the subresource
// approval.
func certificateApproval() admission.Plugin {
	return admission.Plugin{
		Name:  "CertificateApproval",
		Rules: on(wellknown.GroupCertificates, []string{"certificatesigningrequests/approval"}, admission.Update),
		Validate: func(ctx context.Context, r *admission.Request) error {
			return mayUseSigner(ctx, r, "approve")
		},
	}
}

// certificateSigning requires the verb sign on the signer of the request for writes of the subresource status that
// change the certificate or the conditions.
func certificateSigning() admission.Plugin {
	return admission.Plugin{
		Name:  "CertificateSigning",
		Rules: on(wellknown.GroupCertificates, []string{"certificatesigningrequests/status"}, admission.Update),
		Validate: func(ctx context.Context, r *admission.Request) error {
			if r.Old.String("status", "certificate") == r.Object.String("status", "certificate") &&
				meta.Equal(r.Old.List("status", "conditions"), r.Object.List("status", "conditions")) {
				return nil
			}
			return mayUseSigner(ctx, r, "sign")
		},
	}
}

// mayUseSigner returns an error unless the user has the verb on the signer, by its name or as domain/*.
func mayUseSigner(ctx context.Context, r *admission.Request, verb string) error {
	if actor.Is(ctx, r.User) {
		return nil
	}
	signer := r.Old.String("spec", "signerName")
	wanted := []string{signer}
	if domain, _, ok := strings.Cut(signer, "/"); ok {
		wanted = append(wanted, domain+"/*")
	}
	for _, name := range wanted {
		d, _, _ := r.Server.Authorizer.Authorize(ctx, auth.Attributes{
			User: r.User, Verb: verb, Group: r.Resource.Group, Version: "*", Resource: "signers", Name: name,
		})
		if d == auth.Allow {
			return nil
		}
	}
	return fmt.Errorf("user not permitted to %s requests with signerName %q", verb, signer)
}

// certificateSubjectRestriction refuses requests for client certificates of the group auth.Masters.
func certificateSubjectRestriction() admission.Plugin {
	return admission.Plugin{
		Name:  "CertificateSubjectRestriction",
		Rules: on(wellknown.GroupCertificates, []string{"certificatesigningrequests"}, admission.Create),
		Validate: func(_ context.Context, r *admission.Request) error {
			client := r.Server.Wire(wellknown.SignerClient)
			if r.Object.String("spec", "signerName") != client {
				return nil
			}
			data, err := base64.StdEncoding.DecodeString(r.Object.String("spec", "request"))
			if err != nil {
				return errors.New("invalid spec.request: not base64")
			}
			req, err := pki.ParseRequest(data)
			if err != nil {
				return fmt.Errorf("invalid spec.request: %w", err)
			}
			if slices.Contains(req.Subject.Organization, auth.Masters) {
				return fmt.Errorf("use of %s signer with %s group is not allowed", client, auth.Masters)
			}
			return nil
		},
	}
}
