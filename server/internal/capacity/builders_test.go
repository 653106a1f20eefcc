package capacity

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/fairqueue"
)

// TestBuildersAreOneLevel takes builders for requests of several priority levels, which share the
// same seats.
func TestBuildersAreOneLevel(t *testing.T) {
	builders, err := fairqueue.New(fairqueue.Options{Seats: 2}, oneLevel(flowcontrol.Default(names.Kubernetes)))
	require.NoError(t, err)
	var got []fairqueue.Seat
	for _, u := range []*auth.User{
		{Name: names.Kubernetes.Wire(wellknown.UserControllerManager)}, {Name: "node", Groups: []string{"system:nodes"}},
		{Name: "somebody", Groups: []string{auth.Authenticated}}, {Name: "account", Groups: []string{auth.ServiceAccounts}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // no request waits
		seat, err := builders.Acquire(ctx, builders.Classify(&auth.Attributes{User: u, Verb: "list", Resource: "pods"}), 1)
		if err == nil {
			got = append(got, seat)
		}
	}
	assert.Len(t, got, 2)
}

// TestBuildersUseNewestConfiguration replaces the configuration: builders distinguish flows by the schemas of the
// newest configuration.
func TestBuildersUseNewestConfiguration(t *testing.T) {
	config := flowcontrol.Default(names.Kubernetes)
	l, err := New(Options{Names: names.Kubernetes, Config: config, Metrics: prometheus.NewRegistry(), Seats: 10})
	require.NoError(t, err)
	a := &auth.Attributes{User: &auth.User{Name: "somebody", Groups: []string{auth.Authenticated}}, Verb: "list", Resource: "pods"}
	before := l.builders.Classify(a)
	config.Schemas = append(config.Schemas, flowcontrol.FlowSchema{Name: "own", Level: "workload-low", Rules: []flowcontrol.Rule{{
		Subjects: []flowcontrol.Subject{{User: a.User.Name}}, Resources: config.Schemas[0].Rules[0].Resources,
	}}})
	require.NoError(t, l.SetConfig(config))
	after := l.builders.Classify(a)
	assert.NotEqual(t, before.SchemaUID(), after.SchemaUID())
	assert.Equal(t, l.seats.Classify(a).SchemaUID(), after.SchemaUID())
	assert.Equal(t, "all", after.Level())
}
