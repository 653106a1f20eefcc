package apiserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/clientcert"
	"orch.io/controlplane/auth/oidc"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/auth/webhook"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/serving"
)

// authnFlags configure authentication.
type authnFlags struct {
	tokenAuthFile string
	clientCAFile  string
	anonymous     bool
	bootstrap     bool
	audiences     list

	accounts struct {
		keyFiles      list
		signingFile   string
		issuers       list
		lookup        bool
		jwksURI       string
		maxExpiration time.Duration
	}
	oidc struct {
		oidc.Config
		caFile   string
		required pairs
		algs     list
	}
	webhook struct {
		file, version string
		ttl           time.Duration
	}
	proxy struct {
		caFile, certFile, keyFile            string
		users, uids, groups, extras, allowed list
	}
}

func (f *authnFlags) define(set *flag.FlagSet) {
	set.StringVar(&f.tokenAuthFile, "token-auth-file", "", "CSV file of bearer tokens, with the columns token, user, uid, groups")
	set.StringVar(&f.clientCAFile, "client-ca-file", "", "certificate authorities of client certificates, PEM")
	set.BoolVar(&f.anonymous, "anonymous-auth", true, "accept requests without credentials, as the user system:anonymous")
	set.BoolVar(&f.bootstrap, "enable-bootstrap-token-auth", false, "accept bootstrap tokens from secrets in kube-system")
	set.Var(&f.audiences, "api-audiences", "audiences of tokens for this API (default: the issuers)")

	a := &f.accounts
	set.Var(&a.keyFiles, "service-account-key-file", "file with keys that verify service account tokens, PEM; repeatable (default: the key of the server)")
	set.StringVar(&a.signingFile, "service-account-signing-key-file", "", "file with the key that signs service account tokens, PEM (default: the first private key of --service-account-key-file)")
	set.StringVar(&a.signingFile, "service-account-private-key-file", "", "alias of --service-account-signing-key-file")
	set.Var(&a.issuers, "service-account-issuer", "issuer of service account tokens; repeatable, the first one is used in new tokens")
	set.BoolVar(&a.lookup, "service-account-lookup", true, "reject tokens whose account, secret or pod no longer exists")
	set.StringVar(&a.jwksURI, "service-account-jwks-uri", "", "URL of the keys in the discovery document of the issuer")
	set.DurationVar(&a.maxExpiration, "service-account-max-token-expiration", 0, "maximum lifetime of a token; 0 is no limit")

	o := &f.oidc
	set.StringVar(&o.IssuerURL, "oidc-issuer-url", "", "HTTPS URL of the OpenID Connect issuer")
	set.StringVar(&o.ClientID, "oidc-client-id", "", "required audience of ID tokens")
	set.StringVar(&o.UsernameClaim, "oidc-username-claim", "sub", "claim with the user name")
	set.StringVar(&o.UsernamePrefix, "oidc-username-prefix", "", "prefix of user names; - for none (default: the issuer and #; none for the claim email)")
	set.StringVar(&o.GroupsClaim, "oidc-groups-claim", "", "claim with the groups")
	set.StringVar(&o.GroupsPrefix, "oidc-groups-prefix", "", "prefix of groups")
	set.Var(&o.required, "oidc-required-claim", "required claim of tokens, as key=value; repeatable")
	set.Var(&o.algs, "oidc-signing-algs", "accepted signature algorithms (default: RS256)")
	set.StringVar(&o.caFile, "oidc-ca-file", "", "certificate authorities of the issuer, PEM (default: those of the host)")

	set.StringVar(&f.webhook.file, "authentication-token-webhook-config-file", "", "client configuration (kubeconfig) for the webhook that authenticates tokens")
	set.StringVar(&f.webhook.version, "authentication-token-webhook-version", "v1", "version of TokenReview to send: v1 or v1beta1")
	set.DurationVar(&f.webhook.ttl, "authentication-token-webhook-cache-ttl", 2*time.Minute, "how long answers of the webhook are cached")

	p := &f.proxy
	set.StringVar(&p.caFile, "requestheader-client-ca-file", "", "certificate authorities of the authenticating proxy, PEM")
	set.Var(&p.allowed, "requestheader-allowed-names", "accepted common names of the proxy (default: any)")
	set.Var(&p.users, "requestheader-username-headers", "headers with the user name; the first header with a value is used")
	set.Var(&p.uids, "requestheader-uid-headers", "headers with the UID of the user")
	set.Var(&p.groups, "requestheader-group-headers", "headers with the groups of the user")
	set.StringVar(&p.certFile, "proxy-client-cert-file", "", "client certificate for requests to extension API servers (APIServices), PEM; a replaced file is used from the next request on")
	set.StringVar(&p.keyFile, "proxy-client-key-file", "", "key of --proxy-client-cert-file, PEM")
	set.Var(&p.extras, "requestheader-extra-headers-prefix", "prefixes of headers with extra values of the user")
}

