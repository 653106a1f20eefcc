// Package actor carries, in a context, the user as whom a built-in controller writes objects.
package actor

import (
	"context"

	"orch.io/controlplane/api/meta"
)

type key struct{}

// With returns a context in which a controller writes as u. u must not be changed any more.
func With(ctx context.Context, u *meta.User) context.Context {
	return context.WithValue(ctx, key{}, u)
}

// From returns the user of With, or nil.
func From(ctx context.Context) *meta.User {
	u, _ := ctx.Value(key{}).(*meta.User)
	return u
}

// Is reports whether u is the user of With. Such a user needs no authorization, because a
// server runs its controllers whatever its authorizer knows of them.
func Is(ctx context.Context, u *meta.User) bool { return u != nil && From(ctx) == u }
