// Package serviceaccount issues and verifies the tokens of service accounts.
//
// There are two kinds of tokens. The subresource token of ServiceAccount issues
// tokens with audiences and an expiry, which may be bound to a Pod, Secret or Node.
// Legacy tokens do not expire and are stored in a Secret. Each use looks up the
// account and the bound object, so deleting either revokes the token.
package serviceaccount

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/cache"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/wellknown"
)

// defaultExpiration is the default of spec.expirationSeconds.
const defaultExpiration = 3600

// Config configures Tokens.
type Config struct {
	// Issuers are the accepted issuers. New tokens have the first. Default: the
	// in-cluster address of the API.
	Issuers []string
	// Audiences are the audiences of this API. Default: Issuers.
	Audiences []string
	// Keys verify tokens; at least one is required. The first private key signs new
	// tokens; if no key is private, none can be issued.
	Keys []Key
	// MaxExpiration is the maximum lifetime of new tokens; a longer request is
	// reduced with a warning. Zero: no maximum.
	MaxExpiration time.Duration
	// Client reads accounts and bound objects. Required unless NoLookup is set.
	Client client.Client
	// NoLookup accepts tokens until they expire, even if the account or the bound
	// object was deleted. Issuing still requires Client.
	NoLookup bool
	// JWKSURL is the address of the key set in the discovery document. Default:
	// KeySetPath below the first issuer.
	JWKSURL string

	Names names.Profile
	Now   func() time.Time // nil: time.Now
}

// Tokens issues and verifies tokens. It implements auth.Authenticator and
// auth.TokenAuthenticator. Its methods are safe for concurrent use.
type Tokens struct {
	config   Config
	byID     map[string]Key
	algs     []jose.SignatureAlgorithm       // of the keys, without duplicates
	signer   jose.Signer                     // nil if no key is private
	verified *cache.Cache[[32]byte, *claims] // claims of tokens with a valid signature, by SHA-256 of the token
	uses     atomic.Pointer[uses]            // nil before Measure
}

// uses counts successful authentications.
type uses struct{ valid, legacy prometheus.Counter }

// Measure registers metrics of the authenticated tokens. If it is called for a second
// registry, only that registry counts later tokens.
func (t *Tokens) Measure(to prometheus.Registerer) error {
	set := metrics.For(to)
	counter := func(name, help string) prometheus.Counter {
		return set.Counters(metrics.Family{Name: "serviceaccount_" + name, Help: help}).WithLabelValues()
	}
	counter("stale_tokens_total", "Service account tokens accepted after their expiry. Always 0: expired tokens are rejected.")
	t.uses.Store(&uses{
		valid:  counter("valid_tokens_total", "Accepted service account tokens that expire."),
		legacy: counter("legacy_tokens_total", "Accepted service account tokens that are stored in Secrets."),
	})
	return set.Err()
}

// New returns Tokens for c. The returned error joins all violations of c.
func New(c Config) (*Tokens, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if len(c.Issuers) == 0 {
		c.Issuers = []string{c.Names.Wire(wellknown.TokenIssuer)}
	}
	if len(c.Audiences) == 0 {
		c.Audiences = c.Issuers
	}
	t := &Tokens{config: c, byID: map[string]Key{}, verified: cache.New[[32]byte, *claims](4096, c.Now)}
	var errs []error
	if c.Client == nil && !c.NoLookup {
		errs = append(errs, errors.New("serviceaccount: Client is required unless NoLookup is set"))
	}
	if slices.Contains(c.Issuers, "") || slices.Contains(c.Audiences, "") {
		errs = append(errs, errors.New("serviceaccount: empty issuer or audience"))
	}
	if len(c.Keys) == 0 {
		errs = append(errs, errors.New("serviceaccount: Keys is empty"))
	}
	for _, k := range c.Keys {
		t.byID[k.ID] = k
		if !slices.Contains(t.algs, k.alg) {
			t.algs = append(t.algs, k.alg)
		}
		if k.Private() && t.signer == nil {
			s, err := k.signer()
			if err != nil {
				errs = append(errs, fmt.Errorf("serviceaccount: key %s: %w", k.ID, err))
			}
			t.signer = s
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return t, nil
}

// Audiences returns the audiences of this API. The caller must not modify them.
func (t *Tokens) Audiences() []string { return t.config.Audiences }

// ref is a reference to an object in a token.
type ref struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// private are the claims of a token in addition to the registered JWT claims.
type private struct {
	Namespace string `json:"namespace,omitempty"`
	Account   ref    `json:"serviceaccount,omitzero"`
	Pod       *ref   `json:"pod,omitempty"`
	Secret    *ref   `json:"secret,omitempty"`
	Node      *ref   `json:"node,omitempty"`
}

// claims are the claims of a token of either kind.
type claims struct {
	jwt.Claims
	private
	legacy bool
}

// issue returns a signed token with the claims c.
func (t *Tokens) issue(c private, audiences []string, begin, end time.Time) (string, error) {
	if t.signer == nil {
		return "", errors.New("serviceaccount: no private key")
	}
	public := jwt.Claims{
		Issuer: t.config.Issuers[0], Subject: auth.ServiceAccountUser(c.Namespace, c.Account.Name),
		Expiry: jwt.NewNumericDate(end), NotBefore: jwt.NewNumericDate(begin), IssuedAt: jwt.NewNumericDate(begin),
		ID: uuid.NewString(),
	}
	// A single audience is also encoded as a list: some readers accept only lists.
	claim := map[string]any{t.config.Names.Wire(wellknown.TokenClaim): c, "aud": audiences}
	return jwt.Signed(t.signer).Claims(public).Claims(claim).Serialize()
}

// secretToken returns a legacy token, without expiry, for the data of a token
// secret.
func (t *Tokens) secretToken(namespace, account, accountUID, secret string) (string, error) {
	if t.signer == nil {
		return "", errors.New("serviceaccount: no private key")
	}
	p := t.config.Names
	return jwt.Signed(t.signer).Claims(map[string]any{
		"iss":                                  p.Wire(wellknown.LegacyTokenIssuer),
		"sub":                                  auth.ServiceAccountUser(namespace, account),
		p.Wire(wellknown.LegacyTokenNamespace): namespace,
		p.Wire(wellknown.LegacyTokenName):      account,
		p.Wire(wellknown.LegacyTokenUID):       accountUID,
		p.Wire(wellknown.LegacyTokenSecret):    secret,
	}).Serialize()
}
