package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/coordination"
	"orch.io/controlplane/server"
)

// candidate is a program that takes part in an election.
type candidate struct {
	leads  chan bool
	result chan error
	line   *line
	leave  context.CancelFunc
}

func startCandidate(t *testing.T, s *server.Server, name string) *candidate {
	conn := s.Conn(auth.User{Name: name})
	c := &candidate{leads: make(chan bool, 100), result: make(chan error, 1), line: &line{RoundTripper: conn.Transport, open: map[*cuttable]bool{}}}
	conn.Transport = c.line
	ctx, cancel := context.WithCancel(t.Context())
	c.leave = cancel
	go func() {
		e := client.Election{Conn: conn, Namespace: "default", Name: "chair", Identity: name}
		c.result <- e.Run(ctx, func(ctx context.Context) error {
			c.leads <- true
			<-ctx.Done()
			c.leads <- false
			return nil
		})
	}()
	return c
}

func chairLeases(t *testing.T, s *server.Server) *client.Objects[coordination.Lease] {
	return client.Of[coordination.Lease](s.Conn(auth.User{Name: "jane"}), coordination.Kinds()[0]).In("default")
}

func TestElectionHasOneLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := startCandidate(t, s, "a")
		assert.True(t, <-a.leads)
		b := startCandidate(t, s, "b")
		time.Sleep(time.Hour)
		assert.Empty(t, b.leads)
		assert.Empty(t, a.leads)

		begun := time.Now()
		a.leave() // releases the Lease, so that no candidate waits for its expiry
		assert.False(t, <-a.leads)
		assert.NoError(t, <-a.result)
		assert.True(t, <-b.leads)
		assert.LessOrEqual(t, time.Since(begun), 4*time.Second)
		held, err := chairLeases(t, s).Get(t.Context(), "chair")
		require.NoError(t, err)
		assert.Equal(t, "b", *held.Spec.HolderIdentity)
		assert.EqualValues(t, 1, *held.Spec.LeaseTransitions)

		a = startCandidate(t, s, "a")
		begun = time.Now()
		b.line.set(true) // a leader that cannot renew stops before another candidate leads
		assert.False(t, <-b.leads)
		stopped := time.Since(begun)
		assert.ErrorIs(t, <-b.result, client.ErrLost)
		assert.True(t, <-a.leads)
		assert.Less(t, stopped, time.Since(begun))
		assert.LessOrEqual(t, time.Since(begun), 20*time.Second)
		a.leave()
		assert.NoError(t, <-a.result)
	})
}

// TestLeaderYieldsToNewHolder checks that a leader stops when another holder is written into the
// Lease, but not after other changes of the Lease.
func TestLeaderYieldsToNewHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := startCandidate(t, s, "a")
		assert.True(t, <-a.leads)
		_, err := chairLeases(t, s).Modify(t.Context(), "chair", func(l *coordination.Lease) error {
			l.Labels = map[string]string{"seen": "yes"}
			return nil
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Empty(t, a.leads)
		held, err := chairLeases(t, s).Modify(t.Context(), "chair", func(l *coordination.Lease) error {
			other := "other"
			l.Spec.HolderIdentity = &other
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, "yes", held.Labels["seen"])
		assert.False(t, <-a.leads)
		assert.ErrorIs(t, <-a.result, client.ErrLost)

		b := startCandidate(t, s, "b")
		assert.True(t, <-b.leads, "when the other one does not renew it")
		require.NoError(t, chairLeases(t, s).Delete(t.Context(), "chair", registry.DeleteOptions{}))
		assert.False(t, <-b.leads)
		assert.ErrorIs(t, <-b.result, client.ErrLost)
	})
}

// TestCandidateRetriesUntilContextEnds takes the server away from a candidate.
func TestCandidateRetriesUntilContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := startCandidate(t, s, "a")
		assert.True(t, <-a.leads)
		b := startCandidate(t, s, "b")
		b.line.set(true)
		time.Sleep(time.Hour)
		b.leave()
		assert.NoError(t, <-b.result)
		a.leave()
		assert.NoError(t, <-a.result)
	})
}

// TestElectionReturnsErrorOfLead checks that Run returns the error of lead and releases the Lease,
// and that invalid elections fail.
func TestElectionReturnsErrorOfLead(t *testing.T) {
	s := newServer(t)
	own := errors.New("done")
	e := client.Election{Conn: s.Conn(auth.User{Name: "jane"}), Namespace: "default", Name: "chair", Duration: time.Minute}
	for range 2 { // without a wait the second time, because the Lease was released
		assert.ErrorIs(t, e.Run(t.Context(), func(context.Context) error { return own }), own)
	}
	held, err := chairLeases(t, s).Get(t.Context(), "chair")
	require.NoError(t, err)
	assert.Empty(t, *held.Spec.HolderIdentity)
	assert.False(t, meta.IsNotFound(err))
	e.Name = ""
	assert.Error(t, e.Run(t.Context(), func(context.Context) error { return nil }))
	e.Name = "chair"
	assert.Error(t, e.Run(t.Context(), nil))
}

