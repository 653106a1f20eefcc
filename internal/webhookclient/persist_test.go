package webhookclient_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/webhookclient"
)

// TestPersistRetriesWithoutAnswer checks that calls without an answer and server errors are retried
// with growing pauses until ctx ends, and that client errors are not retried.
func TestPersistRetriesWithoutAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		wait time.Duration
		want int
		took time.Duration
	}{
		"no answer":  {errors.New("no"), time.Hour, 3, 5 * time.Second},
		"refused":    {&webhookclient.CodeError{Code: 400}, time.Hour, 1, 0},
		"broken":     {&webhookclient.CodeError{Code: 500}, time.Hour, 3, 5 * time.Second},
		"impatient":  {errors.New("no"), 3 * time.Second, 2, 3 * time.Second},
		"no trouble": {nil, time.Hour, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tc.wait)
				defer cancel()
				calls, began := 0, time.Now()
				err := webhookclient.Retry(ctx, time.Second, func() error { calls++; return tc.err })
				assert.Equal(t, tc.err == nil, err == nil)
				assert.Equal(t, tc.want, calls)
				assert.Equal(t, tc.took, time.Since(began))
			})
		})
	}
}
