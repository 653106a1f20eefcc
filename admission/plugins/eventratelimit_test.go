package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// limits returns the server options for EventRateLimit with the limits of a configuration file.
func limits(t *testing.T, text string) (admission.Options, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: EventRateLimit, configuration: {
		apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [`+text+`]}}]}`), 0o600))
	config, warnings, err := admission.LoadConfig(file, plugins.Table(), names.Kubernetes)
	assert.Empty(t, warnings)
	return admission.Options{Enable: []string{"EventRateLimit"}, Config: config}, err
}

// TestEventRateLimit checks that events above each type of limit are refused, that events that fail
// validation count, and that tokens are refilled with time.
func TestEventRateLimit(t *testing.T) {
	event := func(as, do, name, component, object, want string) step {
		return step{as: as, do: do, want: want, body: `{metadata: {name: ` + name + `, namespace: default},
			source: {component: ` + component + `}, involvedObject: {kind: Pod, name: ` + object + `, namespace: default}, reason: R, type: Normal}`}
	}
	const post = "POST events"
	for kind, steps := range map[string][]step{
		"Server": {
			event("a", post, "a", "x", "p", `201`),
			event("b", post+"?dryRun=All", "b", "x", "p", `201`),
			event("b", post, "a", "x", "p", `409 already exists`),
			event("c", post, "c", "w", "q", `429 limit reached on type Server for key `),
			{as: "a", do: "PATCH events/a", body: `{reason: T}`, want: `429 limit reached on type Server for key `},
			{as: "a", do: "POST /apis/events.k8s.io/v1/namespaces/default/events", want: `429 limit reached on type Server for key `,
				body: `{metadata: {name: d}, eventTime: "2020-01-01T00:00:00.000000Z", reportingController: a, reportingInstance: b, action: A, reason: R, type: Normal, regarding: {kind: Pod, name: p, namespace: default}}`},
			event("c", post+"?dryRun=All", "c", "w", "q", `201`),
			{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `201`},
			{do: "DELETE events/a", want: `200`},
		},
		"Namespace": {
			event("a", post, "a", "x", "p", `201`),
			{as: "a", do: "PATCH events/a", body: `{reason: S}`, want: `200`},
			event("c", post, "c", "z", "r", `429 limit reached on type Namespace for key default`),
			{do: "POST /api/v1/namespaces", body: `{metadata: {name: other}}`, want: `201`},
			{do: "POST /api/v1/namespaces/other/events", body: `{metadata: {name: a}, involvedObject: {kind: Pod, name: p, namespace: other}}`, want: `201`},
		},
		"User": {
			event("a", post, "a", "x", "p", `201`),
			event("a", post, "b", "w", "q", `201`),
			event("a", post, "c", "z", "r", `429 limit reached on type User for key a`),
			event("b", post, "c", "z", "r", `201`),
		},
		"SourceAndObject": {
			event("a", post, "a", "x", "p", `201`),
			event("b", post, "b", "x", "p", `201`),
			event("c", post, "c", "x", "p", `429 limit reached on type SourceAndObject for key x////Pod/default/p//`),
			event("c", post, "d", "x", "q", `201`),
			event("c", post, "e", "w", "p", `201`),
		},
	} {
		t.Run(kind, func(t *testing.T) {
			o, err := limits(t, `{type: `+kind+`, qps: 1, burst: 2}`)
			require.NoError(t, err)
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, o)
				for _, st := range steps {
					st.run(t, s)
				}
				time.Sleep(time.Second)
				event("a", post, "later", "x", "p", `201`).run(t, s)
				if kind != "Server" {
					return
				}
				event("a", post, "evenlater", "x", "p", `429 limit reached on type Server for key `).run(t, s)
			})
		})
	}
}

// TestEventRateLimits checks that a refused event takes no tokens of the other limits, and that the most
// recently used buckets are kept.
func TestEventRateLimits(t *testing.T) {
	o, err := limits(t, `{type: Server, qps: 1, burst: 3}, {type: User, qps: 1, burst: 1, cacheSize: 1}`)
	require.NoError(t, err)
	event := func(as, name, want string) step {
		return step{as: as, do: "POST events", want: want, body: `{metadata: {name: ` + name + `, namespace: default}, involvedObject: {kind: Pod, name: p, namespace: default}}`}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, o)
		for _, st := range []step{
			event("a", "a", `201`),
			event("a", "b", `429 limit reached on type User for key a`),
			event("a", "b", `429 limit reached on type User for key a`),
			event("a", "b", `429 limit reached on type User for key a`),
			event("b", "b", `201`),
			event("a", "c", `201`),
			event("a", "d", `429 [limit reached on type Server for key , limit reached on type User for key a]`),
		} {
			st.run(t, s)
		}
	})
}