// authenticate configures authentication in b and c. The caller must call close, also after an error.
func (f *flags) authenticate(b *server.Builder, id *identity, c *access.Config) (close func(), err error) {
	var closers []func()
	close = func() {
		for _, c := range closers {
			c()
		}
	}
	a := &f.authn
	if err := a.proxyCertificate(b); err != nil {
		return close, err
	}
	if c.Tokens, err = f.serviceAccounts(b); err != nil {
		return close, err
	}
	c.ClientCAs, c.BootstrapTokens, c.NoAnonymous = id.clients, a.bootstrap, !a.anonymous
	if a.tokenAuthFile != "" {
		m, err := tokenfile.Load(a.tokenAuthFile)
		if err != nil {
			return close, fmt.Errorf("--token-auth-file: %w", err)
		}
		c.Authenticators = append(c.Authenticators, m)
	}
	if a.proxy.caFile != "" {
		if c.Proxy, err = a.proxyMethod(); err != nil {
			return close, err
		}
		if a.proxy.caFile == a.clientCAFile && len(a.proxy.allowed) == 0 {
			b.Logger.Warn("--requestheader-client-ca-file is --client-ca-file: without --requestheader-allowed-names, every client certificate can impersonate any user")
		}
	}
	if a.oidc.IssuerURL != "" {
		m, err := a.oidcMethod()
		if err != nil {
			return close, err
		}
		c.Authenticators, closers = append(c.Authenticators, m), append(closers, m.Close)
	}
	if a.webhook.file != "" {
		m, err := a.webhookMethod(f.names, c.Tokens.Audiences())
		if err != nil {
			return close, err
		}
		c.Authenticators, closers = append(c.Authenticators, m), append(closers, m.Close)
	}
	return close, nil
}

// serviceAccounts returns the issuer and verifier of service account tokens.
func (f *flags) serviceAccounts(b *server.Builder) (*serviceaccount.Tokens, error) {
	a := &f.authn.accounts
	keys, err := f.accountKeys()
	if err != nil {
		return nil, err
	}
	return serviceaccount.New(serviceaccount.Config{
		Issuers: a.issuers, Audiences: f.authn.audiences, Keys: keys, Client: b.Client(), NoLookup: !a.lookup,
		JWKSURL: a.jwksURI, MaxExpiration: a.maxExpiration, Names: f.names,
	})
}

// accountKeys returns the keys of service account tokens, the signing key first. Without key files it
// returns the TLS key of the server, or else a generated key, which is kept in the data directory.
func (f *flags) accountKeys() ([]serviceaccount.Key, error) {
	a := &f.authn.accounts
	var files []string
	if a.signingFile != "" {
		files = append(files, a.signingFile)
	}
	files = append(files, a.keyFiles...)
	if len(files) == 0 && f.tlsKey != "" {
		files = []string{f.tlsKey}
	}
	if len(files) > 0 {
		keys, err := serviceaccount.LoadKeys(files...)
		if err == nil && a.signingFile != "" && !keys[0].Private() {
			err = fmt.Errorf("--service-account-signing-key-file: no private key in %s", a.signingFile)
		}
		return keys, err
	}
	key, pem, err := serviceaccount.NewKeyPEM()
	if err != nil || f.dataDir == "" {
		return []serviceaccount.Key{key}, err
	}
	path := filepath.Join(f.dataDir, "service-account.pem")
	if _, err := serving.CreatePrivate(path, pem); err != nil {
		return nil, err
	}
	return serviceaccount.LoadKeys(path)
}

