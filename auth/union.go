package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// UnionAuthenticator combines several Authenticators; Union returns it.
type UnionAuthenticator struct {
	members   []Authenticator
	tokens    []TokenAuthenticator
	anonymous bool
}

// Union returns an Authenticator that calls methods in order and returns the first user,
// even if an earlier method returned an error. If no method finds a user, the result is
//   - an error if a method returned an error or the request has a bearer token, so
//     that a request with invalid credentials is never anonymous;
//   - the anonymous user if methods contains AnonymousAccess;
//   - nil, nil otherwise.
//
// Every user except the anonymous user gets the group system:authenticated. A
// UnionAuthenticator can be a member of another Union; nil members are ignored.
func Union(methods ...Authenticator) *UnionAuthenticator {
	m := &UnionAuthenticator{}
	for _, a := range methods {
		if _, ok := a.(anonymousAccess); ok {
			m.anonymous = true
			continue
		}
		if a == nil {
			continue
		}
		m.members = append(m.members, a)
		if t, ok := a.(TokenAuthenticator); ok {
			m.tokens = append(m.tokens, t)
		}
	}
	return m
}

// Authenticate implements Authenticator.
func (m *UnionAuthenticator) Authenticate(r *http.Request) (*User, error) {
	token, hasToken := BearerToken(r)
	if len(token) > MaxToken {
		return nil, fmt.Errorf("auth: a bearer token of %d bytes: %w", len(token), ErrBadToken)
	}
	var errs []error
	for _, a := range m.members {
		u, err := a.Authenticate(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if u != nil {
			return withAuthenticated(u), nil
		}
	}
	switch {
	case len(errs) > 0:
		return nil, errors.Join(errs...)
	case hasToken:
		return nil, ErrBadToken
	case m.anonymous:
		return NewAnonymous(), nil
	}
	return nil, nil
}

// Strip removes the headers that members trust as credentials, for a request that the server
// forwards. Members such as clientcert.RequestHeader implement the method Strip.
func (m *UnionAuthenticator) Strip(h http.Header) {
	for _, a := range m.members {
		if s, ok := a.(interface{ Strip(http.Header) }); ok {
			s.Strip(h)
		}
	}
}

// Measure registers the metrics of the members that have a method Measure.
func (m *UnionAuthenticator) Measure(to prometheus.Registerer) error {
	var errs []error
	for _, a := range m.members {
		if c, ok := a.(interface {
			Measure(prometheus.Registerer) error
		}); ok {
			errs = append(errs, c.Measure(to))
		}
	}
	return errors.Join(errs...)
}

// AuthenticateToken implements TokenAuthenticator with the members that implement it, as for a
// TokenReview. It returns nil, nil, nil if no member recognizes the token.
func (m *UnionAuthenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*User, []string, error) {
	if len(token) > MaxToken {
		return nil, nil, fmt.Errorf("auth: a bearer token of %d bytes: %w", len(token), ErrBadToken)
	}
	var errs []error
	for _, t := range m.tokens {
		u, auds, err := t.AuthenticateToken(ctx, token, audiences)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if u != nil {
			return withAuthenticated(u), auds, nil
		}
	}
	return nil, nil, errors.Join(errs...)
}

// withAuthenticated returns u with the group system:authenticated. It copies u before
// it changes it, because u can be shared.
func withAuthenticated(u *User) *User {
	if u.Name == Anonymous || u.InGroup(Authenticated) || u.InGroup(Unauthenticated) {
		return u
	}
	c := *u
	c.Groups = slices.Concat(u.Groups, []string{Authenticated})
	return &c
}

// NewAnonymous returns the user of requests without credentials.
func NewAnonymous() *User { return &User{Name: Anonymous, Groups: []string{Unauthenticated}} }

// AnonymousAccess authenticates requests without credentials as the anonymous user. As a
// member of a Union it applies after all other members. On its own it ignores
// requests with a bearer token.
var AnonymousAccess Authenticator = anonymousAccess{}

type anonymousAccess struct{}

func (anonymousAccess) Authenticate(r *http.Request) (*User, error) {
	if _, ok := BearerToken(r); ok {
		return nil, nil
	}
	return NewAnonymous(), nil
}
