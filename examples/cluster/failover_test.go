package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInformersFailOver: the servers are killed in turn, and informers continue through the balancer
// without a gap: they report every change once and in order, and do not list again.
func TestInformersFailOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	_, servers := startThree(t)
	b := balance(t, servers)
	var informers []*informer
	for range 6 {
		informers = append(informers, startInformer(t, b.config()))
	}
	l := startLoad(t, b.callers(8), 3, legacy{})
	for _, p := range servers {
		l.progress(2 * some) // client-go treats a watch that ends within a second without an event as a failure
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
	t.Logf("informers resumed their watches %d times", went)
	require.NotZero(t, went)
}
