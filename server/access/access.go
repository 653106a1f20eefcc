// Package access puts the usual access control of a cluster into a server in
// one call: who calls, what they may do, the reviews that tell them, and the
// controllers that keep accounts, roles and certificates.
//
//	b := &server.Builder{Names: names.Kubernetes}
//	b.Register(builtin.Kinds()...)
//	err := access.Setup(b, access.Config{Methods: []auth.Authenticator{tokens}})
//
// With it a server has:
//
//   - callers by client certificate, service account token, bootstrap token, and
//     whatever else Methods hold: package auth/tokenfile, oidc, tokenwebhook; an
//     authenticating proxy is auth/proxyheader; impersonation is the server's own;
//   - the authorizers Node and RBAC, and in their place or beside them those of
//     auth/abac and auth/accesswebhook; the default roles, the guard against
//     giving away rights that one does not have, aggregated roles;
//   - the reviews that ask who a token is and what somebody may do;
//   - service accounts, their tokens, and the documents by which others verify
//     these; certificate requests from the request to the certificate;
//     what machines that join and other servers know this one by, see Publish.
//
// What is here is put together from the packages below auth; a program that
// wants less of it uses those. The records of what happened are apart: see
// server.Builder.Audit and auth/audit.
package access

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/bootstraptoken"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/auth/node"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/client"
	"orch.io/controlplane/server"
)

// Config says how a server's access control differs from the usual. The zero
// Config has service accounts, anonymous callers, and the authorizers Node and
// RBAC, whose default roles are restored at every start.
type Config struct {
	// ClientCAs are the authorities of client certificates; nil: certificates
	// say nothing about callers.
	ClientCAs *x509.CertPool
	// Proxy finds the users of an authenticating proxy, before anybody else.
	Proxy auth.Authenticator
	// Tokens issues and verifies the tokens of service accounts; nil: with a
	// key of its own, which ends with the process.
	Tokens *serviceaccount.Tokens
	// BootstrapTokens accepts the tokens of bootstrap secrets.
	BootstrapTokens bool
	// Methods are further ways to find out who calls, asked last.
	Methods []auth.Authenticator
	// NoAnonymous refuses callers without credentials with 401.
	NoAnonymous bool

	// Authorizers returns who decides, in order; nil: Node, then RBAC. The group
	// system:masters is allowed everything before anybody is asked.
	Authorizers func(Builtin) []auth.Authorizer

	// Signer signs certificate requests; without an authority nobody does.
	Signer certificates.Signer
	// RootCA is what clients verify the server with, PEM. It goes into token secrets
	// and, unless RunControllers of the Builder leaves root-ca-cert-publisher out, into
	// a ConfigMap of every namespace, which the volumes of pods name.
	RootCA []byte
	// Publish is what the server tells others of itself; zero: nothing.
	Publish Publish
}

// Builtin are the authorizers that read the server's own objects.
type Builtin struct{ Node, RBAC auth.Authorizer }

// Setup adds the access control that c describes to b, which must not have an
// Authorizer yet, and where the kinds of package builtin are registered. It sets
// Authorizer, adds to Authenticators, Admission, Handlers, Controllers, Prepare and the
// kinds, and gives ServiceAccount the sub-resource token.
func Setup(b *server.Builder, c Config) error {
	if b.Authorizer != nil {
		return fmt.Errorf("access: the server has an authorizer already")
	}
	if c.Tokens == nil {
		key, err := serviceaccount.GenerateKey()
		if err != nil {
			return fmt.Errorf("access: %w", err)
		}
		c.Tokens, err = serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: b.Client(), Names: b.Names})
		if err != nil {
			return err
		}
	}
	if err := c.serveAccounts(b); err != nil {
		return err
	}
	c.authenticate(b)
	c.authorize(b)
	return nil
}

// authenticate sets up who callers are, and the reviews that tell them.
func (c Config) authenticate(b *server.Builder) {
	var methods []auth.Authenticator
	if c.Proxy != nil {
		methods = append(methods, c.Proxy)
	}
	if c.ClientCAs != nil {
		methods = append(methods, clientcert.New(c.ClientCAs))
	}
	methods = append(methods, c.Tokens)
	if c.BootstrapTokens {
		methods = append(methods, bootstraptoken.New(b.Client(), b.Names, nil))
	}
	methods = append(methods, c.Methods...)
	if !c.NoAnonymous {
		methods = append(methods, auth.AnonymousAccess)
	}
	all := auth.Union(methods...)
	b.Authenticators = append(b.Authenticators, all)
	b.Register(review.Identity(all, c.Tokens.Audiences())...)
}

// serveAccounts sets up the sub-resource that issues tokens and the discovery
// of the keys that verify them.
func (c Config) serveAccounts(b *server.Builder) error {
	sub, err := c.Tokens.Subresource()
	if err != nil {
		return err
	}
	accounts := b.Kind("", "ServiceAccount")
	if accounts == nil {
		return fmt.Errorf("access: the kind ServiceAccount is not registered: register the built-in kinds before")
	}
	accounts.Subresources = append(accounts.Subresources, sub)
	docs, err := c.Tokens.Discovery()
	if err != nil {
		return nil // an issuer that is no address has no documents
	}
	b.Handlers = maps.Clone(b.Handlers)
	if b.Handlers == nil {
		b.Handlers = map[string]http.Handler{}
	}
	maps.Copy(b.Handlers, docs)
	return nil
}

// authorize sets up who decides, the reviews that ask, what guards roles and
// certificates, and the controllers.
func (c Config) authorize(b *server.Builder) {
	roles := rbac.New(b.Client(), b.Names)
	deciders := []auth.Authorizer{auth.Superuser(auth.Masters)}
	if own := (Builtin{Node: node.New(b.Client(), b.Names), RBAC: roles}); c.Authorizers != nil {
		deciders = append(deciders, c.Authorizers(own)...)
	} else {
		deciders = append(deciders, own.Node, own.RBAC)
	}
	all := auth.Chain(deciders...)
	b.Authorizer = all
	b.Register(review.Access(all)...)
	b.Admission = append(slices.Clone(b.Admission), plugins.RBACEscalation(roles))
	if slices.Contains(deciders, auth.Authorizer(roles)) {
		b.Prepare = append(slices.Clone(b.Prepare), func(ctx context.Context, client client.Client) error {
			return rbac.Reconcile(ctx, client, b.Names)
		})
		done(b, "rbac/bootstrap-roles")
	}
	if list := c.objects(b.Names); len(list) > 0 {
		own, told := c.Publish.at()
		if told {
			b.Advertise = own
		}
		k := newKeeper(list, newServers(own, b.Names))
		b.Prepare = append(slices.Clone(b.Prepare), func(ctx context.Context, client client.Client) error {
			if b.Logger != nil {
				k.log = b.Logger
			}
			return k.prepare(ctx, client)
		})
		b.Controllers = append(b.Controllers, k.controller())
		if c.Publish.Address.IsValid() {
			done(b, "bootstrap-controller")
		}
		if len(c.Publish.Authentication.data()) > 0 {
			done(b, "start-cluster-authentication-info-controller")
		}
	}
	b.Controllers = append(b.Controllers, c.controllers(b, all)...)
}

// done adds the check that tools wait for until something is done. It is before
// the server answers: what fails in Prepare fails the start.
func done(b *server.Builder, name string) {
	checks := map[string]func(context.Context) error{}
	maps.Copy(checks, b.Checks)
	checks["poststarthook/"+name] = func(context.Context) error { return nil }
	b.Checks = checks
}
