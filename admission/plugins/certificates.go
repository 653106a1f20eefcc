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
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/pki"
)

// certificateRequests is a rule on certificate requests or one of their
// sub-resources.
func certificateRequests(op admission.Operation, resource string) []admission.Rule {
	return []admission.Rule{{
		Operations: []admission.Operation{op}, Groups: []string{names.GroupCertificates}, Resources: []string{resource},
	}}
}

// certificateApproval asks of who writes the sub-resource approval the verb
// approve on the signer that the request names.
func certificateApproval() admission.Plugin {
	return admission.Plugin{
		Name:  "CertificateApproval",
		Rules: certificateRequests(admission.Update, "certificatesigningrequests/approval"),
		Setup: func(p *admission.Plugin, env admission.Env) error {
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				return mayUseSigner(ctx, env.Authorizer, r, "approve")
			}
			return nil
		},
	}
}

// certificateSigning asks of who changes the certificate or the conditions through
// the sub-resource status the verb sign on the signer.
func certificateSigning() admission.Plugin {
	return admission.Plugin{
		Name:  "CertificateSigning",
		Rules: certificateRequests(admission.Update, "certificatesigningrequests/status"),
		Setup: func(p *admission.Plugin, env admission.Env) error {
			p.Validate = func(ctx context.Context, r *admission.Request) error {
				if r.Old.String("status", "certificate") == r.Object.String("status", "certificate") &&
					meta.Equal(r.Old.List("status", "conditions"), r.Object.List("status", "conditions")) {
					return nil
				}
				return mayUseSigner(ctx, env.Authorizer, r, "sign")
			}
			return nil
		},
	}
}

// mayUseSigner asks for a verb on the signer by name, or on all of its domain.
func mayUseSigner(ctx context.Context, a auth.Authorizer, r *admission.Request, verb string) error {
	signer := r.Old.String("spec", "signerName")
	wanted := []string{signer}
	if domain, _, ok := strings.Cut(signer, "/"); ok {
		wanted = append(wanted, domain+"/*")
	}
	for _, name := range wanted {
		d, _, _ := a.Authorize(ctx, auth.Action{
			User: r.User, Verb: verb, Group: r.Resource.Group, Version: "*", Resource: "signers", Name: name,
		})
		if d == auth.Allow {
			return nil
		}
	}
	return fmt.Errorf("user not permitted to %s requests with signerName %q", verb, signer)
}

// certificateSubjectRestriction lets nobody ask for a client certificate of the
// group auth.Masters.
func certificateSubjectRestriction() admission.Plugin {
	return admission.Plugin{
		Name:  "CertificateSubjectRestriction",
		Rules: certificateRequests(admission.Create, "certificatesigningrequests"),
		Setup: func(p *admission.Plugin, env admission.Env) error {
			client := env.Names.Wire(names.SignerClient)
			p.Validate = func(_ context.Context, r *admission.Request) error {
				if r.Object.String("spec", "signerName") != client {
					return nil
				}
				data, err := base64.StdEncoding.DecodeString(r.Object.String("spec", "request"))
				if err != nil {
					return errors.New("spec.request is not base64")
				}
				req, err := pki.ParseRequest(data)
				if err != nil {
					return fmt.Errorf("spec.request cannot be read: %w", err)
				}
				if slices.Contains(req.Subject.Organization, auth.Masters) {
					return fmt.Errorf("use of %s signer with %s group is not allowed", client, auth.Masters)
				}
				return nil
			}
			return nil
		},
	}
}
