package door_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestSLIMetricsDoNotRunChecks checks that the page of SLI metrics shows the results of health
// probes without running the checks.
func TestSLIMetricsDoNotRunChecks(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Checks = map[string]func(context.Context) error{"mine": func(context.Context) error { runs.Add(1); return nil }}
	}))
	assert.Equal(t, 200, a.Do("GET", "/livez", nil).Code)
	assert.Equal(t, 405, a.Do("POST", "/metrics/slis", nil).Code)
	for range 3 {
		got := a.Do("GET", "/metrics/slis", nil)
		assert.Contains(t, string(got.Raw), `kubernetes_healthchecks_total{name="mine",status="success",type="livez"} 1`)
	}
	assert.EqualValues(t, 1, runs.Load())
}