func (f *authnFlags) proxyMethod() (auth.Authenticator, error) {
	roots, err := loadPool("--requestheader-client-ca-file", f.proxy.caFile)
	if err != nil {
		return nil, err
	}
	p := &f.proxy
	return clientcert.NewRequestHeader(clientcert.RequestHeaderConfig{Roots: roots, AllowedNames: p.allowed, UserHeaders: p.users,
		UIDHeaders: p.uids, GroupHeaders: p.groups, ExtraPrefixes: p.extras})
}

// proxyCertificate sets the client certificate for requests to extension API servers. The files are
// read again for each request, so they can be replaced.
func (f *authnFlags) proxyCertificate(b *server.Builder) error {
	p := &f.proxy
	if p.certFile == "" {
		return nil
	}
	var mu sync.Mutex // guards cert, key and pair
	var cert, key []byte
	var pair *tls.Certificate
	read := func() error {
		nextCert, err := os.ReadFile(p.certFile)
		if err != nil {
			return err
		}
		nextKey, err := os.ReadFile(p.keyFile)
		if err != nil || bytes.Equal(cert, nextCert) && bytes.Equal(key, nextKey) {
			return err
		}
		next, err := tls.X509KeyPair(nextCert, nextKey)
		if err == nil {
			cert, key, pair = nextCert, nextKey, &next
		}
		return err
	}
	load := func() (*tls.Certificate, error) {
		mu.Lock()
		defer mu.Unlock()
		if err := read(); err != nil && pair == nil { // otherwise keep the previous pair: the files may be in the middle of a replacement
			return nil, fmt.Errorf("--proxy-client-cert-file and --proxy-client-key-file: %w", err)
		}
		return pair, nil
	}
	b.Serving.ProxyCertificate = load
	_, err := load()
	return err
}

func (f *authnFlags) oidcMethod() (*oidc.Authenticator, error) {
	c := f.oidc.Config
	c.RequiredClaims, c.Algorithms = f.oidc.required, f.oidc.algs
	if f.oidc.caFile != "" {
		var err error
		if c.Roots, err = loadPool("--oidc-ca-file", f.oidc.caFile); err != nil {
			return nil, err
		}
	}
	return oidc.New(c)
}

func (f *authnFlags) webhookMethod(p names.Profile, audiences []string) (*webhook.Authenticator, error) {
	c, err := kubeconfig.Load(f.webhook.file)
	if err != nil {
		return nil, fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
	}
	remote, err := c.Current()
	if err != nil {
		return nil, fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
	}
	ttl := f.webhook.ttl
	if ttl == 0 {
		ttl = -1
	}
	return webhook.NewAuthenticator(webhook.AuthenticatorConfig{Remote: remote, Version: f.webhook.version, Keep: ttl, Audiences: audiences, Names: p})
}

func loadPool(name, path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	pool, err := clientcert.ParseBundle(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, path, err)
	}
	return pool, nil
}

// list is a flag that may be repeated and may have several values separated by commas.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value.
func (l *list) Set(s string) error {
	for v := range strings.SplitSeq(s, ",") {
		if v = strings.TrimSpace(v); v != "" {
			*l = append(*l, v)
		}
	}
	return nil
}

// pairs is a repeatable flag with values of the form key=value.
type pairs map[string]string

// String implements flag.Value.
func (p *pairs) String() string { return fmt.Sprint(map[string]string(*p)) }

// Set implements flag.Value.
func (p *pairs) Set(s string) error {
	k, v, ok := strings.Cut(s, "=")
	if !ok || k == "" {
		return fmt.Errorf("%q is not key=value", s)
	}
	if *p == nil {
		*p = pairs{}
	}
	if _, twice := (*p)[k]; twice {
		return fmt.Errorf("duplicate key %q", k)
	}
	(*p)[k] = v
	return nil
}
