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

// authzFlags configure authorization, certificate signing and the controllers.
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
	set.Var(&f.modes, "authorization-mode", "authorization modes in order: Node, ABAC, RBAC, Webhook, AlwaysAllow, AlwaysDeny (default: Node,RBAC)")
	set.StringVar(&f.policyFile, "authorization-policy-file", "", "file with the policies of mode ABAC, one JSON object per line")
	set.StringVar(&f.webhook.file, "authorization-webhook-config-file", "", "client configuration (kubeconfig) for the webhook of mode Webhook")
	set.StringVar(&f.webhook.version, "authorization-webhook-version", "v1beta1", "version of SubjectAccessReview to send: v1 or v1beta1")
	set.DurationVar(&f.webhook.allowed, "authorization-webhook-cache-authorized-ttl", 5*time.Minute, "how long the webhook's answer \"allowed\" is cached")
	set.DurationVar(&f.webhook.denied, "authorization-webhook-cache-unauthorized-ttl", 30*time.Second, "how long any other answer of the webhook is cached")
	set.StringVar(&f.signing.certFile, "cluster-signing-cert-file", "", "certificate authority that signs certificate requests, PEM (default: the authority of the server)")
	set.StringVar(&f.signing.keyFile, "cluster-signing-key-file", "", "key of --cluster-signing-cert-file, PEM")
	set.DurationVar(&f.signing.duration, "cluster-signing-duration", certificates.DefaultDuration, "maximum validity of signed certificates")
	set.StringVar(&f.rootCAFile, "root-ca-file", "", "certificate authorities that verify the server, PEM, published in every namespace and in token secrets (default: the authority of the server)")
	set.Var(&f.controllers, "controllers", "controllers to run: * for all, NAME to add one, -NAME to omit one, envtest for the controllers that a kube-apiserver itself contains (default: *); "+
		"available: "+strings.Join(server.ControllerNames(), ", "))
}

// validate rejects an empty list of modes, duplicate modes, and flags of modes that are not enabled.
func (f *authzFlags) validate(given bool) (faults []error) {
	if given && len(f.modes) == 0 {
		faults = append(faults, errors.New("--authorization-mode is empty"))
	}
	for i, mode := range f.modes {
		if slices.Contains(f.modes[:i], mode) {
			faults = append(faults, fmt.Errorf("duplicate mode %s in --authorization-mode", mode))
		}
	}
	if f.policyFile != "" && !slices.Contains(f.modes, "ABAC") {
		faults = append(faults, errors.New("--authorization-policy-file requires --authorization-mode ABAC"))
	}
	if f.webhook.file != "" && !slices.Contains(f.modes, "Webhook") {
		faults = append(faults, errors.New("--authorization-webhook-config-file requires --authorization-mode Webhook"))
	}
	return faults
}

// defaults sets the values of flags that were not given. With AlwaysAllow, anonymous requests are off
// by default.
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

// authorize configures authorization in c. The caller must call close, also after an error.
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

// mode returns the authorizer of a mode, or nil for the modes that package access provides.
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
			return nil, errors.New("--authorization-mode ABAC requires --authorization-policy-file")
		}
		return abac.Load(f.authz.policyFile, f.names)
	case "Webhook":
		return f.accessWebhook()
	}
	return nil, fmt.Errorf("unknown --authorization-mode %q", word)
}

func (f *flags) accessWebhook() (auth.Authorizer, error) {
	w := &f.authz.webhook
	if w.file == "" {
		return nil, errors.New("--authorization-mode Webhook requires --authorization-webhook-config-file")
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