// TestEventRateLimitCountsRetryOnce checks that a write that is retried after a conflict counts once.
func TestEventRateLimitCountsRetryOnce(t *testing.T) {
	o, err := limits(t, `{type: User, qps: 1, burst: 3}`)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var s *servertest.Server
		attempts := 0
		s = newServer(t, o, func(b *server.Builder) {
			b.Admission = append(b.Admission, admission.Plugin{
				Name: "Between", Rules: []admission.Rule{{Operations: []admission.Operation{admission.Update}, Resources: []string{"events"}}},
				Validate: func(ctx context.Context, r *admission.Request) error {
					if r.User.Name != "a" || r.Object.String("reason") != "S" {
						return nil
					}
					if attempts++; attempts > 2 {
						return nil
					}
					_, err := s.Objects().Update(ctx, meta.GroupResource{Resource: "events"}, meta.Key{Namespace: "default", Name: "a"}, "", func(o *meta.Object) error {
						o.Set(fmt.Sprint(attempts), "message")
						return nil
					})
					return err
				},
			})
		})
		for _, st := range []step{
			{as: "a", do: "POST events", want: `201`, body: `{metadata: {name: a, namespace: default}, involvedObject: {kind: Pod, name: p, namespace: default}}`},
			{as: "a", do: "PATCH events/a", body: `{reason: S}`, want: `200 {message: "2"}`},
			{as: "a", do: "PATCH events/a", body: `{reason: T}`, want: `200`},
			{as: "a", do: "PATCH events/a", body: `{reason: U}`, want: `429 limit reached on type User for key a`},
		} {
			st.run(t, s)
		}
		assert.Equal(t, 3, attempts)
	})
}

// TestEventRateLimitRefusesRetry checks that a request refused against an object whose commit failed is
// refused again when it is retried.
func TestEventRateLimitRefusesRetry(t *testing.T) {
	o, err := limits(t, `{type: User, qps: 1, burst: 1}`)
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
		s := newServer(t, o, func(b *server.Builder) { b.Storage = store })
		step{as: "a", do: "POST events", want: `201`, body: `{metadata: {name: a, namespace: default}, involvedObject: {kind: Pod, name: p, namespace: default}}`}.run(t, s)
		fails := errors.New("disk")
		store.SetPlan(func(call faultinject.Call) faultinject.Fault {
			switch {
			case call.Op != faultinject.OpCommit:
				return faultinject.Fault{}
			case strings.Contains(string(call.Writes[0].Value), `"reason":"Lost"`):
				return faultinject.Fault{Delay: 100 * time.Millisecond, Err: fails}
			}
			return faultinject.Fault{Delay: time.Millisecond}
		})
		var all sync.WaitGroup
		defer all.Wait()
		for _, as := range []string{"b", "c"} { // a writer commits while the other queues
			all.Go(func() {
				step{as: as, do: "PATCH events/a", body: `{metadata: {labels: {` + as + `: d}}}`, want: `200`}.run(t, s)
			})
		}
		time.Sleep(1500 * time.Microsecond)
		all.Go(func() {
			step{as: "d", do: "PATCH events/a", body: `{reason: Lost}`, want: `500 the store failed`}.run(t, s)
		})
		time.Sleep(time.Millisecond) // its commit has begun
		step{as: "a", do: "PATCH events/a", body: `{reason: Late}`, want: `429 limit reached on type User for key a`}.run(t, s)
	})
}

// TestEventRateLimitConfig checks that invalid limits fail the build of the server.
func TestEventRateLimitConfig(t *testing.T) {
	for text, want := range map[string]string{
		``: "limits: at least one is required",
		`{type: Pod, qps: 0, burst: 1000001, cacheSize: -1}`: `limits[0].type: "Pod" must be Server, Namespace, User or SourceAndObject, ` +
			`limits[0].qps: 0 must be between 1 and 1000000, limits[0].burst: 1000001 must be between 1 and 1000000, limits[0].cacheSize: -1 must be between 0 and 1000000`,
	} {
		o, err := limits(t, text)
		require.NoError(t, err)
		_, err = admission.New(plugins.Table(), o, admission.PluginContext{Names: names.Kubernetes})
		assert.ErrorContains(t, err, "admission plugin EventRateLimit: ")
		assert.ErrorContains(t, err, want)
	}
	_, err := limits(t, `{type: Server, rate: 1}`)
	assert.ErrorContains(t, err, "rate")
}
