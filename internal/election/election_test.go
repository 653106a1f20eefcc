package election_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/internal/election"
)

// record is a Record with a given holder and a given result of Put.
type record struct {
	mu     sync.Mutex
	holder string
	put    error
	calls  int // number of calls
}

func (r *record) set(holder string, put error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.holder, r.put, r.calls = holder, put, 0
}

func (r *record) Get(context.Context) (*election.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls++; r.calls > 5000 {
		time.Sleep(time.Second)
	}
	l := &election.Lease{}
	l.ResourceVersion, l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = "of "+r.holder, r.holder, 15
	return l, nil
}

func (r *record) Put(_ context.Context, l *election.Lease, _ bool) (*election.Lease, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	return l, r.put
}

func (r *record) Await(context.Context, *election.Lease) error { return nil }

func candidate(r *record) *election.Candidate {
	return &election.Candidate{Record: r, Identity: "me", Duration: 15 * time.Second, MaxDuration: time.Hour, Log: slog.New(slog.DiscardHandler)}
}

// TestSpuriousAwaitDoesNotSpin checks that a candidate pauses if Await returns without a change.
func TestSpuriousAwaitDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{holder: "other"}
		c := candidate(r)
		c.MaxDuration = 10 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		assert.NoError(t, c.Run(ctx, func(context.Context) error { return errors.New("it leads") }))
		assert.Less(t, r.calls, 100)
	})
}

// TestRepeatedConflictsLoseLease checks that a candidate that cannot write its lease because of
// repeated conflicts loses it in time, and retries a limited number of times.
func TestRepeatedConflictsLoseLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{}
		begun := time.Now()
		err := candidate(r).Run(t.Context(), func(ctx context.Context) error {
			r.set("me", election.ErrConflict)
			<-ctx.Done()
			return nil
		})
		assert.ErrorIs(t, err, election.ErrLost)
		assert.LessOrEqual(t, time.Since(begun), 10*time.Second)
		assert.Less(t, r.calls, 100)

		r.set("", nil)
		assert.NoError(t, candidate(r).Run(t.Context(), func(context.Context) error {
			r.set("me", election.ErrConflict)
			return nil
		}))
		assert.Less(t, r.calls, 20, "release retries a limited number of times")
	})
}

// TestVacantEndsBeforeLeading checks that Vacant runs while the store has no room for the lease,
// and has ended before a candidate leads.
func TestVacantEndsBeforeLeading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{put: election.ErrStoreFull}
		var vacant atomic.Int32
		c := candidate(r)
		c.Vacant = func(ctx context.Context) {
			vacant.Add(1)
			<-ctx.Done()
			time.Sleep(time.Second)
			vacant.Add(-1)
		}
		led := make(chan error, 1)
		go func() {
			led <- c.Run(t.Context(), func(context.Context) error {
				assert.Zero(t, vacant.Load())
				return nil
			})
		}()
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, vacant.Load())
		r.set("other", nil)
		time.Sleep(5 * time.Second)
		assert.Zero(t, vacant.Load(), "another candidate leads")
		r.set("other", election.ErrStoreFull)
		time.Sleep(20 * time.Second)
		assert.EqualValues(t, 1, vacant.Load())
		r.set("other", nil)
		assert.NoError(t, <-led)
	})
}
