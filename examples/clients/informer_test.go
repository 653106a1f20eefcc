package clients

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"orch.io/controlplane/server/servertest"
)

// sightings records the events of an informer's handler, in order, by object.
type sightings struct {
	t    *testing.T
	mu   sync.Mutex
	seen map[string][]string
	last uint64
}

func (s *sightings) note(kind string, obj any) {
	m := obj.(*corev1.ConfigMap)
	v, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || v <= s.last {
		s.t.Errorf("%s %s at %q after %d", kind, m.Name, m.ResourceVersion, s.last)
	}
	s.last = v
	s.seen[m.Name] = append(s.seen[m.Name], kind+" "+m.Data["n"])
}

func (s *sightings) of(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen[name])
}

const writers, rounds = 8, 25

// TestInformerSeesEveryChange: eight writers create, change and delete objects, and an informer sees
// each change once, in the order of versions.
func TestInformerSeesEveryChange(t *testing.T) {
	everyWay(t, func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config) {
		set := typed(t, c)
		factory := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithNamespace("default"))
		informer := factory.Core().V1().ConfigMaps().Informer()
		saw := &sightings{t: t, seen: map[string][]string{}}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { saw.note("add", obj) },
			UpdateFunc: func(_, obj any) { saw.note("update", obj) },
			DeleteFunc: func(obj any) {
				if _, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					t.Error("a delete was missed")
					return
				}
				saw.note("delete", obj)
			},
		})
		require.NoError(t, err)
		defer start(ctx, factory)()
		require.True(t, cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))

		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() { write(t, ctx, set, w) })
		}
		all.Wait()
		for w := range writers {
			for r := range rounds {
				name := fmt.Sprintf("w%d-r%d", w, r)
				want := []string{"add 0", "update 1", "update 2", "delete 2"}
				require.Eventually(t, func() bool { return len(saw.of(name)) >= len(want) }, patienceSpan, tick, name)
				require.Equal(t, want, saw.of(name), name)
			}
		}
	})
}

// start runs informers until stop is called.
func start(ctx context.Context, factory interface {
	Start(<-chan struct{})
	Shutdown()
}) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	factory.Start(ctx.Done())
	return func() { cancel(); factory.Shutdown() }
}

func write(t *testing.T, ctx context.Context, set kubernetes.Interface, writer int) {
	maps := set.CoreV1().ConfigMaps("default")
	for r := range rounds {
		if err := createChangeDelete(ctx, maps, fmt.Sprintf("w%d-r%d", writer, r)); err != nil {
			t.Error(err)
			return
		}
	}
}

// createChangeDelete creates, changes and deletes an object.
func createChangeDelete(ctx context.Context, maps corev1client.ConfigMapInterface, name string) error {
	m, err := maps.Create(ctx, configMap(name, "n", "0"), metav1.CreateOptions{})
	for n := 1; n < 3 && err == nil; n++ {
		m.Data["n"] = strconv.Itoa(n)
		m, err = maps.Update(ctx, m, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	return maps.Delete(ctx, name, metav1.DeleteOptions{})
}

// TestInformerStartsWithExistingObjects: the informer begins with a watch that sends the current
// objects, not with a list.
func TestInformerStartsWithExistingObjects(t *testing.T) {
	ctx := patience(t)
	s := servertest.New(t)
	calls := &recorder{next: s.Transport()}
	set := typed(t, &rest.Config{Host: s.Host(), Transport: calls, QPS: -1})
	for i := range 50 {
		_, err := set.CoreV1().ConfigMaps("default").Create(ctx, configMap(fmt.Sprintf("m%d", i)), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	calls.reset()
	factory := informers.NewSharedInformerFactory(set, 0)
	maps := factory.Core().V1().ConfigMaps()
	require.NoError(t, maps.Informer().AddIndexers(cache.Indexers{}))
	defer start(ctx, factory)()
	require.True(t, cache.WaitForCacheSync(ctx.Done(), maps.Informer().HasSynced))
	list, err := maps.Lister().ConfigMaps("default").List(everything)
	require.NoError(t, err)
	require.Len(t, list, 50)
	for _, q := range calls.queries() {
		require.Equal(t, "true", q.Get("watch"), q)
		require.Equal(t, "true", q.Get("sendInitialEvents"), q)
	}
	require.NotEmpty(t, calls.queries())
}
