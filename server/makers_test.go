package server

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/fair"
)

// TestMakersAreFew: as many make long answers at a time as there is room for,
// whatever levels their requests are of.
func TestMakersAreFew(t *testing.T) {
	makers, err := fair.New(fair.Options{Seats: 2}, oneLevel(flowcontrol.Default(names.Kubernetes)))
	require.NoError(t, err)
	var got []fair.Seat
	for _, u := range []*auth.User{
		{Name: names.Kubernetes.Wire(names.UserControllerManager)}, {Name: "node", Groups: []string{"system:nodes"}},
		{Name: "somebody", Groups: []string{auth.Authenticated}}, {Name: "account", Groups: []string{auth.ServiceAccounts}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // nobody waits
		seat, err := makers.Acquire(ctx, makers.Classify(&auth.Action{User: u, Verb: "list", Resource: "pods"}), 1)
		if err == nil {
			got = append(got, seat)
		}
	}
	assert.Len(t, got, 2)
}

// TestMakersFollow: those who make long answers are told apart by the schemas of
// the newest configuration.
func TestMakersFollow(t *testing.T) {
	config := flowcontrol.Default(names.Kubernetes)
	s, err := (&Builder{Authorizer: auth.AllowAll}).Build(t.Context())
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Shutdown(t.Context())) }()
	a := &auth.Action{User: &auth.User{Name: "somebody", Groups: []string{auth.Authenticated}}, Verb: "list", Resource: "pods"}
	before := s.makers.Classify(a)
	config.Schemas = append(config.Schemas, flowcontrol.Schema{Name: "own", Level: "workload-low", Rules: []flowcontrol.Rule{{
		Subjects: []flowcontrol.Subject{{User: a.User.Name}}, Resources: config.Schemas[0].Rules[0].Resources,
	}}})
	require.NoError(t, s.SetFlowControl(config))
	after := s.makers.Classify(a)
	assert.NotEqual(t, before.SchemaUID(), after.SchemaUID())
	assert.Equal(t, s.seats.Classify(a).SchemaUID(), after.SchemaUID())
	assert.Equal(t, "all", after.Level())
}
