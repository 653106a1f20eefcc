package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

const (
	deployments = "/apis/apps/v1/namespaces/default/deployments"
)

func newDeployment(name string) map[string]any {
	return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name}, "spec": map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
		"template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"a": "b"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}},
		},
	}}
}

// TestWritersWithoutVersionGetNoConflict: eight writers of an object without resourceVersion, each with another kind
// of write, get no conflict, and none of their changes is lost.
func TestWritersWithoutVersionGetNoConflict(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 10
	for _, c := range []struct {
		name, method, path, contentType string
		body                            func(w, i int) string
	}{
		{"merge patch", "PATCH", apitest.ConfigMapsPath + "/x", "application/merge-patch+json",
			func(w, i int) string { return fmt.Sprintf(`{"data":{"w%d":"%d"}}`, w, i) }},
		{"json patch", "PATCH", apitest.ConfigMapsPath + "/x", "application/json-patch+json",
			func(w, i int) string { return fmt.Sprintf(`[{"op":"add","path":"/data/w%d","value":"%d"}]`, w, i) }},
		{"strategic patch", "PATCH", apitest.ConfigMapsPath + "/x", "application/strategic-merge-patch+json",
			func(w, i int) string { return fmt.Sprintf(`{"data":{"w%d":"%d"}}`, w, i) }},
		{"apply", "PATCH", apitest.ConfigMapsPath + "/x?fieldManager=w%d", apitest.ApplyPatch,
			func(w, i int) string {
				return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","data":{"w%d":"%d"}}`, w, i)
			}},
		{"put", "PUT", apitest.ConfigMapsPath + "/x", "application/json",
			func(w, i int) string { return fmt.Sprintf(`{"metadata":{"name":"x"},"data":{"w%d":"%d"}}`, w, i) }},
		{"patch of scale", "PATCH", deployments + "/d/scale", "application/merge-patch+json",
			func(w, i int) string { return fmt.Sprintf(`{"spec":{"replicas":%d}}`, w*100+i) }},
		{"put of scale", "PUT", deployments + "/d/scale", "application/json",
			func(w, i int) string {
				return fmt.Sprintf(`{"metadata":{"name":"d","namespace":"default"},"spec":{"replicas":%d}}`, w*100+i)
			}},
		{"patch of status", "PATCH", deployments + "/d/status", "application/merge-patch+json",
			func(w, i int) string { return fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, 1+w*100+i) }},
		{"apply of status", "PATCH", deployments + "/d/status?force=true&fieldManager=w%d", apitest.ApplyPatch,
			func(w, i int) string {
				return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","status":{"conditions":[{"type":"w%d","status":"True","message":"%d"}]}}`, w, i)
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
				a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), apitest.Patient))
				a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x", "keep", "me"))
				a.Must(201, "POST", deployments, newDeployment("d"))
				var all sync.WaitGroup
				var versions sync.Map
				for w := range writers {
					all.Go(func() {
						path := strings.ReplaceAll(c.path, "%d", strconv.Itoa(w))
						for i := range each {
							got := a.Do(c.method, path, c.body(w, i), "Content-Type", c.contentType)
							if assert.Equal(t, 200, got.Code, "%s", got.Raw) {
								_, twice := versions.LoadOrStore(got.ResourceVersion(), true)
								assert.False(t, twice, "two writes have the same resourceVersion")
							}
						}
					})
				}
				all.Wait()
				data, _ := apitest.Nested(a.Must(200, "GET", apitest.ConfigMapsPath+"/x", nil).Body, "data").(map[string]any)
				if strings.HasPrefix(c.path, apitest.ConfigMapsPath) && c.method == "PATCH" {
					assert.Len(t, data, writers+1)
					for w := range writers {
						assert.Equal(t, strconv.Itoa(each-1), data[fmt.Sprint("w", w)])
					}
				}
				if c.name == "apply of status" {
					conditions, _ := apitest.Nested(a.Must(200, "GET", deployments+"/d", nil).Body, "status", "conditions").([]any)
					assert.Len(t, conditions, writers)
				}
			})
		})
	}
}

