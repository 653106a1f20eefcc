package etcdtest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGateClosesRunningAndNewContexts: closing a gate ends the contexts that it returned before, and
// the contexts that it returns while closed have ended.
func TestGateClosesRunningAndNewContexts(t *testing.T) {
	g := newGate()
	before, done := g.pass(context.Background())
	defer done()
	require.NoError(t, before.Err())
	g.close()
	for range 1000 {
		ctx, done := g.pass(context.Background())
		require.Error(t, ctx.Err())
		done()
	}
	<-before.Done()
	g.open()
	after, done := g.pass(context.Background())
	defer done()
	require.NoError(t, after.Err())
}
