package replicas_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/storage"
)

// deposed is a leader that continues after a pause in which another server became the leader.
type deposed struct {
	*fleet
	ctx    context.Context // of its Reconcile, which would have ended
	client client.Client
}

// depose makes the first of two servers a deposed leader. prepare runs before that.
func depose(t *testing.T, prepare func(a *apitest.Client)) *deposed {
	d := &deposed{fleet: newFleet(t)}
	d.work = func(ctx context.Context, client client.Client, key string) (time.Duration, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if key == "paused" && d.ctx == nil {
			d.ctx, d.client = context.WithoutCancel(ctx), client
		}
		return 0, nil
	}
	d.add()
	d.add()
	a := apitest.InProcess(t, d.servers[0])
	prepare(a)
	a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("paused"))
	synctest.Wait()
	require.NotNil(t, d.ctx)
	d.cuts[0].SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit && c.Key == leaseKey {
			return faultinject.Fault{Err: storage.ErrStopped}
		}
		return faultinject.Fault{}
	})
	time.Sleep(30 * time.Second)
	require.Equal(t, 1, d.leader(testLease, 0, 1))
	return d
}

// request makes an in-process request through the first server, as a controller does.
func (d *deposed) request(method, path, body string) int {
	r, err := http.NewRequestWithContext(d.ctx, method, "http://server"+path, bytes.NewReader([]byte(body)))
	require.NoError(d.t, err)
	r.Header.Set("Content-Type", "application/json")
	switch {
	case method == "PATCH" && bytes.Contains([]byte(path), []byte("fieldManager")):
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	case method == "PATCH":
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := d.servers[0].Conn(auth.User{Name: "root"}).Transport.RoundTrip(r)
	require.NoError(d.t, err)
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// objects returns the records of the store except Leases.
func (d *deposed) objects() map[string]string {
	_, records, err := d.store.Scan(d.t.Context(), "", "", 0)
	require.NoError(d.t, err)
	all := map[string]string{}
	for rec, err := range records {
		require.NoError(d.t, err)
		if !bytes.HasPrefix([]byte(rec.Key), []byte("leases.")) && !bytes.HasPrefix([]byte(rec.Key), []byte("~term/")) {
			all[rec.Key] = string(rec.Value)
		}
	}
	return all
}

// TestDeposedLeaderWritesNothing: no write of a controller of a deposed leader succeeds.
func TestDeposedLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := depose(t, func(a *apitest.Client) {
			a.Must(201, "POST", apitest.PodsPath, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
			apitest.RunPod(a, "r")
			a.Must(201, "POST", apitest.ServicesPath, `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`)
			for _, name := range []string{"x", "y"} {
				a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(name))
			}
		})
		before := d.objects()
		maps := meta.GroupResource{Resource: "configmaps"}
		pods := meta.GroupResource{Resource: "pods"}
		key := func(name string) meta.Key { return meta.Key{Namespace: "default", Name: name} }
		fresh := meta.NewObject(map[string]any{"metadata": map[string]any{"namespace": "default", "generateName": "n-"}})
		label := func(o *meta.Object) error {
			o.Set("yes", "metadata", "labels", "touched")
			return nil
		}
		phase := func(o *meta.Object) error {
			o.Set("Failed", "status", "phase")
			return nil
		}
		for name, client := range map[string]client.Client{"its client": d.client, "another client": d.servers[0].Objects()} {
			ctx := d.ctx
			if name == "its client" {
				ctx = t.Context() // with whatever context
			}
			for what, write := range map[string]func() error{
				"create":       func() error { _, err := client.Create(ctx, maps, fresh); return err },
				"update":       func() error { _, err := client.Update(ctx, maps, key("x"), "", label); return err },
				"status":       func() error { _, err := client.Update(ctx, pods, key("p"), "status", phase); return err },
				"delete":       func() error { return client.Delete(ctx, maps, key("x"), registry.DeleteOptions{}) },
				"delete a pod": func() error { return client.Delete(ctx, pods, key("p"), registry.DeleteOptions{}) },
				"delete what holds an address": func() error {
					return client.Delete(ctx, meta.GroupResource{Resource: "services"}, key("s"), registry.DeleteOptions{})
				},
			} {
				assert.Equal(t, meta.ReasonServiceUnavailable, meta.ReasonOf(write()), "%s by %s", what, name)
			}
		}
		event := `{"metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}`
		for _, r := range [][3]string{
			{"POST", apitest.ConfigMapsPath, `{"metadata":{"name":"z"}}`}, {"PUT", apitest.ConfigMapsPath + "/x", `{"metadata":{"name":"x"},"data":{"a":"b"}}`},
			{"PATCH", apitest.ConfigMapsPath + "/x", `{"data":{"a":"b"}}`}, {"PATCH", apitest.ConfigMapsPath + "/new?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"new"}}`},
			{"PATCH", apitest.PodsPath + "/p/status", `{"status":{"phase":"Failed"}}`}, {"DELETE", apitest.ConfigMapsPath + "/x", ""}, {"DELETE", apitest.ConfigMapsPath, ""},
			{"POST", apitest.PodsPath + "/r/eviction", `{"metadata":{"name":"r"}}`}, {"POST", apitest.PodsPath + "/p/binding", `{"metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}`},
			{"POST", "/api/v1/namespaces/default/events", event}, {"POST", apitest.ServicesPath, `{"metadata":{"name":"t"},"spec":{"ports":[{"port":80}]}}`},
			{"PATCH", apitest.ServicesPath + "/s", `{"spec":{"type":"NodePort"}}`}, {"PUT", "/api/v1/namespaces/default/finalize", `{"metadata":{"name":"default"},"spec":{}}`},
		} {
			assert.Equal(t, 503, d.request(r[0], r[1], r[2]), "%s %s", r[0], r[1])
		}
		assert.Equal(t, before, d.objects())
		assert.Equal(t, 200, d.request("GET", apitest.ConfigMapsPath+"/x", ""))
		assert.Equal(t, 201, d.request("POST", apitest.ConfigMapsPath+"?dryRun=All", `{"metadata":{"name":"z"}}`))
		apitest.InProcess(t, d.servers[0]).Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("z")) // callers of its server write
	})
}

