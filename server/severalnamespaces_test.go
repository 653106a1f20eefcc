package server_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

const namespacePath = "/api/v1/namespaces"

// inNamespace returns the keys of a store that lie in a namespace.
func inNamespace(t *testing.T, store storage.Backend, name string) (keys []string) {
	t.Helper()
	_, records, err := store.Scan(t.Context(), "", "", 0)
	require.NoError(t, err)
	for rec, err := range records {
		require.NoError(t, err)
		if strings.Contains(rec.Key, "/"+name+"/") {
			keys = append(keys, rec.Key)
		}
	}
	return keys
}

// TestNothingComesIntoAGoneNamespace: what one server let in before another one emptied the
// namespace, and stores only afterwards, is refused, not stored and cleared away: nobody may
// be left who would.
func TestNothingComesIntoAGoneNamespace(t *testing.T) {
	onSharedStores(t, func(t *testing.T, store storage.Backend) {
		for name, again := range map[string]bool{"gone": false, "anew": true} {
			held := holds(store, "configmaps/"+name+"/late")
			one := inProcess(t, servertest.New(t, over(held)))
			two := inProcess(t, servertest.New(t, over(shared{store})))
			two.must(201, "POST", namespacePath, `{"metadata":{"name":"`+name+`"}}`)
			var got answer
			var writer sync.WaitGroup
			writer.Go(func() { got = one.do("POST", namespacePath+"/"+name+"/configmaps", newConfigMap("late")) })
			<-held.arrived
			began := two.must(200, "DELETE", namespacePath+"/"+name, nil).version()
			require.Eventually(t, func() bool { return two.do("GET", namespacePath+"/"+name, nil).code == 404 }, patience, time.Millisecond)
			code := 404
			if again {
				two.must(201, "POST", namespacePath, `{"metadata":{"name":"`+name+`"}}`)
				code = 201
			}
			close(held.release)
			writer.Wait()
			assert.Equal(t, code, got.code, "%s", got.raw)
			if again {
				two.must(200, "GET", namespacePath+"/"+name+"/configmaps/late", nil)
				continue
			}
			assert.Empty(t, inNamespace(t, store, name))
			watch := two.watch("/api/v1/configmaps?watch=1&fieldSelector=metadata.name%3Dlate&resourceVersion=" + began)
			two.must(201, "POST", configMaps, newConfigMap("late"))
			assert.Equal(t, "default", text(watch.next().Object, "metadata", "namespace"), "nor was it for a moment")
			two.must(200, "DELETE", configMaps+"/late", nil)
		}
	})
}

// TestNamespacesThatManyServersFill: while servers fill a namespace another one deletes it;
// nothing is left, and whoever was told that his object is there saw it go.
func TestNamespacesThatManyServersFill(t *testing.T) {
	onSharedStores(t, func(t *testing.T, store storage.Backend) {
		var servers []*api
		for range 3 {
			servers = append(servers, inProcess(t, servertest.New(t, over(shared{store}))))
		}
		for round := range 3 {
			name := fmt.Sprint("n", round)
			servers[0].must(201, "POST", namespacePath, `{"metadata":{"name":"`+name+`"}}`)
			var writers sync.WaitGroup
			full := make(chan struct{}, 1)
			for i, s := range servers {
				writers.Go(func() {
					for n := range 10_000 {
						got := s.do("POST", namespacePath+"/"+name+"/secrets", fmt.Sprintf(`{"metadata":{"name":"s%d.%d"}}`, i, n))
						if got.code != 201 {
							assert.Contains(t, []int{403, 404}, got.code, "%s", got.raw)
							return
						}
						if n == 5 {
							select {
							case full <- struct{}{}:
							default:
							}
						}
					}
				})
			}
			<-full
			servers[round].must(200, "DELETE", namespacePath+"/"+name, nil)
			writers.Wait()
			for _, s := range servers {
				require.Eventually(t, func() bool { return s.do("GET", namespacePath+"/"+name, nil).code == 404 }, patience, time.Millisecond)
			}
			assert.Empty(t, inNamespace(t, store, name))
		}
	})
}

// TestNamespacesThatAdmissionChanges: who is asked about an object writes into its namespace,
// each time: he is asked once, and the object is stored.
func TestNamespacesThatAdmissionChanges(t *testing.T) {
	namespaces, asked := meta.GroupResource{Resource: "namespaces"}, 0
	s := servertest.New(t, func(b *server.Builder) {
		client := b.Client()
		b.Admission = append(b.Admission, admission.Plugin{Name: "Counts", Validate: func(ctx context.Context, r *admission.Request) error {
			if r.Resource.Resource != "configmaps" || r.Namespace != "counted" || r.Name != "c" {
				return nil
			}
			asked++
			_, err := client.Update(ctx, namespaces, meta.Key{Name: r.Namespace}, "", func(o *meta.Object) error {
				o.Set(fmt.Sprint(asked), "metadata", "annotations", "example.com/asked")
				return nil
			})
			return err
		}})
	})
	a := inProcess(t, s)
	a.must(201, "POST", namespacePath, `{"metadata":{"name":"counted"}}`)
	a.must(201, "POST", namespacePath+"/counted/configmaps?timeout=5s", newConfigMap("c"))
	assert.Equal(t, 1, asked)
	assert.Equal(t, "1", text(a.must(200, "GET", namespacePath+"/counted", nil).body, "metadata", "annotations", "example.com/asked"))
}