// TestConcurrentAppliersCreateOneObject: two hundred managers apply different fields of an object that does not exist at first.
func TestConcurrentAppliersCreateOneObject(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		const appliers = 200
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), apitest.Patient))
		var all sync.WaitGroup
		var created atomic.Int32
		for w := range appliers {
			all.Go(func() {
				got := a.Do("PATCH", fmt.Sprintf("%s/x?fieldManager=w%d", apitest.ConfigMapsPath, w),
					fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"w%d":"1"}}`, w), "Content-Type", apitest.ApplyPatch)
				if got.Code == 201 {
					created.Add(1)
					return
				}
				assert.Equal(t, 200, got.Code, "%s", got.Raw)
			})
		}
		all.Wait()
		assert.EqualValues(t, 1, created.Load())
		got := a.Must(200, "GET", apitest.ConfigMapsPath+"/x", nil)
		assert.Len(t, apitest.Nested(got.Body, "data"), appliers)
		assert.Len(t, apitest.Nested(got.Body, "metadata", "managedFields"), appliers)
	})
}

// TestWritersInProcess: clients in the process, such as controllers, increment a counter while other writers remove
// finalizers and write the status.
func TestWritersInProcess(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		const writers, each = 8, 20
		s := servertest.New(t, apitest.WithStorage(store), apitest.Patient)
		a := apitest.InProcess(t, s)
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("n", "v", "0"))
		var all sync.WaitGroup
		for range writers {
			all.Go(func() {
				for range each {
					_, err := s.Objects().Update(t.Context(), configMapsResource, meta.Key{Namespace: "default", Name: "n"}, "", func(o *meta.Object) error {
						n := apitest.Revision(t, o.String("data", "v"))
						o.Set(strconv.Itoa(n+1), "data", "v")
						return nil
					})
					assert.NoError(t, err)
				}
			})
		}
		all.Wait()
		assert.Equal(t, strconv.Itoa(writers*each), apitest.NestedString(a.Must(200, "GET", apitest.ConfigMapsPath+"/n", nil).Body, "data", "v"))
	})
}

var configMapsResource = meta.GroupResource{Resource: "configmaps"}

// TestWritersOfRecreatedObject: concurrent PUTs that create, patches, deletes and deletecollections of a name may get
// a 404, but no conflict.
func TestWritersOfRecreatedObject(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		const events, roles = "/api/v1/namespaces/default/events", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for i := range 10 {
					for _, c := range []struct {
						method, path, contentType, body string
						codes                           []int
					}{
						{"PATCH", apitest.ConfigMapsPath + "/x?force=true&fieldManager=m", apitest.ApplyPatch, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"i":"%d"}}`, i), []int{200, 201}},
						{"PUT", apitest.ConfigMapsPath + "/x", "application/json", fmt.Sprintf(`{"metadata":{"name":"x"},"data":{"i":"%d"}}`, i), []int{200, 404}},
						{"DELETE", apitest.ConfigMapsPath + "/x", "application/json", "", []int{200, 404}},
						{"DELETE", apitest.ConfigMapsPath, "application/json", "", []int{200}},
						{"POST", apitest.ConfigMapsPath, "application/json", `{"metadata":{"generateName":"x"}}`, []int{201}},
						{"PUT", leases + "/l", "application/json", `{"metadata":{"name":"l","annotations":{"i":"1"}}}`, []int{200, 201, 422}},
						{"DELETE", leases + "/l", "application/json", "", []int{200, 404}},
						{"PUT", events + "/e", "application/json", fmt.Sprintf(`{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"count":%d}`, i), []int{200, 201}},
						{"DELETE", events + "/e", "application/json", "", []int{200, 404}},
						{"PUT", roles + "/r", "application/json", fmt.Sprintf(`{"metadata":{"name":"r","labels":{"i":"%d"}},"rules":[]}`, i), []int{200, 201}},
						{"DELETE", roles + "/r", "application/json", "", []int{200, 404}},
					} {
						var body any
						if c.body != "" {
							body = c.body
						}
						got := a.Do(c.method, c.path, body, "Content-Type", c.contentType)
						assert.Contains(t, c.codes, got.Code, "%s %s: %s", c.method, c.path, got.Raw)
					}
				}
			})
		}
		all.Wait()
	})
}

