package workqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/workqueue"
)

// gauges returns the gauges of a registry.
func gauges(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	families, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			if m.Gauge != nil {
				out[f.GetName()[len("workqueue_"):]+" "+m.Label[0].GetValue()] = m.Gauge.GetValue()
			}
		}
	}
	return out
}

// TestGaugesAddUpQueuesOfSameName checks the gauges for waiting and running keys: queues with the
// same name are added up, and closed queues are left out.
func TestGaugesAddUpQueuesOfSameName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		work := make(chan struct{})
		open := func() *workqueue.Queue {
			q, err := workqueue.New(workqueue.Options{
				Name: "q", Metrics: reg, Workers: 2, Panicked: func(string, any) {}, Failed: func(string, time.Duration, error) {},
				Work: func(context.Context, string) (time.Duration, error) { <-work; return 0, errors.New("again") },
			})
			require.NoError(t, err)
			return q
		}
		first, other := open(), open()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); first.Run(ctx) }()
		synctest.Wait()
		first.AddAfter(0, "a", "b", "c")
		first.AddAfter(time.Hour, "later")
		first.Wake()
		other.AddAfter(0, "x")
		synctest.Wait()
		time.Sleep(3 * time.Second)
		assert.Equal(t, map[string]float64{"depth q": 2, "unfinished_work_seconds q": 6, "longest_running_processor_seconds q": 3}, gauges(t, reg))
		cancel()
		close(work)
		<-ended
		assert.Equal(t, map[string]float64{"depth q": 1, "unfinished_work_seconds q": 0, "longest_running_processor_seconds q": 0}, gauges(t, reg))
		other.Close()
		assert.Empty(t, gauges(t, reg))
	})
}
