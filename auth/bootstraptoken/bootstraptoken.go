// Package bootstraptoken authenticates machines that join a cluster by bootstrap
// tokens, which are stored in Secrets of the bootstrap token type.
package bootstraptoken

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
)

// Names of users, groups and Secrets, and the keys in a Secret's data.
const (
	userPrefix = "system:bootstrap:"
	group      = "system:bootstrappers"
	namePrefix = "bootstrap-token-"
	keyID      = "token-id"
	keySecret  = "token-secret"
	keyExpiry  = "expiration"
	keyGroups  = "auth-extra-groups"
	keyAuth    = "usage-bootstrap-authentication"
	keySigning = "usage-bootstrap-signing"
)

var (
	tokenForm = regexp.MustCompile(`\A([a-z0-9]{6})\.([a-z0-9]{16})\z`)
	groupForm = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]*[a-z0-9]\z`)
)

// maxGroup is the maximum length of a token's group in bytes.
const maxGroup = len("system:bootstrappers:") + 256

// Authenticator authenticates by the token Secrets in the system namespace. It reads
// the Secret for each request, so deleting it revokes the token. It is safe for
// concurrent use.
type Authenticator struct {
	client client.Client
	names  names.Profile
	now    func() time.Time
}

// New returns an Authenticator that reads Secrets through client. now is the clock;
// nil is time.Now.
func New(client client.Client, p names.Profile, now func() time.Time) *Authenticator {
	if now == nil {
		now = time.Now
	}
	return &Authenticator{client, p, now}
}

// Authenticate implements auth.Authenticator.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(a, r)
}

// AuthenticateToken implements auth.TokenAuthenticator. For a token that does not
// have the format of bootstrap tokens it returns no user and no error.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, _ []string) (*auth.User, []string, error) {
	parts := tokenForm.FindStringSubmatch(token)
	if parts == nil {
		return nil, nil, nil
	}
	id, secret := parts[1], parts[2]
	key := meta.Key{Namespace: a.names.SystemNamespace("system"), Name: namePrefix + id}
	o, err := a.client.Get(ctx, meta.GroupResource{Resource: "secrets"}, key)
	if meta.IsNotFound(err) {
		return nil, nil, auth.BadToken("bootstrap token id not found")
	}
	if err != nil {
		return nil, nil, err
	}
	t, ok := parseSecret(o, a.names)
	switch {
	case !ok || t.ID != id || o.Terminating():
		return nil, nil, auth.BadToken("the Secret of the bootstrap token is invalid or being deleted")
	case subtle.ConstantTimeCompare([]byte(t.Secret), []byte(secret)) != 1:
		return nil, nil, auth.BadToken("the bootstrap token is not valid")
	case t.expired(a.now()):
		return nil, nil, auth.BadToken("the bootstrap token has expired")
	case !t.Authentication:
		return nil, nil, auth.BadToken("the bootstrap token is not for authentication")
	}
	groups := []string{group}
	for _, g := range t.Groups {
		if len(g) > maxGroup || !groupForm.MatchString(g) {
			return nil, nil, auth.BadToken("the bootstrap token has the group %q, which must begin with %s:", g, group)
		}
		groups = append(groups, g)
	}
	return &auth.User{Name: userPrefix + id, Groups: groups}, nil, nil
}

// token is a bootstrap token in a Secret.
type token struct {
	ID, Secret              string
	Expiration              string   // RFC 3339; empty: the token does not expire
	Authentication, Signing bool     // permitted usages
	Groups                  []string // in addition to system:bootstrappers; sorted
}

// parseSecret returns the token in a Secret. It returns false if the Secret has another type,
// or no id or secret.
func parseSecret(secret *meta.Object, p names.Profile) (token, bool) {
	get := func(key string) string {
		v, err := base64.StdEncoding.DecodeString(secret.String("data", key))
		if err != nil {
			return ""
		}
		return string(v)
	}
	t := token{
		ID: get(keyID), Secret: get(keySecret), Expiration: get(keyExpiry),
		Authentication: get(keyAuth) == "true", Signing: get(keySigning) == "true",
	}
	if groups := get(keyGroups); groups != "" {
		t.Groups = strings.Split(groups, ",")
	}
	slices.Sort(t.Groups)
	t.Groups = slices.Compact(t.Groups)
	return t, secret.String("type") == p.Wire(wellknown.SecretBootstrap) && t.ID != "" && t.Secret != ""
}

// expired reports whether the token has expired. A token with an invalid expiration is
// expired.
func (t token) expired(now time.Time) bool {
	if t.Expiration == "" {
		return false
	}
	end, err := time.Parse(time.RFC3339, t.Expiration)
	return err != nil || !now.Before(end)
}

// String returns the token in the format of bearer tokens, with its secret.
func (t token) String() string { return t.ID + "." + t.Secret }
