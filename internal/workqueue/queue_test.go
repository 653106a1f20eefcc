package workqueue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/workqueue"
)

// TestFailedMayUseQueue checks that Failed can call methods of the queue, as a log handler may.
func TestFailedMayUseQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *workqueue.Queue
		var calls, asked atomic.Int32
		q, _ = workqueue.New(workqueue.Options{
			Work: func(_ context.Context, key string) (time.Duration, error) {
				switch {
				case key == "asked":
					asked.Add(1)
					return 0, nil
				case calls.Add(1) == 2:
					panic("again")
				}
				return 0, errors.New("no")
			},
			Failed: func(string, time.Duration, error) {
				q.AddAfter(0, "asked")
				q.Wake()
			},
			Panicked: func(string, any) {},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() {
			defer close(ran)
			q.Run(ctx)
		}()
		q.AddAfter(0, "fails")
		q.Wake()
		time.Sleep(time.Minute)
		assert.Greater(t, calls.Load(), int32(10))
		assert.Positive(t, asked.Load())
		cancel()
		<-ran
	})
}
