package server_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// annotated is an auditor, and the trail of every request, that records annotations.
type annotated struct {
	loud // for the methods that do nothing
	mu   sync.Mutex
	seen map[string]string
}

func (a *annotated) Begin(*http.Request, string, auth.Attributes) auth.Trail { return a }
func (a *annotated) Complete(auth.Outcome)                                   {}
func (a *annotated) Annotate(key, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen[key] = value
}

func (a *annotated) take() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]string{}
	for key, value := range a.seen {
		if strings.HasSuffix(key, "/deprecated") || strings.HasSuffix(key, "/removed-release") {
			out[key] = value
		}
	}
	a.seen = map[string]string{}
	return out
}

// TestDeprecationSignals requests deprecated versions: the response has a warning, the audit record
// has an annotation, and a metric names the release that removes the version, if it is known.
func TestDeprecationSignals(t *testing.T) {
	for _, profile := range []names.Profile{names.Kubernetes, names.Orch} {
		trail := &annotated{seen: map[string]string{}}
		a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) {
			b.Names, b.Audit, b.Release = profile, trail, "1.21"
			b.Register(registry.Of(registry.Definition[apitest.Site]{
				Group: "example.com", Version: "v1",
				Versions: []registry.VersionOf[apitest.Site]{
					registry.Spoke[apitest.Site, apitest.Site]{Version: "v1beta1", Lifetime: registry.Lifetime{Deprecated: "1.20", Removed: "1.30"},
						Replacement: meta.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}},
					registry.Spoke[apitest.Site, apitest.Site]{Version: "v1beta2", Lifetime: registry.Lifetime{Deprecated: "1.22", Removed: "1.30"}},
					registry.Spoke[apitest.Site, apitest.Site]{Version: "v1alpha1", Deprecated: "no more of this"},
				},
			}))
		}))
		a.Must(201, "POST", "/apis/"+profile.Group(wellknown.GroupExtensions)+"/v1/customresourcedefinitions", `{"metadata":{"name":"sheets.example.org"},
			"spec":{"group":"example.org","scope":"Namespaced","names":{"plural":"sheets","kind":"Sheet"},"versions":[
			{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
			{"name":"v1beta1","served":true,"storage":false,"deprecated":true,"schema":{"openAPIV3Schema":{"type":"object"}}},
			{"name":"v1beta2","served":true,"storage":false,"deprecated":true,"deprecationWarning":"go on","schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
		for a.Do("GET", "/apis/example.org/v1/sheets", nil).Code != 200 {
			a.Must(200, "GET", "/readyz", nil)
		}
		trail.take()
		rbac := profile.Group(wellknown.GroupRBAC)
		for _, c := range []struct{ group, version, resource, warning, removed string }{
			{rbac, "v1beta1", "clusterroles", rbac + "/v1beta1 ClusterRole is deprecated in v1.17+, unavailable in v1.22+; use " + rbac + "/v1 ClusterRole", "1.22"},
			{rbac, "v1", "clusterroles", "", ""},
			{"batch", "v1beta1", "cronjobs", "batch/v1beta1 CronJob is deprecated in v1.21+, unavailable in v1.25+; use batch/v1 CronJob", "1.25"},
			{"autoscaling", "v2beta1", "horizontalpodautoscalers", "", ""}, // deprecated later than Release
			{"example.com", "v1beta1", "sites", "example.com/v1beta1 Site is deprecated in v1.20+, unavailable in v1.30+; use example.com/v1 Site", "1.30"},
			{"example.com", "v1beta2", "sites", "", ""},
			{"example.com", "v1alpha1", "sites", "no more of this", ""},
			{"example.org", "v1beta1", "sheets", "example.org/v1beta1 Sheet is deprecated; use example.org/v1 Sheet", ""},
			{"example.org", "v1beta2", "sheets", "go on", ""},
		} {
			got := a.Must(200, "GET", "/apis/"+c.group+"/"+c.version+"/"+c.resource, nil)
			want, metric := map[string]string{}, `apiserver_requested_deprecated_apis{group="`+c.group+`",removed_release="`+c.removed+`",resource="`+c.resource+`",subresource="",version="`+c.version+`"} 1`
			annotations := trail.take()
			metrics := string(a.Must(200, "GET", "/metrics", nil).Raw)
			if c.warning == "" {
				assert.Empty(t, got.Header.Get("Warning"), c)
				assert.NotContains(t, metrics, metric)
			} else {
				want[profile.Wire(wellknown.Deprecated)] = "true"
				assert.Equal(t, `299 - "`+c.warning+`"`, got.Header.Get("Warning"))
				assert.Contains(t, metrics, metric)
			}
			if c.removed != "" {
				want[profile.Wire(wellknown.RemovedRelease)] = c.removed
			}
			assert.Equal(t, want, annotations, c)
		}
	}
}