// TestVersionedUpdateRacesDelete: if the object of an update with a resourceVersion is deleted between its read and
// its commit, the update is a 404. If it is replaced, the update is a conflict.
func TestVersionedUpdateRacesDelete(t *testing.T) {
	t.Parallel()
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
	for _, c := range []struct {
		name  string
		code  int
		other func()
	}{
		{"deleted", 404, func() { a.Must(200, "DELETE", apitest.ConfigMapsPath+"/x", nil) }},
		{"replaced", 409, func() {
			a.Must(200, "DELETE", apitest.ConfigMapsPath+"/x", nil)
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
		}},
		{"changed", 409, func() { a.Must(200, "PATCH", apitest.ConfigMapsPath+"/x", `{"data":{"a":"c"}}`) }},
	} {
		for _, method := range []string{"PUT", "PATCH"} {
			a.Do("DELETE", apitest.ConfigMapsPath+"/x", nil)
			cm := a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x", "a", "b")).Body
			hold, held := make(chan struct{}), make(chan struct{})
			var once sync.Once
			store.SetPlan(func(call faultinject.Call) faultinject.Fault {
				first := false
				if call.Op == faultinject.OpCommit {
					once.Do(func() { first = true })
				}
				if first {
					close(held)
					return faultinject.Fault{Wait: hold}
				}
				return faultinject.Fault{}
			})
			got := make(chan apitest.Response, 1)
			apitest.Nested(cm, "metadata").(map[string]any)["labels"] = map[string]any{"l": "m"}
			delete(apitest.Nested(cm, "metadata").(map[string]any), "uid")
			go func() { got <- a.Do(method, apitest.ConfigMapsPath+"/x", cm) }()
			<-held
			c.other()
			close(hold)
			assert.Equal(t, c.code, (<-got).Code, "%s %s", c.name, method)
			store.SetPlan(nil)
		}
	}
}

// admitting is a plugin that calls a function for each update of the ConfigMap x.
func admitting(run func(ctx context.Context, r *admission.Request) error) func(*server.Builder) {
	return func(b *server.Builder) {
		b.Admission = append(b.Admission, admission.Plugin{Name: "test", Mutate: func(ctx context.Context, r *admission.Request) error {
			if r.Operation != admission.Update || r.Name != "x" {
				return nil
			}
			return run(ctx, r)
		}})
	}
}

// TestAdmissionMayWriteAdmittedObject: a plugin that writes the object whose update it admits does not deadlock,
// whether it passes its context to the client or sends a request from outside, like a webhook. Each such write is a
// conflict for the admitted write.
func TestAdmissionMayWriteAdmittedObject(t *testing.T) {
	t.Parallel()
	for _, inside := range []bool{true, false} {
		t.Run(fmt.Sprint("inside=", inside), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *servertest.Server
				s = servertest.New(t, admitting(func(ctx context.Context, r *admission.Request) error {
					if len(r.Old.String("data", "seen")) >= 3 || r.Object.String("data", "seen") != r.Old.String("data", "seen") {
						return nil
					}
					if !inside {
						ctx = context.Background()
					}
					_, err := s.Objects().Update(ctx, configMapsResource, meta.Key{Namespace: "default", Name: "x"}, "", func(o *meta.Object) error {
						o.Set(o.String("data", "seen")+"x", "data", "seen")
						return nil
					})
					return err
				}))
				a := apitest.InProcess(t, s)
				a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
				var all sync.WaitGroup
				for w := range 8 {
					all.Go(func() {
						got := a.Do("PATCH", apitest.ConfigMapsPath+"/x", fmt.Sprintf(`{"data":{"w%d":"1"}}`, w))
						assert.Equal(t, 200, got.Code, "%s", got.Raw)
					})
				}
				all.Wait()
				assert.Len(t, apitest.Nested(a.Must(200, "GET", apitest.ConfigMapsPath+"/x", nil).Body, "data"), 9)
			})
		})
	}
}

