package server

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/names"
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
		{Name: names.UserControllerManager}, {Name: "node", Groups: []string{"system:nodes"}},
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
