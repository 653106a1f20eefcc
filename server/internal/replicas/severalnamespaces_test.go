package replicas_test

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
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// inNamespace returns the keys of the objects of a namespace.
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

// TestCreateDuringNamespaceDeletionIsRefused: a create that one server admitted before another
// server emptied the namespace is refused at the commit.
func TestCreateDuringNamespaceDeletionIsRefused(t *testing.T) {
	t.Parallel()
	apitest.OnSharedStores(t, func(t *testing.T, store storage.Backend) {
		for name, again := range map[string]bool{"gone": false, "anew": true} {
			held := apitest.NewBlockingStore(store, "configmaps/"+name+"/late")
			one := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(held)))
			two := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store})))
			two.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"`+name+`"}}`)
			var got apitest.Response
			var writer sync.WaitGroup
			writer.Go(func() {
				got = one.Do("POST", apitest.NamespacesPath+"/"+name+"/configmaps", apitest.NewConfigMap("late"))
			})
			<-held.Arrived
			began := two.Must(200, "DELETE", apitest.NamespacesPath+"/"+name, nil).ResourceVersion()
			require.Eventually(t, func() bool { return two.Do("GET", apitest.NamespacesPath+"/"+name, nil).Code == 404 }, apitest.Timeout, time.Millisecond)
			code := 404
			if again {
				two.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"`+name+`"}}`)
				code = 201
			}
			close(held.Release)
			writer.Wait()
			assert.Equal(t, code, got.Code, "%s", got.Raw)
			if again {
				two.Must(200, "GET", apitest.NamespacesPath+"/"+name+"/configmaps/late", nil)
				continue
			}
			assert.Empty(t, inNamespace(t, store, name))
			watch := two.Watch("/api/v1/configmaps?watch=1&fieldSelector=metadata.name%3Dlate&resourceVersion=" + began)
			two.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("late"))
			assert.Equal(t, "default", apitest.NestedString(watch.Next().Object, "metadata", "namespace"), "nor was it for a moment")
			two.Must(200, "DELETE", apitest.ConfigMapsPath+"/late", nil)
		}
	})
}

// TestNamespacesThatManyServersFill: one server deletes a namespace while others create objects in it.
// No object remains, and watches report the deletion of each object whose creation was acknowledged.
func TestNamespacesThatManyServersFill(t *testing.T) {
	t.Parallel()
	apitest.OnSharedStores(t, func(t *testing.T, store storage.Backend) {
		var servers []*apitest.Client
		for range 3 {
			servers = append(servers, apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}))))
		}
		for round := range 3 {
			name := fmt.Sprint("n", round)
			servers[0].Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"`+name+`"}}`)
			var writers sync.WaitGroup
			full := make(chan struct{}, 1)
			for i, s := range servers {
				writers.Go(func() {
					for n := range 10_000 {
						got := s.Do("POST", apitest.NamespacesPath+"/"+name+"/secrets", fmt.Sprintf(`{"metadata":{"name":"s%d.%d"}}`, i, n))
						if got.Code != 201 {
							assert.Contains(t, []int{403, 404}, got.Code, "%s", got.Raw)
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
			servers[round].Must(200, "DELETE", apitest.NamespacesPath+"/"+name, nil)
			writers.Wait()
			for _, s := range servers {
				require.Eventually(t, func() bool { return s.Do("GET", apitest.NamespacesPath+"/"+name, nil).Code == 404 }, apitest.Timeout, time.Millisecond)
			}
			assert.Empty(t, inNamespace(t, store, name))
		}
	})
}

// TestAdmissionMayWriteToNamespaceOfObject: admission of an object writes into the namespace of
// the object on each call: it is called once, and the object is stored.
func TestAdmissionMayWriteToNamespaceOfObject(t *testing.T) {
	t.Parallel()
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
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"counted"}}`)
	a.Must(201, "POST", apitest.NamespacesPath+"/counted/configmaps?timeout=5s", apitest.NewConfigMap("c"))
	assert.Equal(t, 1, asked)
	assert.Equal(t, "1", apitest.NestedString(a.Must(200, "GET", apitest.NamespacesPath+"/counted", nil).Body, "metadata", "annotations", "example.com/asked"))
}
