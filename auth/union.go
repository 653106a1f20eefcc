package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// Methods is a set of authentication methods that acts as one. Make it with
// Union.
type Methods struct {
	members   []Authenticator
	tokens    []TokenAuthenticator
	anonymous bool
}

// Union combines methods: they are asked in order and the first that finds a
// user decides, whatever another one said before. If none does, the result is
//   - an error if any method returned one or if there is a bearer token, so
//     that a bad credential never makes a caller anonymous;
//   - the anonymous user if AnonymousAccess is among the methods;
//   - nil, nil otherwise.
//
// Every user but the anonymous one gets the group system:authenticated. A
// Methods may be a member of another; nil members are left out.
func Union(methods ...Authenticator) *Methods {
	m := &Methods{}
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
func (m *Methods) Authenticate(r *http.Request) (*User, error) {
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

// Strip removes the headers that members with a method Strip believe, as those of
// auth/proxyheader, for a request that goes on to another server.
func (m *Methods) Strip(h http.Header) {
	for _, a := range m.members {
		if s, ok := a.(interface{ Strip(http.Header) }); ok {
			s.Strip(h)
		}
	}
}

// Measure registers the metrics of members that have some: those with this method.
func (m *Methods) Measure(to prometheus.Registerer) error {
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

// AuthenticateToken asks the members that know bearer tokens about one token,
// as a token review does. It returns nil, nil, nil if none knows it.
func (m *Methods) AuthenticateToken(ctx context.Context, token string, audiences []string) (*User, []string, error) {
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

// withAuthenticated returns u as a member of system:authenticated. u may be
// shared, so it is copied where it changes.
func withAuthenticated(u *User) *User {
	if u.Name == Anonymous || u.InGroup(Authenticated) || u.InGroup(Unauthenticated) {
		return u
	}
	c := *u
	c.Groups = slices.Concat(u.Groups, []string{Authenticated})
	return &c
}

// NewAnonymous returns the user that a caller without credentials becomes.
func NewAnonymous() *User { return &User{Name: Anonymous, Groups: []string{Unauthenticated}} }

// AnonymousAccess among the members of a Union makes callers without any
// credential the anonymous user. By itself it does so too, but never for a
// caller with a bearer token.
var AnonymousAccess Authenticator = anonymousAccess{}

type anonymousAccess struct{}

func (anonymousAccess) Authenticate(r *http.Request) (*User, error) {
	if _, ok := BearerToken(r); ok {
		return nil, nil
	}
	return NewAnonymous(), nil
}
