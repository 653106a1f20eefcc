// Package oidc authenticates callers by the id tokens of one OpenID Connect
// issuer.
//
// The issuer is asked for its configuration and keys when the first of its
// tokens comes and when a key is unknown, never for each request.
package oidc

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/internal/bearer"
	"orch.io/controlplane/internal/cache"
)

// Config is the flags of the table in the spec (Authentication, OpenID Connect
// flags).
type Config struct {
	// IssuerURL names the issuer: an https address. Required.
	IssuerURL string
	// ClientID is the audience that tokens must be for. Required.
	ClientID string
	// UsernameClaim is the user's name; empty is sub.
	UsernameClaim string
	// UsernamePrefix stands before it; empty is the issuer and # unless the
	// claim is email, "-" is no prefix.
	UsernamePrefix string
	// GroupsClaim is the user's groups, a string or several; empty: none.
	GroupsClaim  string
	GroupsPrefix string
	// RequiredClaims must be in the token with these values.
	RequiredClaims map[string]string
	// Algorithms that may sign; none: RS256.
	Algorithms []string
	// Roots are the authorities of the issuer's web certificate; nil: the
	// host's.
	Roots *x509.CertPool

	Now func() time.Time // nil: time.Now
}

// retry is for how long a failure to reach the issuer, or a search for an
// unknown key, stays the answer.
const retry = 10 * time.Second

// The bounds of what the issuer answers and how long it takes.
const (
	maxAnswer = 4 << 20
	timeout   = 15 * time.Second
	maxKeys   = 256 // each may be tried for a token that names none
	maxGroups = 4096
	maxKnown  = 4096 // tokens whose signature need not be checked again
)

// algorithms that tokens may be signed with: with keys that the issuer alone has.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512}

// Authenticator trusts one issuer.
type Authenticator struct {
	config Config
	client *http.Client
	known  *cache.Cache[[32]byte, verified]

	mu       sync.Mutex // guards the rest
	verifier *oidc.IDTokenVerifier
	keys     *keySet
	failed   error     // of the last try
	tried    time.Time // when that was
}

// verified is what a token said whose signature was checked with keys.
type verified struct {
	user *auth.User
	ends time.Time
	keys *[]jose.JSONWebKey
}

// New checks c; every fault is reported at once. It does not ask the issuer.
func New(c Config) (*Authenticator, error) {
	var errs []error
	if u, err := url.Parse(c.IssuerURL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, fmt.Errorf("oidc: the issuer %q is no https address", c.IssuerURL))
	}
	if c.ClientID == "" {
		errs = append(errs, errors.New("oidc: no client id"))
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(algorithms, a) {
			errs = append(errs, fmt.Errorf("oidc: unknown algorithm %q", a))
		}
	}
	for k := range c.RequiredClaims {
		if k == "" {
			errs = append(errs, errors.New("oidc: a required claim without a name"))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{oidc.RS256}
	}
	if c.UsernameClaim == "" {
		c.UsernameClaim = "sub"
	}
	switch {
	case c.UsernamePrefix == "-":
		c.UsernamePrefix = ""
	case c.UsernamePrefix == "" && c.UsernameClaim != "email":
		c.UsernamePrefix = c.IssuerURL + "#"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Authenticator{config: c, client: newClient(c.Roots), known: cache.New[[32]byte, verified](maxKnown, c.Now)}, nil
}

func newClient(roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{Timeout: timeout}
	return &http.Client{
		Timeout: timeout,
		Transport: bounded{&http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: timeout, ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, IdleConnTimeout: time.Minute}},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" || len(via) > 5 {
				return errors.New("oidc: the issuer leads away from https")
			}
			return nil
		},
	}
}

// bounded cuts long answers.
type bounded struct{ *http.Transport }

type limitedBody struct {
	io.Reader
	io.Closer
}

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.Transport.RoundTrip(r)
	if err == nil {
		resp.Body = limitedBody{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}

// Close closes the connections to the issuer.
func (a *Authenticator) Close() { a.client.CloseIdleConnections() }

// Authenticate implements auth.Authenticator.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(a, r)
}

