package testbed

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// change is a change that an informer reported.
type change struct {
	Type, Name string
	Version    uint64
}

// Informer is an informer of client-go with connections of its own. It records changes of ConfigMaps,
// and also follows Secrets, which do not change.
type Informer struct {
	t       testing.TB
	base    uint64       // changes are recorded after this version
	lists   atomic.Int64 // number of lists
	watches atomic.Int64 // number of resumed watches

	mu   sync.Mutex
	news *sync.Cond
	seen []change
	last uint64
}

// kinds is the number of kinds that the informer lists once.
const kinds = 2

// StartInformer starts an informer and returns after its initial sync.
func StartInformer(t testing.TB, config *rest.Config) *Informer {
	t.Helper()
	i := &Informer{t: t}
	i.news = sync.NewCond(&i.mu)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return counter{i, inner} })
	client, err := corev1client.NewForConfig(config)
	require.NoError(t, err)
	follow := func(resource string, of runtime.Object) cache.SharedIndexInformer {
		return cache.NewSharedIndexInformer(cache.NewListWatchFromClient(client.RESTClient(), resource, "default", fields.Everything()), of, 0, nil)
	}
	maps, quiet := follow("configmaps", &corev1.ConfigMap{}), follow("secrets", &corev1.Secret{})
	handler, err := maps.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { i.record("ADDED", obj) },
		UpdateFunc: func(_, obj any) { i.record("MODIFIED", obj) },
		DeleteFunc: func(obj any) { i.record("DELETED", obj) },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var both sync.WaitGroup
	t.Cleanup(func() { cancel(); both.Wait() })
	both.Go(func() { maps.RunWithContext(ctx) })
	both.Go(func() { quiet.RunWithContext(ctx) })
	within, over := context.WithTimeout(ctx, time.Minute)
	defer over()
	require.True(t, cache.WaitForCacheSync(within.Done(), handler.HasSynced, quiet.HasSynced))
	i.mu.Lock()
	defer i.mu.Unlock()
	i.base, i.seen = i.last, nil
	return i
}

// counter is a transport that counts the lists and watches of an informer.
type counter struct {
	*Informer
	inner http.RoundTripper
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.inner.RoundTrip(r)
	if err != nil || res.StatusCode != 200 {
		return res, err
	}
	if q := r.URL.Query(); q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
		c.lists.Add(1)
	} else {
		c.watches.Add(1)
	}
	return res, err
}

func (i *Informer) record(kind string, obj any) {
	m, ok := obj.(*corev1.ConfigMap)
	if !ok {
		i.t.Errorf("%s of %T, want a ConfigMap", kind, obj)
		return
	}
	version, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil || i.base != 0 && version <= i.last {
		i.t.Errorf("%s of %s at %s after %d", kind, m.Name, m.ResourceVersion, i.last)
	}
	i.last = max(i.last, version)
	i.seen = append(i.seen, change{kind, m.Name, version})
	i.news.Broadcast()
}

// until waits for a change at or after a version, and returns the recorded changes up to it.
func (i *Informer) until(version uint64) []change {
	i.t.Helper()
	timer := time.AfterFunc(time.Minute, i.news.Broadcast)
	defer timer.Stop()
	deadline := time.Now().Add(time.Minute)
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.last < version && time.Now().Before(deadline) {
		i.news.Wait()
	}
	require.GreaterOrEqual(i.t, i.last, version, "the informer does not report the version")
	return slices.Clone(i.seen)
}

// Resumed returns how often the informer has resumed a watch.
func (i *Informer) Resumed() int64 { return i.watches.Load() }

// check asserts that the informer has listed each kind once, and has reported each change of a load
// once and in order.
func (i *Informer) check(events []Event, fence uint64) {
	i.t.Helper()
	got := slices.DeleteFunc(i.until(fence), func(c change) bool { return !strings.HasPrefix(c.Name, "e") })
	var want []change
	for _, e := range events {
		want = append(want, change{e.Type, e.Object.Metadata.Name, e.Object.Version()})
	}
	require.Equal(i.t, len(want), len(got))
	for n := range want {
		require.Equal(i.t, want[n], got[n], "change %d of %d", n, len(want))
	}
	require.EqualValues(i.t, kinds, i.lists.Load(), "number of lists")
}