// TestRefusedWriteEndsLeadership: a leader that has not noticed its successor in any other way
// stops when a write is refused.
func TestRefusedWriteEndsLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		refused, ended := make(chan error, 1), make(chan struct{})
		f.work = func(ctx context.Context, client client.Client, key string) (time.Duration, error) {
			if key != "go" {
				return 0, nil
			}
			_, err := client.Create(ctx, meta.GroupResource{Resource: "configmaps"}, meta.NewObject(map[string]any{"metadata": map[string]any{"namespace": "default", "name": "made"}}))
			select {
			case refused <- err:
				<-ctx.Done()
				close(ended)
			default:
			}
			return 0, err
		}
		f.add()
		_, err := f.store.Commit(t.Context(), storage.Write{Key: "~term/" + testLease, Value: []byte("other"), Expect: storage.AnyRevision})
		require.NoError(t, err)
		begun := time.Now()
		apitest.InProcess(t, f.servers[0]).Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("go"))
		assert.Equal(t, meta.ReasonServiceUnavailable, meta.ReasonOf(<-refused))
		<-ended
		assert.Zero(t, time.Since(begun))
		time.Sleep(time.Second) // the Lease is its own still: another term begins
		assert.Equal(t, 0, f.leader(testLease, 0))
		apitest.InProcess(t, f.servers[0]).Must(200, "GET", apitest.ConfigMapsPath+"/made", nil)
		assert.Contains(t, f.logs[0].String(), `msg="write refused: another server leads"`)
	})
}

// TestWriteOfDeposedLeaderFailsAlone: other writers of the same object, which share a commit
// with the deposed leader, are not refused.
func TestWriteOfDeposedLeaderFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := depose(t, func(a *apitest.Client) { a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("x")) })
		d.cuts[0].SetPlan(func(c faultinject.Call) faultinject.Fault {
			return faultinject.Fault{Delay: time.Millisecond}
		})
		a := apitest.InProcess(t, d.servers[0])
		var all sync.WaitGroup
		for i := range 30 {
			all.Go(func() {
				if i%3 == 0 {
					_, err := d.client.Update(d.ctx, meta.GroupResource{Resource: "configmaps"}, meta.Key{Namespace: "default", Name: "x"}, "", func(o *meta.Object) error {
						o.Set("leader", "data", "by")
						return nil
					})
					assert.Equal(t, meta.ReasonServiceUnavailable, meta.ReasonOf(err))
					return
				}
				body, _ := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"n": time.Duration(i).String()}}})
				a.Must(200, "PATCH", apitest.ConfigMapsPath+"/x", string(body), "Content-Type", "application/merge-patch+json")
			})
		}
		all.Wait()
		assert.Nil(t, apitest.Nested(a.Must(200, "GET", apitest.ConfigMapsPath+"/x", nil).Body, "data"))
	})
}

// TestQuotaChargeOfDeposedLeaderIsReturned: the charge for a write of a deposed leader is
// returned, and other writes are not refused.
func TestQuotaChargeOfDeposedLeaderIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := depose(t, func(a *apitest.Client) {
			a.Must(201, "POST", "/api/v1/namespaces/default/resourcequotas", `{"metadata":{"name":"q"},"spec":{"hard":{"count/secrets":"100"}}}`)
		})
		a := apitest.InProcess(t, d.servers[0])
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				_, err := d.client.Create(d.ctx, meta.GroupResource{Resource: "secrets"}, meta.NewObject(map[string]any{"metadata": map[string]any{"namespace": "default", "generateName": "n-"}}))
				assert.Equal(t, meta.ReasonServiceUnavailable, meta.ReasonOf(err))
			})
			all.Go(func() {
				a.Must(201, "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"generateName":"s-"}}`)
			})
		}
		all.Wait()
		time.Sleep(10 * time.Minute)
		assert.Equal(t, "10", apitest.Nested(a.Must(200, "GET", "/api/v1/namespaces/default/resourcequotas/q", nil).Body, "status", "used", "count/secrets"))
	})
}
