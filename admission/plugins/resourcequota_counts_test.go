package plugins_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestResourceQuotaCounts checks that the status of a quota is counted when the quota is new or changed, and
// when a counted object changes or is deleted.
func TestResourceQuotaCounts(t *testing.T) {
	s := newServer(t, admission.Options{})
	settled := func(steps ...step) {
		t.Helper()
		for _, st := range steps {
			runSteps(t, s, st)
			s.Settle()
		}
	}
	settled(
		step{do: "POST configmaps", body: `{metadata: {name: a}}`, want: `201`},
		step{do: "POST pods", body: podWith("a", `requests: {cpu: 100m}`), want: `201`},
		step{do: "POST services", body: `{metadata: {name: a}, spec: {type: NodePort, ports: [{port: 80}]}}`, want: `201`},
		step{do: "POST resourcequotas", body: quotaOf("q", `pods: 1, count/pods: 5, cpu: 1, count/configmaps: 1, services.nodeports: 2, count/widgets.example.com: 1`, ``), want: `201`},
		step{do: "GET resourcequotas/q", want: `200 {status: {
			hard: {pods: "1", count/pods: "5", cpu: "1", count/configmaps: "1", services.nodeports: "2", count/widgets.example.com: "1"},
			used: {pods: "1", count/pods: "1", cpu: 100m, count/configmaps: "1", services.nodeports: "1", count/widgets.example.com: "0"}}}`},
		step{do: "PATCH pods/a/status", body: `{status: {phase: Failed}}`, want: `200`},
		step{do: "GET resourcequotas/q", want: `200 {status: {used: {pods: "0", count/pods: "1", cpu: "0"}}}`},
		step{do: "POST pods", body: podWith("b", `requests: {cpu: 1}`), want: `201`},
		step{do: "POST pods", body: podWith("c", `requests: {cpu: 1}`), want: `403 exceeded quota: q, requested: cpu=1,pods=1, used: cpu=1,pods=1, limited: cpu=1,pods=1`},
		step{do: "DELETE pods/b", want: `200`},
		step{do: "POST pods", body: podWith("c", `requests: {cpu: 1}`), want: `201`},
		step{do: "DELETE configmaps/a", want: `200`},
		step{do: "POST configmaps", body: `{metadata: {name: b}}`, want: `201`},
		step{do: "PATCH services/a", body: `{spec: {type: ClusterIP, ports: [{port: 80, nodePort: null}]}}`, want: `200`},
		step{do: "GET resourcequotas/q", want: `200 {status: {used: {pods: "1", count/pods: "2", cpu: "1", count/configmaps: "1", services.nodeports: "0"}}}`},
		step{do: "PATCH resourcequotas/q", body: `{spec: {hard: {pods: null, cpu: null, count/pods: null, services.nodeports: null, services: 3, count/configmaps: 0}}}`, want: `200`},
		step{do: "GET resourcequotas/q", want: `200 {status: {hard: {pods: null, cpu: null, services: "3", count/configmaps: "0"}, used: {pods: null, services: "1", count/configmaps: "1"}}}`},
		step{do: "POST resourcequotas", body: quotaOf("r", `pods: 9`, `, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: DoesNotExist}]}`), want: `201`},
		step{do: "GET resourcequotas/r", want: `200 {status: {used: {pods: "1"}}}`},
		step{do: "PATCH resourcequotas/r", body: `{spec: {scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: Exists}]}}}`, want: `200`},
		step{do: "GET resourcequotas/r", want: `200 {status: {used: {pods: "0"}}}`},
	)
	runSteps(t, s, step{do: "POST configmaps", body: `{metadata: {name: c}}`, want: `403 exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=0`})
}

// TestResourceQuotaDisabled checks that nothing is counted, and no status written, if plugin and controller
// are off.
func TestResourceQuotaDisabled(t *testing.T) {
	s := servertest.New(t, func(b *server.Builder) { b.AdmissionOptions.Disable = []string{"ResourceQuota"} })
	c := s.Objects()
	bound(t, c, "q", 0)
	_, err := c.Create(t.Context(), configMaps, configMap("a"))
	require.NoError(t, err)
	s.Settle()
	assert.Empty(t, used(t, c, "q"))
}

