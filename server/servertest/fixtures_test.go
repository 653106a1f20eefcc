package servertest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/servertest"
)

// tenants is a definition as kubectl get returns it, with its status.
const tenants = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tenants.example.com, resourceVersion: "5", uid: abc}
spec:
  group: example.com
  names: {kind: Tenant, plural: tenants, singular: tenant, listKind: TenantList}
  scope: Cluster
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
status:
  acceptedNames: {kind: Tenant, plural: tenants, singular: tenant, listKind: TenantList}
  conditions: [{type: Established, status: "True", reason: x, message: x, lastTransitionTime: "2026-01-01T00:00:00Z"}]
  storedVersions: [v1]
`

func fixtures(text string) fstest.MapFS { return fstest.MapFS{"a.yaml": {Data: []byte(text)}} }

// TestLoadBesideControllers checks objects that controllers write at the same time.
func TestLoadBesideControllers(t *testing.T) {
	t.Parallel()
	for range 10 {
		s := servertest.New(t)
		s.Load(fixtures(tenants))
		s.Load(fixtures(tenants))
	}
}

// TestLoadOwnedNamespace checks that a namespace is loaded after its owner and the definition of the owner,
// and before its objects.
func TestLoadOwnedNamespace(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	s.Load(fixtures(`
apiVersion: v1
kind: Namespace
metadata: {name: blue, ownerReferences: [{apiVersion: example.com/v1, kind: Tenant, name: big, uid: "1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: blue}
---
apiVersion: example.com/v1
kind: Tenant
metadata: {name: big, uid: "1"}
---` + tenants))
	_, err := s.Objects().Get(t.Context(), configMaps, meta.Key{Namespace: "blue", Name: "a"})
	require.NoError(t, err)
}

// TestLoadFindsOwners checks owners that an earlier call loaded, and the error for a missing owner.
func TestLoadFindsOwners(t *testing.T) {
	t.Parallel()
	const owned = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: owner, uid: "1"}]}
`
	s := servertest.New(t)
	s.Load(fixtures(`{apiVersion: v1, kind: ConfigMap, metadata: {name: owner, uid: "1"}}`))
	s.Load(fixtures(owned))
	assert.Equal(t, 2, count(t, s))

	message := ""
	test(func(t testing.TB) {
		defer func() { message = fmt.Sprint(recover()) }()
		servertest.New(t).Load(fixtures(owned))
	})
	assert.Equal(t, "loading ConfigMap a: deleted by the garbage collector: its owner ConfigMap owner is neither in the files nor on the server", message)
}

// TestLoadDeletesNothingElse checks that loading a terminating object with generateName deletes only that
// object.
func TestLoadDeletesNothingElse(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	create(t, s, "other", "v")
	s.Load(fixtures(`{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-, deletionTimestamp: "2026-01-01T00:00:00Z"}}`))
	_, err := s.Objects().Get(t.Context(), configMaps, meta.Key{Namespace: "default", Name: "other"})
	require.NoError(t, err)
	assert.Equal(t, 1, count(t, s))
}

// TestRecorderHasRoom checks that requests that no rule matches take no room.
func TestRecorderHasRoom(t *testing.T) {
	t.Parallel()
	s := servertest.New(t)
	r := s.Record(servertest.On("create", "configmaps"))
	for range 10_001 {
		send(t, t.Context(), s.Client(), "GET", s.Host()+maps+"/a", "").Body.Close()
	}
	create(t, s, "a", "v")
	assert.Equal(t, "system:anonymous create configmaps default/a → 201\n", r.String())
}

// TestRecorderKeepsNoBodies checks that a Recorder keeps neither request bodies nor writers.
func TestRecorderKeepsNoBodies(t *testing.T) {
	s := servertest.New(t)
	r := s.Record()
	memory := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const n, size = 300, 50_000
	before := memory()
	for range n {
		body := `{"metadata":{"name":"a"},"data":{"x":"` + strings.Repeat("x", size) + `"}}`
		send(t, t.Context(), s.Client(), "POST", s.Host()+maps+"?dryRun=All", body).Body.Close()
	}
	assert.Less(t, memory()-before, n*size/3)
	assert.Equal(t, n, strings.Count(r.String(), "create configmaps default/a → "))
}
