// Package auth says who a caller is and what they may do: the vocabulary and
// the two interfaces that a server asks on every request. Sub-packages
// implement them.
package auth

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/meta"
)

// The names of identities that every server knows.
const (
	Anonymous       = "system:anonymous"
	Unauthenticated = "system:unauthenticated"
	Authenticated   = "system:authenticated"
	Masters         = "system:masters"
	ServerUser      = "system:apiserver"
)

// User is the identity of a caller; meta.UserFrom finds it in the context of a request.
type User = meta.User

// Authenticator finds the user of a request. It returns nil, nil if the
// request holds nothing that it knows; an error if it holds something that is
// wrong. The error is logged, never sent to the caller.
type Authenticator interface {
	Authenticate(r *http.Request) (*User, error)
}

// AuthenticatorFunc makes a function an Authenticator.
type AuthenticatorFunc func(r *http.Request) (*User, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(r *http.Request) (*User, error) { return f(r) }

// Action is what a caller wants to do.
type Action struct {
	User *User
	Verb string // get, list, watch, create, update, patch, delete, deletecollection, or an HTTP method in lower case

	// Of a resource request; Resource is empty for any other.
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
	Fields, Labels                        string // the selectors of a list, watch or deletecollection, as sent

	// Path is the path of a request that is not for a resource.
	Path string
}

// Decision is an Authorizer's answer.
type Decision int

// The decisions. NoOpinion passes the question on; in the end it denies.
const (
	NoOpinion Decision = iota
	Allow
	Deny
)

// Authorizer decides whether an action is allowed. The text is a reason for
// people. An error with NoOpinion is logged and told to the caller as a reason.
type Authorizer interface {
	Authorize(ctx context.Context, a Action) (Decision, string, error)
}

// AuthorizerFunc makes a function an Authorizer.
type AuthorizerFunc func(ctx context.Context, a Action) (Decision, string, error)

// Authorize calls f.
func (f AuthorizerFunc) Authorize(ctx context.Context, a Action) (Decision, string, error) {
	return f(ctx, a)
}

// AllowAll allows every action. It is the explicit choice of a server without
// access control.
var AllowAll Authorizer = allowAll{}

// DenyAll denies every action.
var DenyAll Authorizer = AuthorizerFunc(func(context.Context, Action) (Decision, string, error) {
	return Deny, "everything is denied", nil
})