// TestHungAdmissionDoesNotBlockOtherWriters: a writer whose admission hangs keeps its slot in the write queue for a
// bounded time, and a queued writer stops waiting when its request ends.
func TestHungAdmissionDoesNotBlockOtherWriters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang, hung := make(chan struct{}), make(chan struct{})
		var attempts atomic.Int32
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), admitting(func(_ context.Context, r *admission.Request) error {
			if r.Object.String("data", "hang") != "" && attempts.Add(1) == 2 {
				close(hung)
				<-hang
			}
			return nil
		})))
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpCommit && strings.Contains(string(c.Writes[0].Value), "hang") && attempts.Load() == 1 {
				return faultinject.Fault{Err: &storage.ConflictError{Key: c.Key}}
			}
			return faultinject.Fault{}
		})
		slow := make(chan apitest.Response, 1)
		go func() { slow <- a.Do("PATCH", apitest.ConfigMapsPath+"/x", `{"data":{"hang":"1"}}`) }()
		<-hung
		a.Must(504, "PATCH", apitest.ConfigMapsPath+"/x?timeout=1s", `{"data":{"t":"0"}}`)
		for i := range 3 {
			a.Must(200, "PATCH", apitest.ConfigMapsPath+"/x", fmt.Sprintf(`{"data":{"t":"%d"}}`, i))
		}
		close(hang)
		assert.Equal(t, 200, (<-slow).Code)
		assert.Equal(t, map[string]any{"hang": "1", "t": "2"}, apitest.Nested(a.Must(200, "GET", apitest.ConfigMapsPath+"/x", nil).Body, "data"))
	})
}

// TestEndlessConflictsEndWithTheRequest: a write that always conflicts ends with its request and
// retries with growing pauses.
func TestEndlessConflictsEndWithTheRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
		var asked atomic.Int32
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op != faultinject.OpCommit || asked.Add(1) > 10_000 {
				return faultinject.Fault{}
			}
			return faultinject.Fault{Err: &storage.ConflictError{Key: c.Key}}
		})
		a.Must(504, "PATCH", apitest.ConfigMapsPath+"/x?timeout=10s", `{"data":{"t":"0"}}`)
		a.Must(504, "DELETE", apitest.ConfigMapsPath+"/x?timeout=10s", nil)
		assert.Less(t, asked.Load(), int32(300))
	})
}

// TestQueuedWritesShareACommit: writes that queue while the store is busy are committed together, each with its own
// resourceVersion and event.
func TestQueuedWritesShareACommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const writers = 40
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), apitest.Patient))
		from := a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x")).ResourceVersion()
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpCommit {
				return faultinject.Fault{Delay: time.Millisecond}
			}
			return faultinject.Fault{}
		})
		before := store.Count(faultinject.OpCommit)
		var all sync.WaitGroup
		var versions sync.Map
		for w := range writers {
			all.Go(func() {
				got := a.Must(200, "PATCH", apitest.ConfigMapsPath+"/x", fmt.Sprintf(`{"data":{"w%d":"1"}}`, w))
				assert.Equal(t, "1", apitest.NestedString(got.Body, "data", fmt.Sprint("w", w)))
				_, twice := versions.LoadOrStore(got.ResourceVersion(), true)
				assert.False(t, twice, "two writes have the same resourceVersion")
			})
		}
		all.Wait()
		// All writers begin at the same time: the first commits its value alone, another one after a conflict as
		// well, and the rest are committed in two sequences.
		assert.Equal(t, writers+1+2, store.Count(faultinject.OpCommit)-before)
		watch := a.Watch(apitest.ConfigMapsPath + "?watch=1&resourceVersion=" + from)
		for range writers {
			_, seen := versions.LoadAndDelete(watch.Next().ResourceVersion())
			assert.True(t, seen)
		}
	})
}

