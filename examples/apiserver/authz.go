package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/abac"
	"orch.io/controlplane/auth/accesswebhook"
	"orch.io/controlplane/auth/bootstraptoken"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/auth/clientconfig"
	"orch.io/controlplane/auth/node"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/registry/authorization"
	"orch.io/controlplane/server"
)

// authzFlags say what callers may do, and which controllers run for that.
type authzFlags struct {
	modes      list
	policyFile string
	webhook    struct {
		file, version   string
		allowed, denied time.Duration
	}
	signing struct {
		certFile, keyFile string
		duration          time.Duration
	}
	rootCAFile  string
	controllers list
}

func (f *authzFlags) define(set *flag.FlagSet) {
	set.Var(&f.modes, "authorization-mode", "who decides, in order: Node, ABAC, RBAC, Webhook, AlwaysAllow, AlwaysDeny (default: Node,RBAC)")
	set.StringVar(&f.policyFile, "authorization-policy-file", "", "policies of the mode ABAC, one JSON object per line")
	set.StringVar(&f.webhook.file, "authorization-webhook-config-file", "", "client configuration of the server that the mode Webhook asks")
	set.StringVar(&f.webhook.version, "authorization-webhook-version", "v1beta1", "version of SubjectAccessReview to send: v1 or v1beta1")
	set.DurationVar(&f.webhook.allowed, "authorization-webhook-cache-authorized-ttl", 5*time.Minute, "how long an allowing answer is kept")
	set.DurationVar(&f.webhook.denied, "authorization-webhook-cache-unauthorized-ttl", 30*time.Second, "how long any other answer is kept")
	set.StringVar(&f.signing.certFile, "cluster-signing-cert-file", "", "certificate that signs certificate requests, PEM (default: the server's own authority)")
	set.StringVar(&f.signing.keyFile, "cluster-signing-key-file", "", "key of that certificate, PEM")
	set.DurationVar(&f.signing.duration, "cluster-signing-duration", certificates.DefaultDuration, "longest validity of signed certificates")
	set.StringVar(&f.rootCAFile, "root-ca-file", "", "authorities of the server, PEM, published in every namespace and in token secrets (default: in token secrets alone, the server's own)")
	set.Var(&f.controllers, "controllers", "background loops to run: * for those that run by default, NAME for more, -NAME for fewer (default: *)")
}

// defaults fills in what was not given. Without access control nobody is
// anonymous unless that was asked for.
func (f *authzFlags) defaults(set *flag.FlagSet, authn *authnFlags) {
	if len(f.modes) == 0 {
		f.modes = list{"Node", "RBAC"}
	}
	if len(f.controllers) == 0 {
		f.controllers = list{"*"}
	}
	asked := false
	set.Visit(func(x *flag.Flag) { asked = asked || x.Name == "anonymous-auth" })
	if !asked && slices.Contains(f.modes, "AlwaysAllow") {
		authn.anonymous = false
	}
}

// authorize puts authorization into a server: who decides, the kinds that ask,
// what guards roles and certificates, and the loops that belong to it. ready is
// to be called when the server is built.
func (f *flags) authorize(b *server.Builder, id *identity, tokens *serviceaccount.Tokens) (ready func(context.Context, *server.Server) error, close func(), err error) {
	var hooks []*accesswebhook.Authorizer
	close = func() {
		for _, h := range hooks {
			h.Close()
		}
	}
	roles := rbac.New(b.Client(), f.names)
	chain := []auth.Authorizer{auth.Superuser(auth.Masters)}
	for _, mode := range f.authz.modes {
		a, err := f.mode(b, mode, roles)
		if err != nil {
			return nil, close, err
		}
		if h, ok := a.(*accesswebhook.Authorizer); ok {
			hooks = append(hooks, h)
		}
		chain = append(chain, a)
	}
	all := auth.Chain(chain...)
	b.Authorizer = all
	answers := review.New(all)
	b.Register(authorization.Kinds(authorization.Answers{
		Subject: answers.Subject, SelfSubject: answers.SelfSubject, LocalSubject: answers.LocalSubject, SelfSubjectRules: answers.SelfSubjectRules,
	})...)
	b.Admission = append(b.Admission, []admission.Plugin{
		certificates.Approval(all, f.names), certificates.Signing(all, f.names), certificates.SubjectRestriction(f.names), roles.Guard(all),
	}...)
	if err := f.addLoops(b, id, tokens, all); err != nil {
		return nil, close, err
	}
	return func(ctx context.Context, s *server.Server) error {
		if !slices.Contains(f.authz.modes, "RBAC") {
			return nil
		}
		return rbac.Reconcile(ctx, s.Objects(), f.names)
	}, close, nil
}

