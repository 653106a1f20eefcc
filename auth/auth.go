// Package auth defines authentication and authorization: the types, and the
// interfaces Authenticator and Authorizer, which the server calls for every
// request. The packages below auth implement them.
package auth

import (
	"context"
	"net/http"

	"orch.io/controlplane/api/meta"
)

// Names of users and groups that exist on every server.
const (
	Anonymous       = "system:anonymous"
	Unauthenticated = "system:unauthenticated"
	Authenticated   = "system:authenticated"
	Masters         = "system:masters"
	ServerUser      = "system:apiserver"
)

// User is the identity of a caller. meta.UserFrom returns it from the context of a request.
type User = meta.User

// Authenticator finds the user of a request. Authenticate returns nil, nil if the
// request has no credentials that the Authenticator understands, and an error if it has
// invalid ones. The server logs the error and does not send it to the caller.
// Implementations must be safe for concurrent use.
type Authenticator interface {
	Authenticate(r *http.Request) (*User, error)
}

// AuthenticatorFunc is a function that implements Authenticator.
type AuthenticatorFunc func(r *http.Request) (*User, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(r *http.Request) (*User, error) { return f(r) }

// Attributes describes a request to an Authorizer.
type Attributes struct {
	User *User
	Verb string // get, list, watch, create, update, patch, delete, deletecollection, or an HTTP method in lower case

	// Attributes of a resource request. Resource is empty for other requests.
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
	Fields, Labels                        string // the selectors of a list, watch or deletecollection, as sent

	// Path is the URL path of a request that is not a resource request.
	Path string
}

// Decision is the result of an Authorizer.
type Decision int

// The decisions. After NoOpinion the next Authorizer of a Chain decides; the server
// denies a request if the final decision is NoOpinion.
const (
	NoOpinion Decision = iota
	Allow
	Deny
)

// Authorizer decides whether a request is allowed. The string is the reason, for
// people. The server logs an error that comes with NoOpinion and adds it to the
// reason in its response. Implementations must be safe for concurrent use.
type Authorizer interface {
	Authorize(ctx context.Context, a Attributes) (Decision, string, error)
}

// AuthorizerFunc is a function that implements Authorizer.
type AuthorizerFunc func(ctx context.Context, a Attributes) (Decision, string, error)

// Authorize calls f.
func (f AuthorizerFunc) Authorize(ctx context.Context, a Attributes) (Decision, string, error) {
	return f(ctx, a)
}

// AllowAll allows every request. It is the explicit choice of a server without
// access control.
var AllowAll Authorizer = allowAll{}

// DenyAll denies every request.
var DenyAll Authorizer = AuthorizerFunc(func(context.Context, Attributes) (Decision, string, error) {
	return Deny, "everything is denied", nil
})