// TestWritesBasedOnFailedCommitStartAgain: a response never depends on an object whose commit
// failed; a write that was based on it starts again.
func TestWritesBasedOnFailedCommitStartAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, method, body, contentType string
		code                            int
	}{
		{"a fault", "PATCH", `[{"op":"remove","path":"/data/keep"},{"op":"add","path":"/data/b","value":"1"}]`, "application/json-patch+json", 200},
		{"a success", "PATCH", `[{"op":"test","path":"/data/a","value":"1"},{"op":"add","path":"/data/b","value":"1"}]`, "application/json-patch+json", 422},
		{"no change", "PATCH", `{"data":{"a":"1"}}`, "application/merge-patch+json", 200},
		{"a deletion", "DELETE", ``, "application/json", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
				a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
				a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x", "keep", "me"))
				var failed atomic.Bool
				store.SetPlan(func(call faultinject.Call) faultinject.Fault {
					if call.Op != faultinject.OpCommit {
						return faultinject.Fault{}
					}
					f := faultinject.Fault{Delay: time.Millisecond}
					if strings.Contains(string(call.Writes[0].Value), `"a":"1"`) && !failed.Swap(true) {
						f = faultinject.Fault{Delay: time.Second, Err: errors.New("disk")}
					}
					return f
				})
				var all sync.WaitGroup
				defer all.Wait()
				for i := range 2 { // the first is committed, the other queues
					all.Go(func() { a.Must(200, "PATCH", apitest.ConfigMapsPath+"/x", fmt.Sprintf(`{"data":{"c%d":"1"}}`, i)) })
				}
				time.Sleep(1500 * time.Microsecond)
				all.Go(func() { a.Must(500, "PATCH", apitest.ConfigMapsPath+"/x", `{"data":{"a":"1","keep":null}}`) })
				time.Sleep(time.Millisecond) // until its commit has begun
				var body any
				if c.body != "" {
					body = c.body
				}
				got := a.Do(c.method, apitest.ConfigMapsPath+"/x", body, "Content-Type", c.contentType)
				assert.True(t, failed.Load())
				assert.Equal(t, c.code, got.Code, "%s", got.Raw)
			})
		})
	}
}

// TestResourceVersionPreconditionSeesPendingWrites: a write with a resourceVersion fails as soon
// as another change of the object is being committed.
func TestResourceVersionPreconditionSeesPendingWrites(t *testing.T) {
	t.Parallel()
	const add = `,{"op":"add","path":"/data/b","value":"1"}]`
	for _, c := range []struct {
		method, contentType, body string // with the resourceVersion
		code                      int
	}{
		{"PATCH", "application/json-patch+json", `[{"op":"test","path":"/metadata/resourceVersion","value":"%s"}` + add, 422},
		{"PATCH", "application/json-patch+json", `[{"op":"replace","path":"/metadata/resourceVersion","value":"%s"}` + add, 409},
		{"PATCH", "application/merge-patch+json", `{"metadata":{"resourceVersion":"%s"},"data":{"b":"1"}}`, 409},
		{"PUT", "application/json", `{"metadata":{"name":"x","resourceVersion":"%s"},"data":{"b":"1"}}`, 409},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
			a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
			store.SetPlan(func(call faultinject.Call) faultinject.Fault {
				if call.Op == faultinject.OpCommit {
					return faultinject.Fault{Delay: 10 * time.Millisecond}
				}
				return faultinject.Fault{}
			})
			var all sync.WaitGroup
			defer all.Wait()
			for i := range 2 { // the first is committed, the other queues
				all.Go(func() { a.Must(200, "PATCH", apitest.ConfigMapsPath+"/x", fmt.Sprintf(`{"data":{"c%d":"1"}}`, i)) })
			}
			time.Sleep(11 * time.Millisecond)
			version := a.Must(200, "GET", apitest.ConfigMapsPath+"/x", nil).ResourceVersion()
			got := a.Do(c.method, apitest.ConfigMapsPath+"/x", fmt.Sprintf(c.body, version), "Content-Type", c.contentType)
			assert.Equal(t, c.code, got.Code, "%s", got.Raw)
		})
	}
}

