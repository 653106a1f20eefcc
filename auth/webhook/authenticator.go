// Package webhook authenticates and authorizes requests by calls to a remote server: an
// Authenticator sends TokenReviews, and an Authorizer sends SubjectAccessReviews.
package webhook

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/internal/bearer"
	"orch.io/controlplane/client/kubeconfig"
	"orch.io/controlplane/internal/cache"
	"orch.io/controlplane/internal/webhookclient"
	"orch.io/controlplane/internal/wellknown"
)

// The bounds of the cache and of a response.
const (
	maxCachedTokens = 4096
	maxStrings      = 4096 // groups and extra values of a user
)

// AuthenticatorConfig configures an Authenticator.
type AuthenticatorConfig struct {
	// Remote is the server that answers reviews. Required.
	Remote *kubeconfig.Remote
	// Version of TokenReview: v1 or v1beta1; empty is v1.
	Version string
	// Keep is how long an answer is cached: zero is two minutes, a negative
	// value disables caching. Rejections are cached for a tenth of Keep, at most ten
	// seconds. Failed calls are not cached.
	Keep time.Duration
	// Timeout limits the duration of a call; zero is ten seconds.
	Timeout time.Duration
	// Audiences are the audiences of this server's API.
	Audiences []string

	Names names.Profile
	Now   func() time.Time // nil: time.Now
}

// Authenticator implements auth.TokenAuthenticator by a remote server. It is safe for concurrent use.
type Authenticator struct {
	config AuthenticatorConfig
	remote *webhookclient.Reviewer
	cached *cache.Cache[[32]byte, answer]
}

// answer is a cached result of the remote server.
type answer struct {
	user      *auth.User // nil: not authenticated
	audiences []string
	err       error
}

// NewAuthenticator returns an Authenticator, or an error if c is invalid. Close the Authenticator after use.
func NewAuthenticator(c AuthenticatorConfig) (*Authenticator, error) {
	const kind = "TokenReview"
	var err error
	if c.Version, err = webhookclient.Version(c.Version, kind); err != nil {
		return nil, fmt.Errorf("token webhook: %w", err)
	}
	if c.Keep == 0 {
		c.Keep = 2 * time.Minute
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	r, err := webhookclient.NewReviewer(c.Remote, c.Names.Group(wellknown.GroupAuthentication), c.Version, kind, c.Timeout)
	if err != nil {
		return nil, fmt.Errorf("token webhook: %w", err)
	}
	return &Authenticator{config: c, remote: r, cached: cache.New[[32]byte, answer](maxCachedTokens, c.Now)}, nil
}

// Close closes the connections.
func (a *Authenticator) Close() { a.remote.Close() }

// Authenticate implements auth.Authenticator.
func (a *Authenticator) Authenticate(r *http.Request) (*auth.User, error) {
	return auth.AuthenticateBearer(a, r)
}

// AuthenticateToken implements auth.TokenAuthenticator. Empty audiences mean the
// audiences of this API. The caller must not modify the user, which is cached.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*auth.User, []string, error) {
	if len(audiences) == 0 {
		audiences = a.config.Audiences
	}
	key := sha256.Sum256([]byte(fmt.Sprintf("%q %s", audiences, token)))
	if got, ok := a.cached.Get(key); ok {
		return got.user, got.audiences, got.err
	}
	got, keep := a.ask(ctx, token, audiences)
	if keep {
		a.cached.Put(key, got, a.keepFor(got))
	}
	return got.user, got.audiences, got.err
}

// keepFor returns how long an answer may be cached.
func (a *Authenticator) keepFor(got answer) time.Duration {
	if got.user != nil {
		return a.config.Keep
	}
	return min(a.config.Keep/10, 10*time.Second)
}

// tokenReviewSpec and tokenReviewStatus are the fields of a TokenReview.
type tokenReviewSpec struct {
	Token     string   `json:"token,omitempty"`
	Audiences []string `json:"audiences,omitempty"`
}

type tokenReviewStatus struct {
	Authenticated bool     `json:"authenticated,omitempty"`
	User          userInfo `json:"user"`
	Audiences     []string `json:"audiences,omitempty"`
	Error         string   `json:"error,omitempty"`
}

type userInfo struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// ask sends a TokenReview. keep reports whether the answer can be cached; it is false if the call failed.
func (a *Authenticator) ask(ctx context.Context, token string, audiences []string) (got answer, keep bool) {
	body, err := a.remote.Body(tokenReviewSpec{token, audiences}, tokenReviewStatus{})
	if err != nil {
		return answer{err: fmt.Errorf("token webhook: %w", err)}, false
	}
	var s tokenReviewStatus
	if err := a.remote.Ask(ctx, body, &s); err != nil {
		return answer{err: fmt.Errorf("token webhook: %w", err)}, false
	}
	u := s.User
	switch {
	case !s.Authenticated:
		return answer{err: refusal(s.Error)}, true
	case u.Username == "":
		return answer{err: errors.New("token webhook: invalid response: status.user.username is empty")}, false
	case tooMany(u):
		return answer{err: fmt.Errorf("token webhook: invalid response: more than %d groups and extra values", maxStrings)}, false
	}
	good, err := goodFor(s.Audiences, audiences, a.config.Audiences)
	if err != nil {
		return answer{err: err}, true
	}
	return answer{user: &auth.User{Name: u.Username, UID: u.UID, Groups: u.Groups, Extra: u.Extra}, audiences: good}, true
}

// refusal returns the error for a rejected token, or nil if the remote server gives no
// reason, because another Authenticator can then accept the token.
func refusal(why string) error {
	if why == "" {
		return nil
	}
	return auth.BadToken("%s", webhookclient.ClipText(why))
}

func tooMany(u userInfo) bool {
	n := len(u.Groups)
	for _, v := range u.Extra {
		n += 1 + len(v)
	}
	return n > maxStrings
}

// goodFor returns the members of asked that the token is valid for. If the remote server returns no
// audiences, it does not support them, and its tokens are valid for this API's audiences.
func goodFor(answered, asked, own []string) ([]string, error) {
	if len(answered) == 0 {
		answered = own
	}
	if len(asked) == 0 {
		return nil, nil
	}
	good := bearer.Audiences(asked, answered)
	if good == nil {
		return nil, auth.BadToken("token audiences %q is invalid for the target audiences %q", answered, asked)
	}
	return good, nil
}