// TestResourceQuotaOfDeletedNamespace checks that a namespace with a quota can be deleted.
func TestResourceQuotaOfDeletedNamespace(t *testing.T) {
	s := servertest.New(t)
	c, namespaces := s.Objects(), meta.GroupResource{Resource: "namespaces"}
	_, err := c.Create(t.Context(), namespaces, meta.NewObject(map[string]any{"metadata": map[string]any{"name": "team"}}))
	require.NoError(t, err)
	_, err = c.Create(t.Context(), resourceQuotas, meta.NewObject(map[string]any{
		"metadata": map[string]any{"name": "q", "namespace": "team"}, "spec": map[string]any{"hard": map[string]any{"configmaps": "5"}},
	}))
	require.NoError(t, err)
	for i := range 5 {
		o := configMap(fmt.Sprint(i))
		o.SetNamespace("team")
		_, err = c.Create(t.Context(), configMaps, o)
		require.NoError(t, err)
	}
	require.NoError(t, c.Delete(t.Context(), namespaces, meta.Key{Name: "team"}, registry.DeleteOptions{}))
	s.Settle()
	_, err = c.Get(t.Context(), namespaces, meta.Key{Name: "team"})
	assert.True(t, meta.IsNotFound(err), err)
}

// limiting returns the configuration of the plugin in a file, with the given limitedResources.
func limiting(t *testing.T, version, kind, limited string) map[string]any {
	path := filepath.Join(t.TempDir(), "admission.yaml")
	file := "{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: ResourceQuota, configuration: {apiVersion: " + version + ", kind: " + kind + ", limitedResources: " + limited + "}}]}"
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	config, _, err := admission.LoadConfig(path, plugins.Table(), names.Kubernetes)
	require.NoError(t, err)
	return config
}

// TestLimitedResources checks that limited resources cannot be created without a quota that covers them.
func TestLimitedResources(t *testing.T) {
	config := limiting(t, "apiserver.config.k8s.io/v1", "ResourceQuotaConfiguration", `[
		{resource: persistentvolumeclaims, matchContains: [gold.storageclass.storage.k8s.io]},
		{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}]}]`)
	assert.Equal(t, config, limiting(t, "resourcequota.admission.k8s.io/v1beta1", "Configuration", `[
		{resource: persistentvolumeclaims, matchContains: [gold.storageclass.storage.k8s.io]},
		{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}]}]`))
	s := newServer(t, admission.Options{Config: config})
	claim := `{metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], storageClassName: gold, resources: {requests: {storage: 1Gi}}}}`
	pod := `{metadata: {name: a}, spec: {priorityClassName: high, containers: [{name: c, image: i}]}}`
	runSteps(t, s,
		step{do: "POST /apis/scheduling.k8s.io/v1/priorityclasses", body: `{metadata: {name: high}, value: 9}`, want: `201`},
		step{do: "POST persistentvolumeclaims", body: claim, want: `403 insufficient quota to consume: gold.storageclass.storage.k8s.io/persistentvolumeclaims,gold.storageclass.storage.k8s.io/requests.storage`},
		step{do: "POST resourcequotas", body: quotaOf("q", `gold.storageclass.storage.k8s.io/requests.storage: 1Gi, pods: 5`, ``), want: `201`},
		step{do: "POST persistentvolumeclaims", body: claim, want: `403 insufficient quota to consume: gold.storageclass.storage.k8s.io/persistentvolumeclaims`},
		step{do: "PATCH resourcequotas/q", body: `{spec: {hard: {gold.storageclass.storage.k8s.io/persistentvolumeclaims: 1}}}`, want: `200`},
		step{do: "POST persistentvolumeclaims", body: claim, want: `201`},
		step{do: "POST pods", body: pod, want: `403 insufficient quota to match these scopes: [{PriorityClass In [high]}]`},
		step{do: "POST resourcequotas", body: quotaOf("high", `pods: 1`, `, scopeSelector: {matchExpressions: [{scopeName: PriorityClass, operator: In, values: [high]}]}`), want: `201`},
		step{do: "POST pods", body: pod, want: `201`},
	)
}

// TestInvalidQuotaConfig checks that an invalid configuration fails the build of the server.
func TestInvalidQuotaConfig(t *testing.T) {
	for want, config := range map[string]plugins.QuotaConfig{
		"limitedResources[0]: resource is required":            {LimitedResources: []plugins.LimitedResource{{APIGroup: "apps"}}},
		"limitedResources[0]: invalid scope {Terminating  []}": {LimitedResources: []plugins.LimitedResource{{Resource: "pods", MatchScopes: []plugins.QuotaScope{{ScopeName: "Terminating"}}}}},
	} {
		b := &server.Builder{Authorizer: auth.AllowAll, AdmissionOptions: admission.Options{Config: map[string]any{"ResourceQuota": config}}}
		_, err := b.Build(t.Context())
		assert.EqualError(t, err, "admission plugin ResourceQuota: "+want)
	}
}