// TestRequestTimeoutDuringCommit: a writer whose request times out during a shared commit learns
// the result. A writer that allocates does not share a commit: if it times out before its turn,
// the value stays free.
func TestRequestTimeoutDuringCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		const port = `{"spec":{"type":"NodePort","ports":[{"port":1,"nodePort":30002}]}}`
		for _, name := range []string{"x", "y"} {
			a.Must(201, "POST", apitest.ServicesPath, apitest.NewService(name, ""))
		}
		store.SetPlan(func(call faultinject.Call) faultinject.Fault {
			if call.Op == faultinject.OpCommit && strings.HasSuffix(call.Key, "/x") {
				return faultinject.Fault{Delay: 5 * time.Second}
			}
			return faultinject.Fault{}
		})
		var all sync.WaitGroup
		defer all.Wait()
		for i := range 2 { // the first is committed, the other queues
			all.Go(func() {
				a.Must(200, "PATCH", apitest.ServicesPath+"/x", fmt.Sprintf(`{"metadata":{"labels":{"c%d":"1"}}}`, i))
			})
		}
		time.Sleep(5100 * time.Millisecond)
		all.Go(func() {
			a.Must(200, "PATCH", apitest.ServicesPath+"/x?timeout=1s", `{"metadata":{"labels":{"late":"1"}}}`)
		})
		synctest.Wait()
		all.Go(func() { a.Must(504, "PATCH", apitest.ServicesPath+"/x?timeout=1s", port) })
		time.Sleep(2 * time.Second)
		a.Must(200, "PATCH", apitest.ServicesPath+"/y", port)
		all.Wait()
		x := a.Must(200, "GET", apitest.ServicesPath+"/x", nil).Body
		assert.Equal(t, map[string]any{"c0": "1", "c1": "1", "late": "1"}, apitest.Nested(x, "metadata", "labels"))
		assert.NotContains(t, fmt.Sprint(apitest.Nested(x, "spec", "ports")), "30002")
	})
}

// TestPanicOfStoreFailsItsBatch: the requests that share the commit fail, and later writers of the object do not wait
// for it.
func TestPanicOfStoreFailsItsBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x"))
		store.SetPlan(func(call faultinject.Call) faultinject.Fault {
			if call.Op != faultinject.OpCommit {
				return faultinject.Fault{}
			}
			if strings.Contains(string(call.Writes[0].Value), `"bad":"1"`) {
				panic("a fault of the store")
			}
			return faultinject.Fault{Delay: time.Second}
		})
		var all sync.WaitGroup
		defer all.Wait()
		for i := range 2 { // the first is committed, the other queues
			all.Go(func() { a.Must(200, "PATCH", apitest.ConfigMapsPath+"/x", fmt.Sprintf(`{"data":{"c%d":"1"}}`, i)) })
		}
		time.Sleep(1500 * time.Millisecond)
		all.Go(func() { a.Must(500, "PATCH", apitest.ConfigMapsPath+"/x", `{"data":{"bad":"1"}}`) })
		time.Sleep(time.Millisecond)
		a.Must(500, "PATCH", apitest.ConfigMapsPath+"/x", `{"data":{"shared":"1"}}`)
		got := a.Must(200, "PATCH", apitest.ConfigMapsPath+"/x", `{"data":{"good":"1"}}`)
		assert.Equal(t, map[string]any{"c0": "1", "c1": "1", "good": "1"}, apitest.Nested(got.Body, "data"))
	})
}
