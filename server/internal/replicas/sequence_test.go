package replicas_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// disk is a kind with a limit on the total size in each namespace.
type disk struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Gigabytes       int64 `json:"gigabytes" schema:"min=1"`
}

const diskPath = "/apis/example.com/v1/namespaces/%s/disks"

var disks = meta.GroupResource{Group: "example.com", Resource: "disks"}

const diskQuota = 100 // gigabytes in a namespace

// withDisks serves disks over a store. A plugin enforces diskQuota with the sum over List.
func withDisks(store storage.Backend) func(*server.Builder) {
	return func(b *server.Builder) {
		b.Storage = store
		b.Register(registry.Of(registry.Definition[disk]{Group: disks.Group, Version: "v1", Kind: "Disk"}))
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "DiskQuota",
			Rules: []admission.Rule{{
				Operations: []admission.Operation{admission.Create, admission.Update}, Groups: []string{disks.Group}, Resources: []string{"disks"},
			}},
			Validate: checkDisks,
		})
	}
}

func checkDisks(ctx context.Context, r *admission.Request) error {
	if err := r.Serialize(ctx, meta.Key{Namespace: r.Namespace, Name: "disks"}); err != nil {
		return err
	}
	sum, err := sumDisks(ctx, r)
	if err == nil && sum > diskQuota {
		err = fmt.Errorf("%d GB exceed the quota", sum)
	}
	return err
}

// sumDisks returns the total size of the disks of the namespace after the request.
func sumDisks(ctx context.Context, r *admission.Request) (int64, error) {
	list, err := r.Server.List(ctx, disks.Group, disks.Resource, r.Namespace)
	sum := r.Object.Int("gigabytes")
	for _, o := range list {
		if o.Name() != r.Name {
			sum += o.Int("gigabytes")
		}
	}
	return sum, err
}

// storedDisks returns the total size of the disks of a namespace, in gigabytes.
func storedDisks(t *testing.T, s *servertest.Server, namespace string) (sum int64) {
	t.Helper()
	list, err := s.Objects().List(t.Context(), disks, namespace)
	require.NoError(t, err)
	for _, o := range list {
		sum += o.Int("gigabytes")
	}
	return sum
}

// TestSerializedSumOfServers has 16 writers at two servers over one store create, grow and
// delete disks. Their sum never exceeds the quota, and reaches it.
func TestSerializedSumOfServers(t *testing.T) {
	t.Parallel()
	store := apitest.KeepOpen{Backend: memstore.New(memstore.Options{})}
	servers := []*servertest.Server{servertest.New(t, withDisks(store)), servertest.New(t, withDisks(store))}
	apis := []*apitest.Client{apitest.InProcess(t, servers[0]), apitest.InProcess(t, servers[1])}
	path := fmt.Sprintf(diskPath, "default")
	body := func(name string, size int) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"gigabytes":%d}`, name, size)
	}

	codes := atOnce(16, func(i int) int { return apis[i%2].Do("POST", path, body(fmt.Sprint("d", i), 10)).Code })
	assert.Equal(t, map[int]int{201: 10, 403: 6}, codes)
	assert.EqualValues(t, diskQuota, storedDisks(t, servers[0], "default"))

	apis[0].Must(200, "DELETE", path, nil)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			a, name := apis[i%2], fmt.Sprint("e", i)
			for range 5 {
				a.Do("POST", path, body(name, 5))
				a.Do("PUT", path+"/"+name, body(name, 10))
				assert.LessOrEqual(t, storedDisks(t, servers[i%2], "default"), int64(diskQuota))
				a.Do("DELETE", path+"/"+name, "")
			}
			a.Do("POST", path, body(name, 5))
			a.Do("PUT", path+"/"+name, body(name, 20))
		})
	}
	all.Wait()
	assert.LessOrEqual(t, storedDisks(t, servers[0], "default"), int64(diskQuota))
	assert.Greater(t, storedDisks(t, servers[1], "default"), int64(diskQuota-20))
}

// TestSequencesAreIndependent: sequences of different names and namespaces are independent, a
// write may be part of several, and a dry run is part of none.
func TestSequencesAreIndependent(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	attempts := 0
	var between func() // another write, after the plugin has joined its sequences
	s := servertest.New(t, func(b *server.Builder) {
		b.Storage = apitest.KeepOpen{Backend: store}
		b.Admission = append(b.Admission, admission.Plugin{
			Name: "Steps", Rules: []admission.Rule{{Operations: []admission.Operation{admission.Create}, Resources: []string{"configmaps"}}},
			Validate: func(ctx context.Context, r *admission.Request) error {
				for _, name := range strings.Fields(r.Object.String("data", "in")) {
					sequence := meta.Key{Namespace: r.Namespace, Name: name}
					if name == "everywhere/" {
						sequence.Namespace = ""
					}
					if err := r.Serialize(ctx, sequence); err != nil {
						return err
					}
				}
				if r.Name == "first" {
					attempts++
					then := between
					if between = nil; then != nil {
						then()
					}
				}
				return nil
			},
		})
	})
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.NamespacesPath, `{"metadata":{"name":"other"}}`)
	body := func(name, in string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"in":%q}}`, name, in)
	}
	for i, c := range []struct {
		first, namespace, query, second string
		attempts                        int
	}{
		{"a a", "default", "", "a", 2},
		{"a", "default", "", "b", 1},
		{"a", "other", "", "a", 1},
		{"a b everywhere/", "other", "", "everywhere/", 2},
		{"a b", "default", "", "b", 2},
		{"a", "default", "?dryRun=All", "a", 1},
	} {
		attempts = 0
		between = func() { // in a goroutine of its own, as another client
			a.Must(201, "POST", apitest.NamespacesPath+"/"+c.namespace+"/configmaps"+c.query, body(fmt.Sprint("second-", i), c.second))
		}
		a.Must(201, "POST", apitest.NamespacesPath+"/default/configmaps", body("first", c.first))
		assert.Equal(t, c.attempts, attempts, "%d", i)
		a.Must(200, "DELETE", apitest.NamespacesPath+"/default/configmaps/first", nil)
	}
	assert.ElementsMatch(t, []string{"~sequence/:everywhere%2F", "~sequence/default:a", "~sequence/default:b", "~sequence/other:a"},
		keysOf(t, store, resource.SequencePrefix))
}

// TestSequenceRecordsAreRemovedWithTheirNamespace: the record of a sequence is removed some time
// after its namespace, and not before.
func TestSequenceRecordsAreRemovedWithTheirNamespace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		s := servertest.New(t, withDisks(apitest.KeepOpen{Backend: store}))
		a := apitest.InProcess(t, s)
		for _, name := range []string{"stays", "goes"} {
			a.Must(201, "POST", apitest.NamespacesPath, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
			a.Must(201, "POST", fmt.Sprintf(diskPath, name), `{"metadata":{"name":"a"},"gigabytes":1}`)
		}
		require.Len(t, keysOf(t, store, resource.SequencePrefix), 2)
		a.Must(200, "DELETE", apitest.NamespacesPath+"/goes", nil)
		s.Settle()
		time.Sleep(2 * time.Hour)
		s.Settle()
		assert.Equal(t, []string{"~sequence/stays:disks"}, keysOf(t, store, resource.SequencePrefix))
	})
}
