package webhook_test

import (
	"encoding/base64"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/webhook"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/testcerts"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

// TestConfigurationTakesEffect checks that a configuration applies to every request that begins after the
// write of the configuration was acknowledged, with many concurrent writers.
func TestConfigurationTakesEffect(t *testing.T) {
	k := newKit(t)
	h := k.serve(says(`{allowed: false, status: {code: 403}}`))
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					code, answer := k.do("POST configmaps", fmt.Sprintf("metadata: {name: x%d-%d}", i, n))
					assert.Contains(t, []int{201, 403}, code, answer.String("message"))
				}
			}
		})
	}
	for _, sort := range []string{"mutating", "validating"} {
		for range 8 {
			k.register(sort, "new", h, "{}")
			code, _ := k.do("POST configmaps?dryRun=All", "metadata: {name: refused}")
			assert.Equal(t, 403, code)
			k.unregister(sort, "new")
			code, _ = k.do("POST configmaps?dryRun=All", "metadata: {name: passed}")
			assert.Equal(t, 201, code)
		}
	}
	close(stop)
	all.Wait()
}

// forgetful is a Client whose feeds lose history on request.
type forgetful struct {
	*testclient.Client
	lost atomic.Bool
}

type forgetfulFeed struct {
	client.Feed
	of    *forgetful
	types []meta.GroupResource
}

func (c *forgetful) Feed(r ...meta.GroupResource) client.Feed {
	return &forgetfulFeed{c.Client.Feed(r...), c, r}
}

func (f *forgetfulFeed) Changes() (changes iter.Seq[client.Event], reset bool) {
	changes, reset = f.Feed.Changes()
	if f.of.lost.Swap(false) {
		changes, _ = f.of.Client.Feed(f.types...).Changes()
		return changes, true
	}
	return changes, reset
}

// TestConnectionsEnd checks that the connections of a deleted webhook are closed, after calls in flight have
// completed.
func TestConnectionsEnd(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprintf("history lost %v", lost), func(t *testing.T) {
			client := &forgetful{Client: &testclient.Client{}}
			chain, err := admission.New([]admission.Plugin{webhook.Validating()}, admission.Options{}, admission.PluginContext{
				Names: names.Kubernetes, Client: client, Type: func(meta.GroupResource) *registry.Type { return &registry.Type{} },
			})
			require.NoError(t, err)
			defer chain.Close()
			write := func(name string) error {
				return chain.Validate(t.Context(), &admission.Request{Operation: admission.Delete, Name: name,
					Resource:        meta.GroupVersionResource{Version: "v1", Resource: "nodes"},
					RequestResource: meta.GroupVersionResource{Version: "v1", Resource: "nodes"}})
			}

			began, goOn := make(chan struct{}), make(chan struct{})
			k := &kit{nil, t, testcerts.New(t, "webhooks", nil)}
			h := k.serve(func(w http.ResponseWriter, review *meta.Object) {
				if review.String("request", "name") == "slow" {
					close(began)
					<-goOn
				}
				respond(w, review, "{allowed: true}")
			})
			configurations := meta.GroupResource{Group: "admissionregistration.k8s.io", Resource: "validatingwebhookconfigurations"}
			_, err = client.Create(t.Context(), configurations, meta.NewObject(map[string]any{
				"metadata": map[string]any{"name": "c"},
				"webhooks": []any{map[string]any{
					"name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
					"clientConfig": map[string]any{"url": h.URL, "caBundle": base64.StdEncoding.EncodeToString(k.authority.PEM())},
					"rules":        []any{map[string]any{"operations": []any{"*"}, "apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}}},
				}},
			}))
			require.NoError(t, err)

			ended := make(chan error)
			go func() { ended <- write("slow") }()
			<-began
			require.NoError(t, write("quick"), "over a second connection")
			require.NoError(t, client.Delete(t.Context(), configurations, meta.Key{Name: "c"}, registry.DeleteOptions{}))
			client.lost.Store(lost)
			require.NoError(t, write("after"), "the webhook was removed")
			<-h.closed
			close(goOn)
			require.NoError(t, <-ended)
			<-h.closed
			assert.Len(t, h.reviews(), 2)
		})
	}
}
