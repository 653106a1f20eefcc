package client_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Lamp is a kind of the test program.
type Lamp struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            LampSpec   `json:"spec"`
	Status          LampStatus `json:"status,omitzero"`
}

type LampSpec struct {
	Color string `json:"color" schema:"default=white,enum=white|red|green"`
	Watts int    `json:"watts,omitempty" schema:"min=1"`
	Lit   bool   `json:"lit,omitempty"`
}

type LampStatus struct {
	Burnt bool `json:"burnt,omitempty"`
}

var lamp = registry.Definition[Lamp]{
	Group: "example.com", Version: "v1", Status: true, Fields: []registry.SelectableField{{Name: "spec.color"}},
}

func newLamp(name string, watts int) *Lamp {
	return &Lamp{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "default"}, Spec: LampSpec{Watts: watts}}
}

// newServer builds and runs a server with lamps and the built-in kinds.
func newServer(t testing.TB, configure ...func(*server.Builder)) *server.Server {
	t.Helper()
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll}
	b.Register(builtin.Kinds()...)
	b.Register(registry.Of(lamp))
	for _, c := range configure {
		c(b)
	}
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	ran := make(chan error, 1)
	go func() { ran <- s.Run(context.Background()) }()
	<-s.Running()
	t.Cleanup(func() {
		assert.NoError(t, s.Shutdown(context.Background()))
		assert.NoError(t, <-ran)
	})
	return s
}

// asJane returns the lamps of a server, accessed as user jane.
func asJane(s *server.Server) *client.Objects[Lamp] {
	conn := s.Conn(auth.User{Name: "jane", Groups: []string{"devs"}})
	conn.Manager = "jane"
	return client.Of[Lamp](conn, registry.Of(lamp))
}
