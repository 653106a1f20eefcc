package server_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestSLIsRunNothing: the page shows what probes found, however often it is read.
func TestSLIsRunNothing(t *testing.T) {
	var runs atomic.Int32
	a := inProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Checks = map[string]func(context.Context) error{"mine": func(context.Context) error { runs.Add(1); return nil }}
	}))
	assert.Equal(t, 200, a.do("GET", "/livez", nil).code)
	assert.Equal(t, 405, a.do("POST", "/metrics/slis", nil).code)
	for range 3 {
		got := a.do("GET", "/metrics/slis", nil)
		assert.Contains(t, string(got.raw), `kubernetes_healthchecks_total{name="mine",status="success",type="livez"} 1`)
	}
	assert.EqualValues(t, 1, runs.Load())
}
