package election_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/election"
)

// store keeps one lease and compares its version, as a server does.
type store struct {
	mu      sync.Mutex // guards the fields below
	lease   *election.Lease
	changed chan struct{} // closed at the next change
	cutOff  map[string]bool
}

func newStore() *store { return &store{changed: make(chan struct{}), cutOff: map[string]bool{}} }

// replace stores a lease in place of one of the same version.
func (s *store) replace(l *election.Lease) (*election.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := 0
	if s.lease != nil {
		version, _ = strconv.Atoi(s.lease.ResourceVersion)
	}
	if l.ResourceVersion != "" && l.ResourceVersion != strconv.Itoa(version) || l.ResourceVersion == "" && version > 0 {
		return nil, election.ErrConflict
	}
	next := *l
	next.UID, next.ResourceVersion = "1", strconv.Itoa(version+1)
	s.lease = &next
	close(s.changed)
	s.changed = make(chan struct{})
	copied := next
	return &copied, nil
}

// take gives the lease to a holder, whoever has it.
func (s *store) take(holder string, seconds int32) {
	l := &election.Lease{}
	s.mu.Lock()
	if s.lease != nil {
		l.ResourceVersion = s.lease.ResourceVersion
	}
	s.mu.Unlock()
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = holder, seconds
	if _, err := s.replace(l); err != nil {
		panic(err)
	}
}

func (s *store) holder() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.Spec.HolderIdentity
}

// cut has all further calls of a candidate fail.
func (s *store) cut(candidate string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cutOff[candidate] = true
}

var errCut = errors.New("the store cannot be reached")

// view is the Record of one candidate.
type view struct {
	*store
	name string
}

func (v view) reach() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cutOff[v.name] {
		return errCut
	}
	return nil
}

func (v view) Get(context.Context) (*election.Lease, error) {
	if err := v.reach(); err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.lease == nil {
		return nil, nil
	}
	copied := *v.lease
	return &copied, nil
}

func (v view) Put(_ context.Context, l *election.Lease, _ bool) (*election.Lease, error) {
	if err := v.reach(); err != nil {
		return nil, err
	}
	return v.replace(l)
}

func (v view) Await(ctx context.Context, seen *election.Lease) error {
	v.mu.Lock()
	now, changed := v.lease, v.changed
	v.mu.Unlock()
	if now == nil || seen == nil || now.ResourceVersion != seen.ResourceVersion {
		return nil
	}
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *store) candidate(name string, longest time.Duration) *election.Candidate {
	return &election.Candidate{Record: view{s, name}, Identity: name, Duration: 15 * time.Second, MaxDuration: longest, Log: slog.New(slog.DiscardHandler)}
}

// TestLeaseOfAnAbsentHolderExpires checks when a candidate takes a lease that is not renewed: after the duration that
// the lease has, at most after Longest.
func TestLeaseOfAnAbsentHolderExpires(t *testing.T) {
	for seconds, want := range map[int32]time.Duration{5: 5 * time.Second, 3600: 20 * time.Second, 0: 15 * time.Second, -1: 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newStore()
			s.take("other", seconds)
			begun := time.Now()
			err := s.candidate("me", 20*time.Second).Run(t.Context(), func(context.Context) error {
				took := time.Since(begun)
				assert.GreaterOrEqual(t, took, want, seconds)
				assert.Less(t, took, want+2*time.Second, seconds)
				assert.Equal(t, "me", s.holder())
				return nil
			})
			require.NoError(t, err)
			assert.Empty(t, s.holder(), "the lease is released")
		})
	}
}

// TestLeaderStopsWhenAnotherHoldsTheLease checks that a leader does not take back a lease that it lost.
func TestLeaderStopsWhenAnotherHoldsTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		err := s.candidate("me", time.Hour).Run(t.Context(), func(ctx context.Context) error {
			s.take("other", 15)
			select {
			case <-ctx.Done():
			case <-time.After(time.Minute):
				t.Error("it leads beside the holder of the lease")
			}
			return nil
		})
		assert.ErrorIs(t, err, election.ErrLost)
		assert.Equal(t, "other", s.holder())
	})
}

// TestLeaderWithoutAStoreStopsBeforeAnotherLeads checks two candidates of which the leader cannot renew its lease.
func TestLeaderWithoutAStoreStopsBeforeAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		var stopped atomic.Pointer[time.Time]
		first, second := make(chan struct{}), make(chan error, 1)
		lost := make(chan error, 1)
		go func() {
			lost <- s.candidate("first", time.Hour).Run(t.Context(), func(ctx context.Context) error {
				close(first)
				<-ctx.Done()
				now := time.Now()
				stopped.Store(&now)
				return nil
			})
		}()
		<-first
		go func() {
			second <- s.candidate("second", time.Hour).Run(t.Context(), func(context.Context) error {
				at := stopped.Load()
				if !assert.NotNil(t, at, "two lead at once") {
					return nil
				}
				assert.GreaterOrEqual(t, time.Since(*at), 4*time.Second, "what the first one does has time to end")
				return nil
			})
		}()
		time.Sleep(20 * time.Second) // the first one renews its lease meanwhile
		s.cut("first")
		assert.ErrorIs(t, <-lost, election.ErrLost)
		assert.NoError(t, <-second)
	})
}
