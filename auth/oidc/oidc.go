// Package oidc authenticates users by the ID tokens of an OpenID Connect issuer.
//
// The issuer's configuration and keys are fetched when its first token is
// verified. The keys are fetched again when a token has an unknown key, at most once
// every ten seconds.
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

// Config configures an Authenticator, like the --oidc flags of kube-apiserver.
type Config struct {
	// IssuerURL is the issuer, an https URL. Required.
	IssuerURL string
	// ClientID is the required audience of tokens. Required.
	ClientID string
	// UsernameClaim is the claim with the user name; empty is sub.
	UsernameClaim string
	// UsernamePrefix is the prefix of user names; "-" is no prefix. Empty is the
	// issuer and "#", or no prefix if UsernameClaim is email.
	UsernamePrefix string
	// GroupsClaim is the claim with the groups, a string or a list of strings;
	// empty: users have no groups.
	GroupsClaim string
	// GroupsPrefix is the prefix of groups.
	GroupsPrefix string
	// RequiredClaims are claims with the values that tokens must have.
	RequiredClaims map[string]string
	// Algorithms are the accepted signature algorithms; empty is RS256.
	Algorithms []string
	// Roots are the CA certificates for connections to the issuer; nil: the CA
	// certificates of the host.
	Roots *x509.CertPool

	Now func() time.Time // nil: time.Now
}

// retry is the minimum time between two fetches of the configuration or of the
// keys. Meanwhile requests get the last result.
const retry = 10 * time.Second

// The bounds of the issuer's responses, of tokens and of the cache.
const (
	maxAnswer = 4 << 20 // bytes
	timeout   = 15 * time.Second
	maxKeys   = 256 // a token without a key id may be verified with each
	maxGroups = 4096
	maxKnown  = 4096 // cached tokens
)

// algorithms are the supported signature algorithms. They are asymmetric, so only
// the issuer can sign.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512}

// Authenticator authenticates users by the ID tokens of an issuer. It implements
// auth.TokenAuthenticator, and is safe for concurrent use.
type Authenticator struct {
	config Config
	client *http.Client
	known  *cache.Cache[[32]byte, verified] // by SHA-256 of the token

	mu       sync.Mutex // held while the configuration is fetched; guards the fields below
	verifier *oidc.IDTokenVerifier
	keys     *keySet
	failed   error     // of the last fetch
	tried    time.Time // end of the last failed fetch
}

// verified is the cached result of a valid token. It is used only as long as the
// key set is still keys.
type verified struct {
	user *auth.User
	ends time.Time
	keys *[]jose.JSONWebKey
}

// New returns an Authenticator for c. The returned error joins all violations of c.
// New does not connect to the issuer.
func New(c Config) (*Authenticator, error) {
	var errs []error
	if u, err := url.Parse(c.IssuerURL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		errs = append(errs, fmt.Errorf("oidc: issuer %q must be an https URL without user, query and fragment", c.IssuerURL))
	}
	if c.ClientID == "" {
		errs = append(errs, errors.New("oidc: client id is empty"))
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(algorithms, a) {
			errs = append(errs, fmt.Errorf("oidc: unknown algorithm %q", a))
		}
	}
	for k := range c.RequiredClaims {
		if k == "" {
			errs = append(errs, errors.New("oidc: required claim without a name"))
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

// newClient returns a client that bounds responses and follows only redirects to
// https.
func newClient(roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{Timeout: timeout}
	return &http.Client{
		Timeout: timeout,
		Transport: bounded{&http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: timeout, ForceAttemptHTTP2: true,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, IdleConnTimeout: time.Minute}},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Scheme != "https" || len(via) > 5 {
				return errors.New("oidc: more than 5 redirects of the issuer, or a redirect to a URL without https")
			}
			return nil
		},
	}
}

// bounded truncates responses after maxAnswer bytes.
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

// AuthenticateToken implements auth.TokenAuthenticator. For a token of another
// issuer it returns no user and no error.
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
		return nil, nil, auth.BadToken("oidc: claims must be a JSON object")
	}
	u, err := a.user(claims)
	if err != nil {
		return nil, nil, err
	}
	a.known.Put(digest, verified{u, id.Expiry, set}, id.Expiry.Sub(a.config.Now()))
	return u, nil, nil
}

// discovered returns the verifier and the keys. If no earlier call succeeded, it
// fetches the issuer's configuration; after a failure it returns the same error until
// retry has passed.
func (a *Authenticator) discovered(ctx context.Context) (*oidc.IDTokenVerifier, *keySet, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.verifier != nil {
		return a.verifier, a.keys, nil
	}
	if a.failed != nil && a.config.Now().Sub(a.tried) < retry {
		return nil, nil, a.failed
	}
	// Other requests wait for the result, too, so ignore the cancellation of ctx.
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
		err = errors.New("jwks_uri must be an https URL")
	}
	if err != nil {
		a.failed, a.tried = fmt.Errorf("oidc: fetching the issuer's configuration: %w", err), a.config.Now()
		return nil, nil, a.failed
	}
	a.keys = newKeySet(a, doc.Keys)
	a.verifier = oidc.NewVerifier(a.config.IssuerURL, a.keys,
		&oidc.Config{ClientID: a.config.ClientID, SupportedSigningAlgs: a.config.Algorithms, Now: a.config.Now})
	return a.verifier, a.keys, nil
}

// user returns the user of the claims, or an error if a claim is missing or has a
// wrong value.
func (a *Authenticator) user(claims map[string]json.RawMessage) (*auth.User, error) {
	c := &a.config
	name, err := stringClaim(claims, c.UsernameClaim)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, auth.BadToken("oidc: claim %q is empty", c.UsernameClaim)
	}
	if c.UsernameClaim == "email" {
		if raw, ok := claims["email_verified"]; ok && string(raw) != "true" {
			return nil, auth.BadToken("oidc: email address is not verified")
		}
	}
	for k, want := range c.RequiredClaims {
		got, err := stringClaim(claims, k)
		if err != nil {
			return nil, err
		}
		if got != want {
			return nil, auth.BadToken("oidc: claim %q does not have the required value", k)
		}
	}
	u := &auth.User{Name: c.UsernamePrefix + name}
	if c.GroupsClaim == "" {
		return u, nil
	}
	groups, err := groupsOf(claims[c.GroupsClaim])
	if err != nil {
		return nil, auth.BadToken("oidc: claim %q: %s", c.GroupsClaim, err)
	}
	for _, g := range groups {
		u.Groups = append(u.Groups, c.GroupsPrefix+g)
	}
	return u, nil
}

func stringClaim(claims map[string]json.RawMessage, name string) (string, error) {
	raw, ok := claims[name]
	if !ok {
		return "", auth.BadToken("oidc: claim %q is missing", name)
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", auth.BadToken("oidc: claim %q must be a string", name)
	}
	return *s, nil
}

// groupsOf decodes a claim that is a string, a list of strings, null or missing.
func groupsOf(raw json.RawMessage) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var group string
	if json.Unmarshal(raw, &group) == nil {
		return []string{group}, nil
	}
	var groups []*string
	if json.Unmarshal(raw, &groups) != nil || slices.Contains(groups, nil) {
		return nil, errors.New("must be a string or a list of strings")
	}
	if len(groups) > maxGroups {
		return nil, fmt.Errorf("more than %d groups", maxGroups)
	}
	out := make([]string, len(groups))
	for i, s := range groups {
		out[i] = *s
	}
	return out, nil
}
