package apiserver

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/abac"
	"orch.io/controlplane/auth/certificates"
	"orch.io/controlplane/auth/webhook"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
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
	set.StringVar(&f.rootCAFile, "root-ca-file", "", "authorities of the server, PEM, published in every namespace and in token secrets (default: the server's own)")
	set.Var(&f.controllers, "controllers", "controllers to run: * for all, NAME for one, -NAME to leave one out, envtest for those that do what a bare kube-apiserver does, none is *; "+
		"there are "+strings.Join(server.ControllerNames(), ", "))
}

// validate refuses modes that say nothing or say it twice, and what belongs to modes
// that were not chosen.
func (f *authzFlags) validate(given bool) (faults []error) {
	if given && len(f.modes) == 0 {
		faults = append(faults, errors.New("--authorization-mode is empty"))
	}
	for i, mode := range f.modes {
		if slices.Contains(f.modes[:i], mode) {
			faults = append(faults, fmt.Errorf("--authorization-mode has %s twice", mode))
		}
	}
	if f.policyFile != "" && !slices.Contains(f.modes, "ABAC") {
		faults = append(faults, errors.New("--authorization-policy-file means nothing without --authorization-mode ABAC"))
	}
	if f.webhook.file != "" && !slices.Contains(f.modes, "Webhook") {
		faults = append(faults, errors.New("--authorization-webhook-config-file means nothing without --authorization-mode Webhook"))
	}
	return faults
}

// defaults fills in what was not given. Without access control nobody is
// anonymous unless that was asked for.
func (f *authzFlags) defaults(set *flag.FlagSet, authn *authnFlags) {
	if len(f.modes) == 0 {
		f.modes = list{"Node", "RBAC"}
	}
	asked := false
	set.Visit(func(x *flag.Flag) { asked = asked || x.Name == "anonymous-auth" })
	if !asked && slices.Contains(f.modes, "AlwaysAllow") {
		authn.anonymous = false
	}
}

// authorize fills in who decides and which controllers run. close ends what was
// opened.
func (f *flags) authorize(id *identity, c *access.Config) (close func(), err error) {
	var hooks []*webhook.Authorizer
	close = func() {
		for _, h := range hooks {
			h.Close()
		}
	}
	others := map[string]auth.Authorizer{}
	for _, mode := range f.authz.modes {
		a, err := f.mode(mode)
		if err != nil {
			return close, err
		}
		if h, ok := a.(*webhook.Authorizer); ok {
			hooks = append(hooks, h)
		}
		others[mode] = a
	}
	c.Authorizers = func(own access.Builtin) []auth.Authorizer {
		others["Node"], others["RBAC"] = own.Node, own.RBAC
		var all []auth.Authorizer
		for _, mode := range f.authz.modes {
			all = append(all, others[mode])
		}
		return all
	}
	c.RootCA = id.caPEM
	if f.authz.rootCAFile != "" {
		if c.RootCA, err = os.ReadFile(f.authz.rootCAFile); err != nil {
			return close, fmt.Errorf("--root-ca-file: %w", err)
		}
	}
	c.Signer, err = f.signer(id)
	return close, err
}

// mode returns the authorizer of a word of --authorization-mode, nil for those
// that the server brings.
func (f *flags) mode(word string) (auth.Authorizer, error) {
	switch word {
	case "Node", "RBAC":
		return nil, nil
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
	c, err := kubeconfig.Load(w.file)
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
	return webhook.NewAuthorizer(webhook.AuthorizerConfig{Remote: remote, Version: w.version, Names: f.names,
		KeepAllowed: none(w.allowed), KeepDenied: none(w.denied)})
}

func (f *flags) signer(id *identity) (certificates.Signer, error) {
	s := &f.authz.signing
	cert, key := id.ca.PEM(), []byte(nil)
	var err error
	if s.certFile == "" {
		key, err = id.ca.KeyPEM()
	} else if cert, err = os.ReadFile(s.certFile); err == nil {
		key, err = os.ReadFile(s.keyFile)
	}
	if err != nil {
		return certificates.Signer{}, fmt.Errorf("--cluster-signing-cert-file: %w", err)
	}
	a, err := certificates.NewAuthority(cert, key)
	return certificates.Signer{Authority: a, MaxDuration: s.duration}, err
}
