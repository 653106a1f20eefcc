package apitest

import (
	"context"
	"testing"
	"time"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// NewInRelease returns a Client of a server that serves the API versions of a release
// and the review kinds.
func NewInRelease(t testing.TB, release string, more ...func(*server.Builder)) *Client {
	return InProcess(t, servertest.New(t, append(more, func(b *server.Builder) {
		b.Release = release
		b.Register(review.Access(auth.AllowAll)...)
		b.Register(review.Identity(NoTokens{}, nil)...)
	})...))
}

// NoTokens is a token authenticator that accepts no token.
type NoTokens struct{}

// AuthenticateToken returns no user.
func (NoTokens) AuthenticateToken(context.Context, string, []string) (*auth.User, []string, error) {
	return nil, nil, nil
}

// ShortFutureWait configures a server that waits only briefly for a resourceVersion in
// the future.
func ShortFutureWait(b *server.Builder) { b.Limits.FutureWait = 20 * time.Millisecond }

// Patient configures a server with requests that may take long, for tests that keep a busy machine
// waiting: with many requests at a time, or with responses that are read late.
func Patient(b *server.Builder) { b.Limits.RequestTime = time.Hour }
