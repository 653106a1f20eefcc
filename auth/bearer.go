package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// MaxToken is the length in bytes above which a bearer token is refused
// unread.
const MaxToken = 64 << 10

// ErrBadToken says that a request has a bearer token that no method knows.
var ErrBadToken = errors.New("auth: the bearer token is not valid")

// TokenError says what is wrong with a token, in words that may be shown to
// whoever has the right to ask for token reviews; never to the caller.
type TokenError struct{ Reason string }

// Error returns the reason.
func (e *TokenError) Error() string { return e.Reason }

// Is makes a TokenError an ErrBadToken.
func (e *TokenError) Is(target error) bool { return target == ErrBadToken }

// BadToken returns a TokenError.
func BadToken(format string, args ...any) error { return &TokenError{fmt.Sprintf(format, args...)} }

// BearerToken returns the token of the Authorization header and whether there
// is one: the scheme Bearer in any case, one space, the token up to the next
// space. Anything else, such as two spaces or another scheme, is no token and
// leaves the caller to the other methods.
func BearerToken(r *http.Request) (string, bool) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	token, _, _ := strings.Cut(rest, " ")
	return token, token != ""
}

// TokenAuthenticator finds the user of a bearer token. It returns nil, nil if
// the token is not of its kind; an error if it is of its kind and wrong.
//
// audiences are those of which the token must be for at least one; none asks
// for the server's own. The result holds the ones of them that the token is
// for; a method whose tokens know nothing of audiences returns nil.
type TokenAuthenticator interface {
	AuthenticateToken(ctx context.Context, token string, audiences []string) (*User, []string, error)
}

// AuthenticateBearer asks t about the bearer token of r, for the server's own
// audiences. Without a token it returns nil, nil. Methods use it to be an
// Authenticator.
func AuthenticateBearer(t TokenAuthenticator, r *http.Request) (*User, error) {
	token, ok := BearerToken(r)
	if !ok {
		return nil, nil
	}
	if len(token) > MaxToken {
		return nil, fmt.Errorf("auth: a bearer token of %d bytes: %w", len(token), ErrBadToken)
	}
	u, _, err := t.AuthenticateToken(r.Context(), token, nil)
	return u, err
}