// AuthenticateToken implements auth.TokenAuthenticator. Tokens of another issuer
// are none of its business.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, _ []string) (*auth.User, []string, error) {
	if bearer.Issuer(token) != a.config.IssuerURL {
		return nil, nil, nil
	}
	v, keys, err := a.discovered(ctx)
	if err != nil {
		return nil, nil, err
	}
	digest, set := sha256.Sum256([]byte(token)), keys.keys.Load()
	if k, ok := a.known.Get(digest); ok && k.keys == set && !k.ends.Before(a.config.Now()) {
		return k.user, nil, nil
	}
	id, err := v.Verify(ctx, token)
	if err != nil {
		var unreachable *unreachableError
		if errors.As(err, &unreachable) {
			return nil, nil, err
		}
		return nil, nil, auth.BadToken("%s", err)
	}
	var claims map[string]json.RawMessage
	if err := id.Claims(&claims); err != nil {
		return nil, nil, auth.BadToken("oidc: the claims are no object")
	}
	u, err := a.user(claims)
	if err != nil {
		return nil, nil, err
	}
	a.known.Put(digest, verified{u, id.Expiry, set}, id.Expiry.Sub(a.config.Now()))
	return u, nil, nil
}

// discovered returns the verifier, after asking the issuer for its configuration
// if nobody has done so yet.
func (a *Authenticator) discovered(ctx context.Context) (*oidc.IDTokenVerifier, *keySet, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.verifier != nil {
		return a.verifier, a.keys, nil
	}
	if a.failed != nil && a.config.Now().Sub(a.tried) < retry {
		return nil, nil, a.failed
	}
	// The answer is for all who come, so it does not end with this caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, a.client), a.config.IssuerURL)
	var doc struct {
		Keys string `json:"jwks_uri"`
	}
	if err == nil {
		err = provider.Claims(&doc)
	}
	if err == nil && !strings.HasPrefix(doc.Keys, "https://") {
		err = errors.New("the keys have no https address")
	}
	if err != nil {
		a.failed, a.tried = fmt.Errorf("oidc: the issuer's configuration: %w", err), a.config.Now()
		return nil, nil, a.failed
	}
	a.keys = newKeySet(a, doc.Keys)
	a.verifier = oidc.NewVerifier(a.config.IssuerURL, a.keys,
		&oidc.Config{ClientID: a.config.ClientID, SupportedSigningAlgs: a.config.Algorithms, Now: a.config.Now})
	return a.verifier, a.keys, nil
}

// user makes a user of the claims.
func (a *Authenticator) user(claims map[string]json.RawMessage) (*auth.User, error) {
	c := &a.config
	name, err := stringClaim(claims, c.UsernameClaim)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, auth.BadToken("oidc: the claim %q is empty", c.UsernameClaim)
	}
	if c.UsernameClaim == "email" {
		if raw, ok := claims["email_verified"]; ok && string(raw) != "true" {
			return nil, auth.BadToken("oidc: the address is not verified")
		}
	}
	for k, want := range c.RequiredClaims {
		got, err := stringClaim(claims, k)
		if err != nil {
			return nil, err
		}
		if got != want {
			return nil, auth.BadToken("oidc: the claim %q has another value than the required one", k)
		}
	}
	u := &auth.User{Name: c.UsernamePrefix + name}
	if c.GroupsClaim == "" {
		return u, nil
	}
	groups, err := groupsOf(claims[c.GroupsClaim])
	if err != nil {
		return nil, auth.BadToken("oidc: the claim %q: %s", c.GroupsClaim, err)
	}
	for _, g := range groups {
		u.Groups = append(u.Groups, c.GroupsPrefix+g)
	}
	return u, nil
}

func stringClaim(claims map[string]json.RawMessage, name string) (string, error) {
	raw, ok := claims[name]
	if !ok {
		return "", auth.BadToken("oidc: the claim %q is missing", name)
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", auth.BadToken("oidc: the claim %q is no string", name)
	}
	return *s, nil
}

// groupsOf reads a claim that is a string, several or not there.
func groupsOf(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, nil
	}
	var many []*string
	if json.Unmarshal(raw, &many) != nil || slices.Contains(many, nil) {
		return nil, errors.New("neither a string nor strings")
	}
	if len(many) > maxGroups {
		return nil, fmt.Errorf("more than %d groups", maxGroups)
	}
	out := make([]string, len(many))
	for i, s := range many {
		out[i] = *s
	}
	return out, nil
}
