// Package actor carries in a context the user as which a built-in controller writes objects.
package actor

import (
	"context"

	"orch.io/controlplane/api/meta"
)

type (
	key      struct{}
	offerKey struct{}
)

// With returns a context in which a controller writes as u. u must not be modified afterwards.
func With(ctx context.Context, u *meta.User) context.Context {
	return context.WithValue(ctx, key{}, u)
}

// Offer returns a context in which Take makes u the user. A server offers an identity to each
// controller that has the name of a built-in controller. Only packages of this module can take it,
// so a program's controller with such a name writes as the server. u must not be modified
// afterwards.
func Offer(ctx context.Context, u *meta.User) context.Context {
	return context.WithValue(ctx, offerKey{}, u)
}

// Take returns a context in which a built-in controller writes as the user of Offer, or ctx if
// there is none.
func Take(ctx context.Context) context.Context {
	if u, _ := ctx.Value(offerKey{}).(*meta.User); u != nil {
		return With(ctx, u)
	}
	return ctx
}

// AsServer returns a context in which a built-in controller writes as the server.
func AsServer(ctx context.Context) context.Context { return With(ctx, nil) }

// From returns the user of With, or nil.
func From(ctx context.Context) *meta.User {
	u, _ := ctx.Value(key{}).(*meta.User)
	return u
}

// Is reports whether u is the user of With. Such a user needs no authorization, because a server
// must be able to run its controllers with any authorizer.
func Is(ctx context.Context, u *meta.User) bool { return u != nil && From(ctx) == u }
