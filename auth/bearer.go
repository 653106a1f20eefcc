package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// MaxToken is the maximum length of a bearer token in bytes. Longer tokens are
// rejected without parsing.
const MaxToken = 64 << 10

// ErrBadToken means that no Authenticator accepts the request's bearer token.
var ErrBadToken = errors.New("auth: the bearer token is not valid")

// TokenError is the reason why a token is invalid. A TokenReview may show the
// reason; the response to the token's owner must not.
type TokenError struct{ Reason string }

// Error returns the reason.
func (e *TokenError) Error() string { return e.Reason }

// Is reports whether target is ErrBadToken.
func (e *TokenError) Is(target error) bool { return target == ErrBadToken }

// BadToken returns a TokenError with a formatted reason.
func BadToken(format string, args ...any) error { return &TokenError{fmt.Sprintf(format, args...)} }

// BearerToken returns the bearer token of the Authorization header and reports
// whether there is one. The header must consist of the scheme Bearer in any case, one space,
// and the token, which ends at the next space. A header in any other form, for example
// with two spaces, has no token, so that other Authenticators decide.
func BearerToken(r *http.Request) (string, bool) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	token, _, _ := strings.Cut(rest, " ")
	return token, token != ""
}

// TokenAuthenticator finds the user of a bearer token. AuthenticateToken returns a nil
// User and a nil error if it does not recognize the token, and an error if it recognizes
// the token as invalid.
//
// The token must be valid for at least one audience in the list, or, if the list is empty,
// for an audience of the server. AuthenticateToken returns the audiences in the list for
// which the token is valid, or nil if its tokens have no audiences.
type TokenAuthenticator interface {
	AuthenticateToken(ctx context.Context, token string, audiences []string) (*User, []string, error)
}

// AuthenticateBearer returns the user of r's bearer token according to t, for the
// server's audiences. It returns nil, nil if r has no bearer token. A TokenAuthenticator
// implements Authenticator with it.
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
