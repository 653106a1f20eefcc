package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInformersFailOver: servers are killed one after the other, and informers go on through the
// balancer without a gap: they tell every change once and in order, and list nothing again.
func TestInformersFailOver(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	_, servers := three(t)
	b := balance(t, servers)
	var informers []*informer
	for range 6 {
		informers = append(informers, startInformer(t, b.config()))
	}
	l := startLoad(t, b.callers(8), 3, legacy{})
	for _, p := range servers {
		l.progress(2 * some) // a watch that ends within a second and told nothing is taken for a fault by client-go
		p.kill()
		l.progress(2 * some)
		p.restart()
	}
	l.progress(some)
	left := l.check()
	reference := l.reference()
	went := int64(0)
	for _, i := range informers {
		i.check(reference, left.version)
		went += i.watches.Load()
	}
	t.Logf("watches of informers went on %d times", went)
	require.NotZero(t, went)
}