// mode returns the authorizer of a word of --authorization-mode.
func (f *flags) mode(b *server.Builder, word string, roles *rbac.Authorizer) (auth.Authorizer, error) {
	switch word {
	case "Node":
		return node.New(b.Client(), f.names), nil
	case "RBAC":
		return roles, nil
	case "AlwaysAllow":
		return auth.AllowAll, nil
	case "AlwaysDeny":
		return auth.DenyAll, nil
	case "ABAC":
		if f.authz.policyFile == "" {
			return nil, errors.New("--authorization-mode ABAC needs --authorization-policy-file")
		}
		return abac.Load(f.authz.policyFile, f.names)
	case "Webhook":
		return f.accessWebhook()
	}
	return nil, fmt.Errorf("--authorization-mode does not know %q", word)
}

func (f *flags) accessWebhook() (auth.Authorizer, error) {
	w := &f.authz.webhook
	if w.file == "" {
		return nil, errors.New("--authorization-mode Webhook needs --authorization-webhook-config-file")
	}
	c, err := clientconfig.Load(w.file)
	if err != nil {
		return nil, fmt.Errorf("--authorization-webhook-config-file: %w", err)
	}
	remote, err := c.Current()
	if err != nil {
		return nil, fmt.Errorf("--authorization-webhook-config-file: %w", err)
	}
	none := func(d time.Duration) time.Duration {
		if d == 0 {
			return -1
		}
		return d
	}
	return accesswebhook.New(accesswebhook.Config{Remote: remote, Version: w.version, Names: f.names,
		KeepAllowed: none(w.allowed), KeepDenied: none(w.denied)})
}

// addLoops adds the background loops that --controllers chooses. The names are
// those of the field's controllers.
func (f *flags) addLoops(b *server.Builder, id *identity, tokens *serviceaccount.Tokens, all auth.Authorizer) error {
	signer, err := f.signer(id)
	if err != nil {
		return err
	}
	authorities := id.caPEM
	if f.authz.rootCAFile != "" {
		if authorities, err = os.ReadFile(f.authz.rootCAFile); err != nil {
			return fmt.Errorf("--root-ca-file: %w", err)
		}
	}
	known := []choice{
		{"clusterrole-aggregation", true, rbac.NewAggregator(b.Client(), f.names).Loop()},
		{"csrapproving", true, certificates.Approver(all, f.names)},
		{"csrsigning", true, signer.Loop(f.names)},
		{"csrcleaner", true, certificates.Cleaner(f.names, nil)},
		{"serviceaccount", true, serviceaccount.DefaultAccounts()},
		{"serviceaccount-token", true, tokens.Secrets(authorities)},
		{"root-ca-cert-publisher", f.authz.rootCAFile != "", serviceaccount.RootCA(f.names, authorities)},
		{"bootstrapsigner", false, bootstraptoken.Signer(f.names, nil)},
		{"tokencleaner", false, bootstraptoken.Cleaner(f.names, nil)},
	}
	for _, word := range f.authz.controllers {
		name := strings.TrimPrefix(word, "-")
		if word != "*" && !slices.ContainsFunc(known, func(c choice) bool { return c.name == name }) {
			return fmt.Errorf("--controllers does not know %q", name)
		}
	}
	for _, l := range known {
		if f.authz.runs(l.name, l.on) {
			b.Loops = append(b.Loops, l.loop)
		}
	}
	return nil
}

// choice is a loop that --controllers knows, and whether * is enough for it.
type choice struct {
	name string
	on   bool
	loop server.Loop
}

// runs tells whether a loop is chosen.
func (f *authzFlags) runs(name string, on bool) bool {
	switch {
	case slices.Contains(f.controllers, "-"+name):
		return false
	case slices.Contains(f.controllers, name):
		return true
	}
	return on && slices.Contains(f.controllers, "*")
}

func (f *flags) signer(id *identity) (certificates.Signer, error) {
	s := &f.authz.signing
	cert, key := id.ca.pem, []byte(nil)
	if (s.certFile == "") != (s.keyFile == "") {
		return certificates.Signer{}, errors.New("--cluster-signing-cert-file and --cluster-signing-key-file go together")
	}
	var err error
	if s.certFile == "" {
		key, err = encodeKey(id.ca.key)
	} else if cert, err = os.ReadFile(s.certFile); err == nil {
		key, err = os.ReadFile(s.keyFile)
	}
	if err != nil {
		return certificates.Signer{}, fmt.Errorf("--cluster-signing-cert-file: %w", err)
	}
	a, err := certificates.NewAuthority(cert, key)
	return certificates.Signer{Authority: a, MaxDuration: s.duration}, err
}
