// Package bootstraptoken authenticates joining machines by the tokens that
// Secrets of the bootstrap type hold.
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

// Names of the identities, and of the keys in a Secret's data.
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

// maxGroup is the length of the longest group that a token may have.
const maxGroup = len("system:bootstrappers:") + 256

// Authenticator looks tokens up in Secrets of the system namespace.
type Authenticator struct {
	client client.Client
	names  names.Profile
	now    func() time.Time
}

// New returns a method that reads Secrets through client. now is the clock; nil
// is time.Now.
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

// AuthenticateToken implements auth.TokenAuthenticator. What has not the form of
// a bootstrap token is none of its business.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, _ []string) (*auth.User, []string, error) {
	parts := tokenForm.FindStringSubmatch(token)
	if parts == nil {
		return nil, nil, nil
	}
	id, secret := parts[1], parts[2]
	key := meta.Key{Namespace: a.names.SystemNamespace("system"), Name: namePrefix + id}
	o, err := a.client.Get(ctx, meta.GroupResource{Resource: "secrets"}, key)
	if meta.IsNotFound(err) {
		return nil, nil, auth.BadToken("no bootstrap token of this id")
	}
	if err != nil {
		return nil, nil, err
	}
	t, ok := read(o, a.names)
	switch {
	case !ok || t.ID != id || o.Terminating():
		return nil, nil, auth.BadToken("the secret of the bootstrap token is not usable")
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

// token is what a Secret of the bootstrap type says.
type token struct {
	ID, Secret              string
	Expiration              string // RFC 3339, or empty for no end
	Authentication, Signing bool
	Groups                  []string // beside system:bootstrappers, sorted
}

// read returns the token in a Secret; false if it is of another type or has no
// id or secret.
func read(secret *meta.Object, p names.Profile) (token, bool) {
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

// expired reports whether the token's time is over; an expiration that cannot
// be read is over.
func (t token) expired(now time.Time) bool {
	if t.Expiration == "" {
		return false
	}
	end, err := time.Parse(time.RFC3339, t.Expiration)
	return err != nil || !now.Before(end)
}

// String returns the whole token.
func (t token) String() string { return t.ID + "." + t.Secret }
