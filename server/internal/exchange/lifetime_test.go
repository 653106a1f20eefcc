package exchange

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestLifetimeEndsWatches(t *testing.T) {
	var l Lifetime
	first, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := l.Bind(cancel)
	released, cancelReleased := context.WithCancel(t.Context())
	defer cancelReleased()
	l.Bind(cancelReleased)()
	assert.True(t, l.Enter())
	assert.False(t, l.Ended())
	l.End()
	assert.Error(t, first.Err())
	assert.NoError(t, released.Err(), "a released context is not bound any more")
	release()
	later, cancelLater := context.WithCancel(t.Context())
	defer cancelLater()
	l.Bind(cancelLater)
	assert.Error(t, later.Err(), "a watch that begins after End ends at once")
	assert.True(t, l.Enter(), "End refuses no requests")
	l.Leave()
	assert.True(t, l.Close())
	assert.False(t, l.Close())
	assert.False(t, l.Enter())
	l.Leave()
	l.Wait()
}
