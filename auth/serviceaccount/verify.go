package serviceaccount

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/internal/bearer"
	"orch.io/controlplane/internal/wellknown"
)

// skew is the tolerated difference between the clocks of servers. For the same
// time, tokens of a terminating object are accepted.
const skew = time.Minute

// Authenticate implements auth.Authenticator.
func (t *Tokens) Authenticate(r *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(t, r)
}

// AuthenticateToken implements auth.TokenAuthenticator. If the token's issuer is not
// an issuer of t, it returns no user and no error, so that another authenticator can
// decide. Empty audiences mean the audiences of this API.
func (t *Tokens) AuthenticateToken(ctx context.Context, token string, audiences []string) (*auth.User, []string, error) {
	c, err := t.verify(token)
	if c == nil || err != nil {
		return nil, nil, err
	}
	if len(audiences) == 0 {
		audiences = t.config.Audiences
	}
	target := []string(c.Audience)
	if c.legacy || len(target) == 0 {
		target = t.config.Audiences
	}
	both := bearer.Audiences(audiences, target)
	if len(both) == 0 {
		return nil, nil, auth.BadToken("token audiences %q is invalid for the target audiences %q", target, audiences)
	}
	if err := t.checkTimes(c); err != nil {
		return nil, nil, err
	}
	if !t.config.NoLookup {
		if err := t.lookup(ctx, c, token); err != nil {
			return nil, nil, err
		}
	}
	if u := t.uses.Load(); u != nil && c.legacy {
		u.legacy.Inc()
	} else if u != nil {
		u.valid.Inc()
	}
	return t.user(c), both, nil
}

// hasOwnIssuer reports whether the issuer in an unverified token is an issuer of t.
func (t *Tokens) hasOwnIssuer(token string) bool {
	issuer := bearer.Issuer(token)
	return slices.Contains(t.config.Issuers, issuer) || issuer == t.config.Names.Wire(wellknown.LegacyTokenIssuer)
}

// verify checks the signature of a token and returns its claims, or nil if the
// token is not a JWT of the issuers. It does not check audiences, times or objects. The
// claims are shared through the cache and must not be modified.
func (t *Tokens) verify(token string) (*claims, error) {
	if strings.Count(token, ".") != 2 {
		return nil, nil
	}
	digest := sha256.Sum256([]byte(token))
	if c, ok := t.verified.Get(digest); ok {
		return c, nil
	}
	if !t.hasOwnIssuer(token) {
		return nil, nil
	}
	parsed, err := jwt.ParseSigned(token, t.algs)
	if err != nil || len(parsed.Headers) != 1 {
		return nil, auth.BadToken("the token's header is not acceptable")
	}
	head := parsed.Headers[0]
	candidates := t.config.Keys
	if head.KeyID != "" {
		k, ok := t.byID[head.KeyID]
		if !ok {
			return nil, auth.BadToken("unknown key id in the token")
		}
		candidates = []Key{k}
	}
	for _, k := range candidates {
		if head.Algorithm != string(k.alg) {
			continue
		}
		var raw map[string]json.RawMessage
		c := &claims{}
		if parsed.Claims(k.public, &c.Claims, &raw) != nil {
			continue
		}
		if err := t.fill(c, raw); err != nil {
			return nil, err
		}
		t.verified.Put(digest, c, time.Hour)
		return c, nil
	}
	return nil, auth.BadToken("the token's signature is not valid")
}

// fill decodes the private claims and checks that they match the subject.
func (t *Tokens) fill(c *claims, raw map[string]json.RawMessage) error {
	p := t.config.Names
	c.legacy = c.Issuer == p.Wire(wellknown.LegacyTokenIssuer) && !slices.Contains(t.config.Issuers, c.Issuer)
	var err error
	if c.legacy {
		get := func(claim string) (s string) {
			if v, ok := raw[p.Wire(claim)]; ok {
				err = errors.Join(err, json.Unmarshal(v, &s))
			}
			return s
		}
		c.Namespace = get(wellknown.LegacyTokenNamespace)
		c.Account = ref{get(wellknown.LegacyTokenName), get(wellknown.LegacyTokenUID)}
		c.Secret = &ref{Name: get(wellknown.LegacyTokenSecret)}
	} else if v, ok := raw[p.Wire(wellknown.TokenClaim)]; ok {
		err = json.Unmarshal(v, &c.private)
	}
	if err != nil || c.Namespace == "" || c.Account.Name == "" || c.Account.UID == "" ||
		c.Subject != auth.ServiceAccountUser(c.Namespace, c.Account.Name) {
		return auth.BadToken("the token's claims do not name a service account")
	}
	return nil
}

