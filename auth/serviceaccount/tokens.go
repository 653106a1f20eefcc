// Package serviceaccount issues and verifies the tokens of service accounts.
//
// There are two kinds: tokens that a request to the sub-resource token issues
// for an audience and a time, bound to a Pod, Secret or Node if asked; and
// tokens without an end that are kept in a Secret. Both end with the account,
// and with what they are bound to, because every use looks them up.
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

// defaultExpiration is the lifetime of a token whose request asks for none, in
// seconds.
const defaultExpiration = 3600

// Config says who issues tokens and how they are verified.
type Config struct {
	// Issuers are the names of the issuer: tokens carry the first, all are
	// accepted. None: the in-cluster address of the API.
	Issuers []string
	// Audiences are the names of this API as an audience; none: the issuers.
	Audiences []string
	// Keys verify tokens; the first private one signs. Without a private one
	// nothing is issued.
	Keys []Key
	// MaxExpiration shortens what callers ask for; zero does not.
	MaxExpiration time.Duration
	// Client reads accounts and what tokens are bound to.
	Client client.Client
	// NoLookup accepts tokens of accounts, secrets and pods that are gone, until
	// they expire. It needs no Client but for issuing.
	NoLookup bool
	// JWKSURL is the address of the key set in the discovery document; empty:
	// the issuer's.
	JWKSURL string

	Names names.Profile
	Now   func() time.Time // nil: time.Now
}

// Tokens issues and verifies tokens. It is an auth.Authenticator.
type Tokens struct {
	config   Config
	byID     map[string]Key
	algs     []jose.SignatureAlgorithm
	signer   jose.Signer                     // nil: nothing is issued
	verified *cache.Cache[[32]byte, *claims] // whose signature was checked
	uses     atomic.Pointer[uses]
}

// uses counts the tokens that callers showed and that were good.
type uses struct{ valid, legacy prometheus.Counter }

// Measure registers metrics of the tokens that callers show. What two servers share counts
// for the last one.
func (t *Tokens) Measure(to prometheus.Registerer) error {
	set := metrics.For(to)
	counter := func(name, help string) prometheus.Counter {
		return set.Counters(metrics.Family{Name: "serviceaccount_" + name, Help: help}).WithLabelValues()
	}
	counter("stale_tokens_total", "Tokens of service accounts that were taken after their time: none ever is.")
	t.uses.Store(&uses{
		valid:  counter("valid_tokens_total", "Tokens of service accounts that were taken and that have an end."),
		legacy: counter("legacy_tokens_total", "Tokens of service accounts that were taken and that are kept in secrets."),
	})
	return set.Err()
}

// New checks c; every fault is reported at once.
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
		errs = append(errs, errors.New("serviceaccount: no Client to look accounts up"))
	}
	if slices.Contains(c.Issuers, "") || slices.Contains(c.Audiences, "") {
		errs = append(errs, errors.New("serviceaccount: an empty issuer or audience"))
	}
	if len(c.Keys) == 0 {
		errs = append(errs, errors.New("serviceaccount: no key"))
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

// Audiences returns the names of this API as an audience.
func (t *Tokens) Audiences() []string { return t.config.Audiences }

// ref names an object that a token speaks of.
type ref struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// private are the claims of an issued token beside the registered ones.
type private struct {
	Namespace string `json:"namespace,omitempty"`
	Account   ref    `json:"serviceaccount,omitzero"`
	Pod       *ref   `json:"pod,omitempty"`
	Secret    *ref   `json:"secret,omitempty"`
	Node      *ref   `json:"node,omitempty"`
}

// claims are what a token says, of either kind.
type claims struct {
	jwt.Claims
	private
	legacy bool
}

// issue signs a token that is bound to what c says.
func (t *Tokens) issue(c private, audiences []string, begin, end time.Time) (string, error) {
	if t.signer == nil {
		return "", errors.New("serviceaccount: no private key")
	}
	public := jwt.Claims{
		Issuer: t.config.Issuers[0], Subject: auth.ServiceAccountUser(c.Namespace, c.Account.Name),
		Expiry: jwt.NewNumericDate(end), NotBefore: jwt.NewNumericDate(begin), IssuedAt: jwt.NewNumericDate(begin),
		ID: uuid.NewString(),
	}
	// One audience is a list too: readers with a simple parser expect one.
	claim := map[string]any{t.config.Names.Wire(wellknown.TokenClaim): c, "aud": audiences}
	return jwt.Signed(t.signer).Claims(public).Claims(claim).Serialize()
}

// secretToken returns the token without an end that a Secret of the type of
// service account tokens holds.
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
