// Package access sets up the usual access control of a cluster with one call: authentication, authorization,
// the review APIs, and the controllers of accounts, roles and certificates.
//
//	b := &server.Builder{Names: names.Kubernetes}
//	b.Register(builtin.Kinds()...)
//	err := access.Setup(b, access.Config{Authenticators: []auth.Authenticator{tokens}})
//
// It adds to a server:
//
//   - authentication by client certificate, service account token, bootstrap token, and the further Authenticators,
//     such as the authenticators of auth/tokenfile, auth/oidc and auth/webhook; an authenticating proxy is
//     auth/clientcert; impersonation is part of every server;
//   - the authorizers Node and RBAC, which can be replaced or combined with the authorizers of auth/abac and
//     auth/webhook; the default roles, the check against privilege escalation, and aggregated roles;
//   - TokenReview, SubjectAccessReview and the other review kinds;
//   - service accounts, their tokens, and the discovery documents with which others verify these tokens; the
//     approval and signing of certificate requests; and the objects by which joining machines and other
//     servers find this server, see Publish.
//
// The package only combines the packages below auth; a program that needs less can use these packages directly. Audit
// is separate: see server.Builder.Audit and auth/audit.
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

// Config configures Setup. The zero Config has service accounts, anonymous users, and the authorizers Node
// and RBAC; its default roles are restored at every start.
type Config struct {
	// ClientCAs verify client certificates; nil: client certificates are ignored.
	ClientCAs *x509.CertPool
	// Proxy authenticates requests of an authenticating proxy, before all other authenticators.
	Proxy auth.Authenticator
	// Tokens issues and verifies service account tokens. nil: Setup generates a key, so tokens become invalid when the
	// process ends.
	Tokens *serviceaccount.Tokens
	// BootstrapTokens accepts the tokens of bootstrap secrets, and runs their controllers.
	BootstrapTokens bool
	// Authenticators are further authenticators. They are tried last.
	Authenticators []auth.Authenticator
	// NoAnonymous refuses requests without credentials with 401.
	NoAnonymous bool

	// Authorizers returns the authorizers in order; nil: Node, then RBAC. Requests of the group system:masters are
	// always allowed, before the authorizers are called.
	Authorizers func(Builtin) []auth.Authorizer

	// Signer signs certificate requests; without an authority they are not signed.
	Signer certificates.Signer
	// RootCA is the CA certificate of the server, PEM. It is written to token secrets and to a ConfigMap in
	// every namespace, which the token volumes of pods mount. If RunControllers of the Builder excludes
	// root-ca-cert-publisher, the ConfigMaps are not created.
	RootCA []byte
	// Publish configures the objects by which others find the server; the zero value publishes nothing.
	Publish Publish
}

// Builtin has the authorizers that use the objects of the server.
type Builtin struct{ Node, RBAC auth.Authorizer }

// Setup adds the access control described by c to b. Before the call, the kinds of package builtin must be
// registered, and b must not have an Authorizer. It sets Authorizer, adds to Authenticators, Admission,
// Handlers, Controllers, OnStart, Checks and the kinds, and adds the subresource token to ServiceAccount.
func Setup(b *server.Builder, c Config) error {
	if b.Authorizer != nil {
		return fmt.Errorf("access: Builder.Authorizer must be nil: use Config.Authorizers")
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

// authenticate adds the authenticators and the identity reviews.
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
	methods = append(methods, c.Authenticators...)
	if !c.NoAnonymous {
		methods = append(methods, auth.AnonymousAccess)
	}
	all := auth.Union(methods...)
	b.Authenticators = append(b.Authenticators, all)
	b.Register(review.Identity(all, c.Tokens.Audiences())...)
}

// serveAccounts adds the subresource that issues tokens, and the discovery documents for the keys that verify them.
func (c Config) serveAccounts(b *server.Builder) error {
	sub, err := c.Tokens.Subresource()
	if err != nil {
		return err
	}
	accounts := b.Kind("", "ServiceAccount")
	if accounts == nil {
		return fmt.Errorf("access: the kind ServiceAccount is not registered: register the built-in kinds first")
	}
	accounts.Subresources = append(accounts.Subresources, sub)
	docs, err := c.Tokens.Discovery()
	if err != nil {
		return nil // an issuer that is not a URL has no discovery documents
	}
	b.Handlers = maps.Clone(b.Handlers)
	if b.Handlers == nil {
		b.Handlers = map[string]http.Handler{}
	}
	maps.Copy(b.Handlers, docs)
	return nil
}

// authorize adds the authorizers, the access reviews, the admission plugin against escalation, and the
// controllers.
func (c Config) authorize(b *server.Builder) {
	roles := rbac.New(b.Client(), b.Names)
	authorizers := []auth.Authorizer{auth.Superuser(auth.Masters)}
	if own := (Builtin{Node: node.New(b.Client(), b.Names), RBAC: roles}); c.Authorizers != nil {
		authorizers = append(authorizers, c.Authorizers(own)...)
	} else {
		authorizers = append(authorizers, own.Node, own.RBAC)
	}
	all := auth.Chain(authorizers...)
	b.Authorizer = all
	b.Register(review.Access(all)...)
	b.Admission = append(slices.Clone(b.Admission), plugins.RBACEscalation(roles))
	if slices.Contains(authorizers, auth.Authorizer(roles)) {
		b.OnStart = append(slices.Clone(b.OnStart), func(ctx context.Context, client client.Client) error {
			return rbac.Reconcile(ctx, client, b.Names)
		})
		addStartHookCheck(b, "rbac/bootstrap-roles")
	}
	if list := c.objects(b.Names); len(list) > 0 {
		own, published := c.Publish.serverAddress()
		if published {
			b.Advertise = own
		}
		k := newKeeper(list, newServers(own, b.Names))
		b.OnStart = append(slices.Clone(b.OnStart), func(ctx context.Context, client client.Client) error {
			if b.Logger != nil {
				k.log = b.Logger
			}
			return k.prepare(ctx, client)
		})
		b.Controllers = append(b.Controllers, k.controller())
		if c.Publish.Address.IsValid() {
			addStartHookCheck(b, "bootstrap-controller")
		}
		if len(c.Publish.Authentication.data()) > 0 {
			addStartHookCheck(b, "start-cluster-authentication-info-controller")
		}
	}
	b.Controllers = append(b.Controllers, c.controllers(b, all)...)
}

// addStartHookCheck adds the check poststarthook/name, for which tools wait. It always succeeds: an error in
// OnStart fails the start, so that a server that answers has completed the hook.
func addStartHookCheck(b *server.Builder, name string) {
	checks := map[string]func(context.Context) error{}
	maps.Copy(checks, b.Checks)
	checks["poststarthook/"+name] = func(context.Context) error { return nil }
	b.Checks = checks
}