// checkTimes checks the expiry, and the start with a tolerance of skew.
func (t *Tokens) checkTimes(c *claims) error {
	now := t.config.Now()
	switch {
	case c.Expiry == nil && !c.legacy:
		return auth.BadToken("the token has no expiry")
	case c.Expiry != nil && !now.Before(c.Expiry.Time()):
		return auth.BadToken("the token has expired")
	case c.NotBefore != nil && now.Add(skew).Before(c.NotBefore.Time()):
		return auth.BadToken("the token is not valid yet")
	}
	return nil
}

// lookup checks that the account and the bound object exist and have the uids in
// the claims. For a legacy token it checks that the Secret still has the token.
func (t *Tokens) lookup(ctx context.Context, c *claims, token string) error {
	if _, err := t.alive(ctx, "serviceaccounts", c.Namespace, &c.Account); err != nil {
		return err
	}
	secret, err := t.alive(ctx, "secrets", c.Namespace, c.Secret)
	if err != nil {
		return err
	}
	if c.legacy {
		stored, err := base64.StdEncoding.DecodeString(secret.String("data", "token"))
		if err != nil || subtle.ConstantTimeCompare(stored, []byte(token)) != 1 {
			return auth.BadToken("the token is no longer in its secret")
		}
	}
	if _, err := t.alive(ctx, "pods", c.Namespace, c.Pod); err != nil {
		return err
	}
	if c.Pod != nil { // the token is bound to the pod; the node is only information
		return nil
	}
	_, err = t.alive(ctx, "nodes", "", c.Node)
	return err
}

// alive returns the object that r refers to. It returns an error if the object does
// not exist, has another uid, or has been terminating for longer than skew. If r is
// nil, alive returns nil.
func (t *Tokens) alive(ctx context.Context, resource, namespace string, r *ref) (*meta.Object, error) {
	if r == nil {
		return nil, nil
	}
	o, err := t.config.Client.Get(ctx, meta.GroupResource{Resource: resource}, meta.Key{Namespace: namespace, Name: r.Name})
	switch {
	case meta.IsNotFound(err):
		return nil, auth.BadToken("%s %q not found", resource, r.Name)
	case err != nil:
		return nil, err
	case r.UID != "" && o.UID() != r.UID:
		return nil, auth.BadToken("%s %q has another uid than in the token", resource, r.Name)
	case o.Terminating() && t.config.Now().Add(-skew).After(o.DeletionTimestamp()):
		return nil, auth.BadToken("%s %q has been deleted", resource, r.Name)
	}
	return o, nil
}

// user returns the user of a token. Users of legacy tokens have no extra fields.
func (t *Tokens) user(c *claims) *auth.User {
	u := &auth.User{
		Name: auth.ServiceAccountUser(c.Namespace, c.Account.Name), UID: c.Account.UID,
		Groups: auth.ServiceAccountGroups(c.Namespace),
	}
	if c.legacy {
		return u
	}
	u.Extra = map[string][]string{}
	put := func(name, value string) {
		if value != "" {
			u.Extra[t.config.Names.Wire(name)] = []string{value}
		}
	}
	if c.ID != "" {
		put(wellknown.ExtraCredentialID, "JTI="+c.ID)
	}
	if c.Pod != nil {
		put(wellknown.ExtraPodName, c.Pod.Name)
		put(wellknown.ExtraPodUID, c.Pod.UID)
	}
	if c.Node != nil {
		put(wellknown.ExtraNodeName, c.Node.Name)
		put(wellknown.ExtraNodeUID, c.Node.UID)
	}
	return u
}
