package client_test

import (
	"context"
	"errors"
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

// candidate is a program in an election.
type candidate struct {
	leads  chan bool
	result chan error
	line   *line
	leave  context.CancelFunc
}

func stand(t *testing.T, s *server.Server, name string) *candidate {
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

func chair(t *testing.T, s *server.Server) *client.Objects[coordination.Lease] {
	return client.Of[coordination.Lease](s.Conn(auth.User{Name: "jane"}), coordination.Kinds()[0]).In("default")
}

func TestOneLeadsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := stand(t, s, "a")
		assert.True(t, <-a.leads)
		b := stand(t, s, "b")
		time.Sleep(time.Hour)
		assert.Empty(t, b.leads)
		assert.Empty(t, a.leads)

		begun := time.Now()
		a.leave() // gives the lease up: nobody waits for its end
		assert.False(t, <-a.leads)
		assert.NoError(t, <-a.result)
		assert.True(t, <-b.leads)
		assert.LessOrEqual(t, time.Since(begun), 4*time.Second)
		held, err := chair(t, s).Get(t.Context(), "chair")
		require.NoError(t, err)
		assert.Equal(t, "b", *held.Spec.HolderIdentity)
		assert.EqualValues(t, 1, *held.Spec.LeaseTransitions)

		a = stand(t, s, "a")
		begun = time.Now()
		b.line.set(true) // who cannot renew stops before another one leads
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

// TestLeadersYieldToWhoTookTheLease, and do not mind who writes something else into it.
func TestLeadersYieldToWhoTookTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := stand(t, s, "a")
		assert.True(t, <-a.leads)
		_, err := chair(t, s).Modify(t.Context(), "chair", func(l *coordination.Lease) error {
			l.Labels = map[string]string{"seen": "yes"}
			return nil
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Empty(t, a.leads)
		held, err := chair(t, s).Modify(t.Context(), "chair", func(l *coordination.Lease) error {
			other := "other"
			l.Spec.HolderIdentity = &other
			return nil
		})
		require.NoError(t, err)
		assert.Equal(t, "yes", held.Labels["seen"])
		assert.False(t, <-a.leads)
		assert.ErrorIs(t, <-a.result, client.ErrLost)

		b := stand(t, s, "b")
		assert.True(t, <-b.leads, "when the other one does not renew it")
		require.NoError(t, chair(t, s).Delete(t.Context(), "chair", registry.DeleteOptions{}))
		assert.False(t, <-b.leads)
		assert.ErrorIs(t, <-b.result, client.ErrLost)
	})
}

// TestCandidatesGoOnAsking as long as the server is away, and end with their context.
func TestCandidatesGoOnAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		a := stand(t, s, "a")
		assert.True(t, <-a.leads)
		b := stand(t, s, "b")
		b.line.set(true)
		time.Sleep(time.Hour)
		b.leave()
		assert.NoError(t, <-b.result)
		a.leave()
		assert.NoError(t, <-a.result)
	})
}

// TestElectionEndsWithWhatItIsFor.
func TestElectionEndsWithWhatItIsFor(t *testing.T) {
	s := newServer(t)
	own := errors.New("done")
	e := client.Election{Conn: s.Conn(auth.User{Name: "jane"}), Namespace: "default", Name: "chair", Duration: time.Minute}
	for range 2 { // at once the second time: the lease was given up
		assert.ErrorIs(t, e.Run(t.Context(), func(context.Context) error { return own }), own)
	}
	held, err := chair(t, s).Get(t.Context(), "chair")
	require.NoError(t, err)
	assert.Empty(t, *held.Spec.HolderIdentity)
	assert.False(t, meta.IsNotFound(err))
	e.Name = ""
	assert.Error(t, e.Run(t.Context(), nil))
}
