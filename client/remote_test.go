package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage/badgerstore"
)

// TestRemoteServerRestarts checks, over TLS with a token, that a cache and a controller continue
// after connections are cut and after the server restarts over its store, and that the token
// identifies the user.
func TestRemoteServerRestarts(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	var current atomic.Pointer[server.Server]
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := current.Load(); s != nil {
			s.ServeHTTP(w, r)
			return
		}
		http.Error(w, "between two servers", http.StatusBadGateway)
	}))
	defer web.Close()
	start := func() {
		store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
		require.NoError(t, err)
		b := &server.Builder{Storage: store, Authorizer: auth.AllowAll, Authenticators: []auth.Authenticator{
			auth.AuthenticatorFunc(func(r *http.Request) (*auth.User, error) {
				if token, _ := auth.BearerToken(r); token == "secret" {
					return &auth.User{Name: "jane"}, nil
				}
				return nil, nil
			}),
		}}
		b.Register(registry.Of(lamp))
		s, err := b.Build(context.Background())
		require.NoError(t, err)
		current.Store(s)
	}
	stop := func() { assert.NoError(t, current.Swap(nil).Shutdown(context.Background())) }
	start()
	defer func() { stop() }()

	transport := web.Client().Transport.(*http.Transport)
	defer transport.CloseIdleConnections()
	conn := client.Conn{URL: web.URL, Transport: transport, Token: "wrong"}
	_, err := client.Of[Lamp](conn, registry.Of(lamp)).List(ctx, client.ListOptions{})
	assert.Equal(t, meta.ReasonUnauthorized, meta.ReasonOf(err))
	conn.Token, conn.Manager = "secret", "jane"
	lamps := client.Of[Lamp](conn, registry.Of(lamp)).In("default")
	cache := lamps.Cache()
	defer run(t, cache)()
	seen := make(chan string, 100)
	defer runController(t, lamps, client.RunOptions{}, client.Controller{Name: "seen", MapEvent: keysOf, Reconcile: func(_ context.Context, _ client.Client, key string) (time.Duration, error) {
		seen <- key
		return 0, nil
	}})()
	for _, step := range []struct {
		name    string
		between func()
	}{
		{"first", func() {}},
		{"cut", web.CloseClientConnections},
		{"restarted", func() { stop(); start() }},
	} {
		step.between()
		created, err := lamps.Create(ctx, newLamp(step.name, 1))
		if err != nil { // the next request may be the first to notice that its connection was cut
			created, err = lamps.Create(ctx, newLamp(step.name, 1))
		}
		require.NoError(t, err, step.name)
		require.NoError(t, cache.WaitFor(ctx, created.ResourceVersion))
		_, ok := cache.Get(meta.Key{Namespace: "default", Name: step.name})
		assert.True(t, ok, step.name)
		for name := range seen {
			if name == "default/"+step.name {
				break
			}
		}
	}
	assert.Equal(t, 3, cache.Len())
}