// TestNestedElectionLossReleasesOuterLease checks that an ErrLost from lead, for example of an
// inner election, does not count as the loss of the outer Lease.
func TestNestedElectionLossReleasesOuterLease(t *testing.T) {
	s := newServer(t)
	e := client.Election{Conn: s.Conn(auth.User{Name: "jane"}), Namespace: "default", Name: "chair", Duration: time.Minute}
	err := e.Run(t.Context(), func(context.Context) error { return fmt.Errorf("inner: %w", client.ErrLost) })
	assert.ErrorContains(t, err, "inner")
	held, err := chairLeases(t, s).Get(t.Context(), "chair")
	require.NoError(t, err)
	assert.Empty(t, *held.Spec.HolderIdentity)
}

// TestElectionPausesBetweenFailingWatches checks that a candidate does not poll without a pause if
// a proxy ends watches at once or repeats an old event in each of them.
func TestElectionPausesBetweenFailingWatches(t *testing.T) {
	for name, says := range map[string]string{
		"nothing": "",
		"old":     `{"type":"ADDED","object":{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"chair","namespace":"default","resourceVersion":"1"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				a := startCandidate(t, s, "a")
				assert.True(t, <-a.leads)
				b := startCandidate(t, s, "b")
				var asked atomic.Int32
				b.line.mu.Lock()
				b.line.refuse = func(r *http.Request) *http.Response {
					if asked.Add(1) > 10000 || r.URL.Query().Get("watch") == "" {
						return nil
					}
					return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(says)), Request: r}
				}
				b.line.mu.Unlock()
				time.Sleep(time.Minute)
				assert.Less(t, asked.Load(), int32(1000))
				a.leave()
				assert.NoError(t, <-a.result)
				assert.True(t, <-b.leads)
				b.leave()
				assert.NoError(t, <-b.result)
			})
		})
	}
}

// TestTermsDoNotOverlap delays the write with which the first candidate wins, or the read with
// which the second candidate learns of a renewal, or has the server refuse requests.
func TestTermsDoNotOverlap(t *testing.T) {
	for name, c := range map[string]struct {
		first, second func(method string) (before, after time.Duration)
	}{
		"a late win":    {first: func(method string) (time.Duration, time.Duration) { return 0, late(method != "GET", 14*time.Second) }},
		"a slow win":    {first: func(method string) (time.Duration, time.Duration) { return 0, late(method != "GET", 4*time.Second) }},
		"a slow read":   {second: func(string) (time.Duration, time.Duration) { return 9500 * time.Millisecond, 0 }},
		"a slower read": {second: func(string) (time.Duration, time.Duration) { return 4900 * time.Millisecond, 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				begun := time.Now()
				var ends, begins time.Time
				first, second := candidateOver(s, c.first), candidateOver(s, c.second)
				ctx, cancel := context.WithCancel(t.Context())
				ran := make(chan error, 2)
				go func() {
					ran <- first.Run(ctx, func(ctx context.Context) error {
						<-ctx.Done()
						ends = time.Now()
						return nil
					})
				}()
				synctest.Wait()
				go func() {
					ran <- second.Run(ctx, func(ctx context.Context) error {
						begins = time.Now()
						<-ctx.Done()
						return nil
					})
				}()
				time.Sleep(10*time.Second - time.Since(begun))
				first.Conn.Transport.(*slowLine).line.set(true)
				time.Sleep(time.Hour)
				cancel()
				<-ran
				<-ran
				require.False(t, begins.IsZero())
				if !ends.IsZero() { // it led
					assert.LessOrEqual(t, ends.Add(4*time.Second), begins)
				}
			})
		})
	}
}

// slowLine is a line whose first request of each method is delayed, before and after the server
// handles it.
type slowLine struct {
	*line
	takes func(method string) (before, after time.Duration)
	taken map[string]bool
}

func late(is bool, d time.Duration) time.Duration {
	if is {
		return d
	}
	return 0
}

func candidateOver(s *server.Server, takes func(string) (before, after time.Duration)) client.Election {
	conn := s.Conn(auth.User{Name: "jane"})
	conn.Transport = &slowLine{&line{RoundTripper: conn.Transport, open: map[*cuttable]bool{}}, takes, map[string]bool{}}
	return client.Election{Conn: conn, Namespace: "default", Name: "chair"}
}

func (s *slowLine) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.takes == nil || s.taken[r.Method] {
		return s.line.RoundTrip(r)
	}
	s.taken[r.Method] = true
	before, after := s.takes(r.Method)
	time.Sleep(before)
	res, err := s.line.RoundTrip(r)
	select {
	case <-time.After(after):
		return res, err
	case <-r.Context().Done():
		if err == nil {
			_ = res.Body.Close()
		}
		return nil, r.Context().Err()
	}
}
