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

// authnFlags say how callers prove who they are.
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
	set.StringVar(&f.tokenAuthFile, "token-auth-file", "", "CSV file of bearer tokens: token, user, uid, groups")
	set.StringVar(&f.clientCAFile, "client-ca-file", "", "authorities of client certificates, PEM")
	set.BoolVar(&f.anonymous, "anonymous-auth", true, "let callers without credentials in as system:anonymous")
	set.BoolVar(&f.bootstrap, "enable-bootstrap-token-auth", false, "accept the tokens of bootstrap secrets")
	set.Var(&f.audiences, "api-audiences", "names of this API as an audience of tokens (default: the issuers)")

	a := &f.accounts
	set.Var(&a.keyFiles, "service-account-key-file", "keys that verify tokens of service accounts, PEM; repeatable (default: the server's key)")
	set.StringVar(&a.signingFile, "service-account-signing-key-file", "", "key that signs tokens of service accounts, PEM (default: the first private key of --service-account-key-file)")
	set.StringVar(&a.signingFile, "service-account-private-key-file", "", "the same as --service-account-signing-key-file")
	set.Var(&a.issuers, "service-account-issuer", "name of the issuer of tokens; repeatable, the first issues")
	set.BoolVar(&a.lookup, "service-account-lookup", true, "look up that the account, secret and pod of a token are still there")
	set.StringVar(&a.jwksURI, "service-account-jwks-uri", "", "address of the keys in the issuer's discovery document")
	set.DurationVar(&a.maxExpiration, "service-account-max-token-expiration", 0, "longest life of a token; 0 is as asked")

	o := &f.oidc
	set.StringVar(&o.IssuerURL, "oidc-issuer-url", "", "https address of the OpenID Connect issuer")
	set.StringVar(&o.ClientID, "oidc-client-id", "", "audience that id tokens must be for")
	set.StringVar(&o.UsernameClaim, "oidc-username-claim", "sub", "claim that is the user name")
	set.StringVar(&o.UsernamePrefix, "oidc-username-prefix", "", "prefix of user names; - is none (default: the issuer and #, none for email)")
	set.StringVar(&o.GroupsClaim, "oidc-groups-claim", "", "claim that is the groups")
	set.StringVar(&o.GroupsPrefix, "oidc-groups-prefix", "", "prefix of groups")
	set.Var(&o.required, "oidc-required-claim", "key=value that must be in the token; repeatable")
	set.Var(&o.algs, "oidc-signing-algs", "algorithms that may sign (default: RS256)")
	set.StringVar(&o.caFile, "oidc-ca-file", "", "authorities of the issuer's web certificate, PEM (default: the host's)")

	set.StringVar(&f.webhook.file, "authentication-token-webhook-config-file", "", "client configuration of the server that reviews tokens")
	set.StringVar(&f.webhook.version, "authentication-token-webhook-version", "v1", "version of TokenReview to send: v1 or v1beta1")
	set.DurationVar(&f.webhook.ttl, "authentication-token-webhook-cache-ttl", 2*time.Minute, "how long its answers are kept")

	p := &f.proxy
	set.StringVar(&p.caFile, "requestheader-client-ca-file", "", "authorities of the authenticating proxy's certificate, PEM")
	set.Var(&p.allowed, "requestheader-allowed-names", "common names that the proxy may have (default: any)")
	set.Var(&p.users, "requestheader-username-headers", "headers with the user name, the first with a value counts")
	set.Var(&p.uids, "requestheader-uid-headers", "headers with the user's uid")
	set.Var(&p.groups, "requestheader-group-headers", "headers with groups")
	set.StringVar(&p.certFile, "proxy-client-cert-file", "", "certificate by which servers that APIServices name know this one, PEM; a change counts from the next request on")
	set.StringVar(&p.keyFile, "proxy-client-key-file", "", "its key, PEM")
	set.Var(&p.extras, "requestheader-extra-headers-prefix", "prefixes of headers with extras")
}

// authenticate fills in how callers prove who they are. close ends what was
// opened.
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
			b.Logger.Warn("--requestheader-client-ca-file is --client-ca-file: without --requestheader-allowed-names every client certificate may name any user")
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

// serviceAccounts sets up the tokens of service accounts.
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

// accountKeys returns the keys of the files, the signing one first; without
// files the server's own or one that is kept in the data directory.
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
			err = fmt.Errorf("--service-account-signing-key-file: %s holds no private key", a.signingFile)
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

// proxyCertificate sets what servers that APIServices name know this one by.
func (f *authnFlags) proxyCertificate(b *server.Builder) error {
	p := &f.proxy
	if p.certFile == "" {
		return nil
	}
	var mu sync.Mutex // guards the rest
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
		if err := read(); err != nil && pair == nil { // else one of the files is replaced just now
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

// list is a flag that may be repeated or hold several values with commas.
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

// pairs is a flag of key=value that may be repeated.
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
		return fmt.Errorf("%q is given twice", k)
	}
	(*p)[k] = v
	return nil
}
