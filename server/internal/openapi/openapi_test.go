package openapi

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// catalog compiles kinds for the Kubernetes names.
func catalog(t testing.TB, kinds ...*registry.Kind) *resource.State {
	t.Helper()
	var c resource.Catalog
	for _, k := range kinds {
		compiled, err := resource.Compile(k, names.Kubernetes)
		require.NoError(t, err)
		c.Put(compiled)
	}
	return c.Now()
}

func info(s *resource.State) Info {
	return Info{Title: "Kubernetes", Version: "v1.32.0", Names: names.Kubernetes, Docs: docsOf(s.Types())}
}

// parse decodes a document like a client.
func parse(t testing.TB, d *Document) map[string]any {
	t.Helper()
	var tree map[string]any
	require.NoError(t, json.Unmarshal(d.JSON().Bytes(), &tree))
	return tree
}

func at(tree any, path ...string) any {
	for _, p := range path {
		m, _ := tree.(map[string]any)
		tree = m[p]
	}
	return tree
}

// walk visits every value of a document.
func walk(v any, visit func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		visit(v)
		for _, e := range v {
			walk(e, visit)
		}
	case []any:
		for _, e := range v {
			walk(e, visit)
		}
	}
}

// allDocuments returns all documents of the built-in kinds.
func allDocuments(t testing.TB) map[string]*Document {
	s := catalog(t, builtin.Kinds()...)
	docs := map[string]*Document{"v2": V2(s.Types(), info(s))}
	for gv, versions := range servedVersions(s.Types()) {
		docs["v3 "+gv.String()] = V3(gv, versions, info(s))
	}
	return docs
}

func TestReferencesResolve(t *testing.T) {
	for name, d := range allDocuments(t) {
		tree := parse(t, d)
		count := 0
		walk(tree, func(m map[string]any) {
			ref, ok := m["$ref"].(string)
			if !ok {
				return
			}
			count++
			assert.NotNil(t, at(tree, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...), "%s: %s", name, ref)
			if !strings.HasPrefix(name, "v2") {
				assert.Len(t, m, 1, "%s: version 3 allows nothing beside %s", name, ref)
			}
		})
		assert.Greater(t, count, 10, name)
	}
}

func TestOperationsAreComplete(t *testing.T) {
	ids := map[string]string{}
	for path, item := range parse(t, allDocuments(t)["v2"])["paths"].(map[string]any) {
		for method, op := range item.(map[string]any) {
			if method == "parameters" {
				continue
			}
			id, _ := at(op, "operationId").(string)
			require.NotEmpty(t, id, "%s %s", method, path)
			assert.Empty(t, ids[id], "%s of %s %s is not unique", id, method, path)
			ids[id] = path
			assert.NotEmpty(t, at(op, "responses"), id)
			if !strings.HasSuffix(path, "/") {
				assert.NotEmpty(t, at(op, "x-kubernetes-action"), id)
				assert.NotEmpty(t, at(op, "x-kubernetes-group-version-kind", "kind"), id)
			}
		}
	}
	for id, path := range map[string]string{
		"listCoreV1ConfigMapForAllNamespaces":         "/api/v1/configmaps",
		"listCoreV1NamespacedConfigMap":               "/api/v1/namespaces/{namespace}/configmaps",
		"deleteCoreV1CollectionNamespacedConfigMap":   "/api/v1/namespaces/{namespace}/configmaps",
		"readCoreV1NamespacedConfigMap":               "/api/v1/namespaces/{namespace}/configmaps/{name}",
		"patchCoreV1NamespaceStatus":                  "/api/v1/namespaces/{name}/status",
		"replaceRbacAuthorizationV1ClusterRole":       "/apis/rbac.authorization.k8s.io/v1/clusterroles/{name}",
		"createCoordinationV1NamespacedLease":         "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
		"getRbacAuthorizationV1APIResources":          "/apis/rbac.authorization.k8s.io/v1/",
		"readCertificatesV1CertificateSigningRequest": "/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}",
	} {
		assert.Equal(t, path, ids[id], id)
	}
}

// TestBuiltinFieldsAreDocumented: built-in kinds and fields have descriptions for kubectl explain.
func TestBuiltinFieldsAreDocumented(t *testing.T) {
	for name, def := range parse(t, allDocuments(t)["v2"])["definitions"].(map[string]any) {
		assert.NotEmpty(t, at(def, "description"), name)
		fields, _ := at(def, "properties").(map[string]any)
		for f, p := range fields {
			assert.NotEmpty(t, at(p, "description"), "%s.%s", name, f)
		}
	}
}

// TestDefinitionNamesAreThoseOfKubernetes: definition names do not depend on the package that defines a kind.
func TestDefinitionNamesAreThoseOfKubernetes(t *testing.T) {
	definitions := parse(t, allDocuments(t)["v2"])["definitions"].(map[string]any)
	for _, name := range []string{"apps.v1.Deployment", "coordination.v1.Lease", "rbac.v1.ClusterRole", "discovery.v1.EndpointSlice", "certificates.v1.CertificateSigningRequest"} {
		assert.Contains(t, definitions, "io.k8s.api."+name)
	}
	for name := range definitions {
		assert.NotContains(t, name, "builtin")
	}
}

func TestConfigMap(t *testing.T) {
	docs := allDocuments(t)
	v2, v3 := parse(t, docs["v2"]), parse(t, docs["v3 v1"])
	gvk := []any{map[string]any{"group": "", "version": "v1", "kind": "ConfigMap"}}
	for _, def := range []any{
		at(v2, "definitions", "io.k8s.api.core.v1.ConfigMap"), at(v3, "components", "schemas", "io.k8s.api.core.v1.ConfigMap"),
	} {
		assert.Equal(t, "object", at(def, "type"))
		assert.Equal(t, gvk, at(def, "x-kubernetes-group-version-kind"))
		assert.Equal(t, "byte", at(def, "properties", "binaryData", "additionalProperties", "format"))
	}
	metaName := "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
	assert.Equal(t, "#/definitions/"+metaName, at(v2, "definitions", "io.k8s.api.core.v1.ConfigMap", "properties", "metadata", "$ref"))
	assert.Equal(t, []any{map[string]any{"$ref": "#/components/schemas/" + metaName}},
		at(v3, "components", "schemas", "io.k8s.api.core.v1.ConfigMap", "properties", "metadata", "allOf"))
	owners := at(v3, "components", "schemas", metaName, "properties", "ownerReferences")
	assert.Equal(t, "map", at(owners, "x-kubernetes-list-type"))
	assert.Equal(t, []any{"uid"}, at(owners, "x-kubernetes-list-map-keys"))
	assert.Equal(t, "merge", at(owners, "x-kubernetes-patch-strategy"))
	assert.Equal(t, "uid", at(owners, "x-kubernetes-patch-merge-key"))
	patch := at(v3, "paths", "/api/v1/namespaces/{namespace}/configmaps/{name}", "patch")
	assert.Contains(t, at(patch, "requestBody", "content"), "application/strategic-merge-patch+json")
	assert.Contains(t, at(patch, "responses", "200", "content"), "application/vnd.kubernetes.protobuf")
	var params []any
	for _, p := range at(patch, "parameters").([]any) {
		params = append(params, at(p, "name"))
	}
	assert.Equal(t, []any{"dryRun", "fieldManager", "fieldValidation", "force"}, params)
}

// TestDefaultedFieldsAreNotRequired: clients that validate before they send accept every object that the server
// accepts.
func TestDefaultedFieldsAreNotRequired(t *testing.T) {
	definitions := at(parse(t, allDocuments(t)["v2"]), "definitions")
	for name, field := range map[string]string{
		"rbac.v1.Role": "rules", "rbac.v1.ClusterRole": "rules", "scheduling.v1.PriorityClass": "value",
		"apps.v1.StatefulSetSpec": "serviceName", "apps.v1.StatefulSetOrdinals": "start",
	} {
		def := at(definitions, "io.k8s.api."+name)
		assert.NotNil(t, at(def, "properties", field), name)
		required, _ := at(def, "required").([]any)
		assert.NotContains(t, required, field, name)
	}
}

// TestOwnerReferencesAreAtomic: a manager that applies an owner reference owns all of it.
func TestOwnerReferencesAreAtomic(t *testing.T) {
	def := at(parse(t, allDocuments(t)["v2"]), "definitions", "io.k8s.api.core.v1.EvictionResponder")
	assert.Equal(t, "atomic", at(def, "x-kubernetes-map-type"))
}

// TestCommonTypesHaveSchemas: the types of common.go have schemas.
func TestCommonTypesHaveSchemas(t *testing.T) {
	for _, of := range []any{object{}, list{}, Status{}, DeleteOptions{}, WatchEvent{}, Patch{}, APIResourceList{}} {
		for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
			_, err := schema.Go(reflect.TypeOf(of), p)
			assert.NoError(t, err)
		}
	}
}

func TestHashIsStable(t *testing.T) {
	a, b := allDocuments(t), allDocuments(t)
	require.NotEmpty(t, a)
	seen := map[string]string{}
	for name, d := range a {
		assert.Equal(t, d.Hash(), b[name].Hash(), name)
		assert.Empty(t, seen[d.Hash()], name)
		seen[d.Hash()] = name
	}
}

// Gadget is a kind of the tests.
type Gadget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`

	Size int32 `json:"size" schema:"required,min=1,max=9,default=3" doc:"How big it is."`
}

func TestCacheRemakesChangedDocuments(t *testing.T) {
	var c resource.Catalog
	add := func(group string) {
		k, err := resource.Compile(registry.Of(registry.Definition[Gadget]{Group: group, Version: "v1", Kind: "Gadget"}), names.Kubernetes)
		require.NoError(t, err)
		c.Put(k)
	}
	add("a.example.com")
	add("b.example.com")
	var cache Cache
	in := Info{Names: names.Kubernetes}
	a := meta.GroupVersion{Group: "a.example.com", Version: "v1"}
	b := meta.GroupVersion{Group: "b.example.com", Version: "v1"}
	old := c.Now()
	first, index, all := cache.V3(old, a, in), cache.Index(old, in), cache.V2(old, in)
	other := cache.V3(old, b, in)
	require.NotNil(t, first)
	assert.Same(t, first, cache.V3(c.Now(), a, in))
	assert.Nil(t, cache.V3(old, meta.GroupVersion{Group: "none"}, in))

	c.Remove(meta.GroupResource{Group: "b.example.com", Resource: "gadgets"})
	assert.Same(t, first, cache.V3(c.Now(), a, in), "nothing changed in this group")
	assert.Nil(t, cache.V3(c.Now(), b, in))
	assert.NotEqual(t, index.Hash(), cache.Index(c.Now(), in).Hash())
	assert.NotEqual(t, all.Hash(), cache.V2(c.Now(), in).Hash())

	add("b.example.com")
	again := cache.V3(c.Now(), b, in)
	assert.NotSame(t, other, again)
	assert.Equal(t, other.Hash(), again.Hash())
	assert.Equal(t, index.Hash(), cache.Index(c.Now(), in).Hash())
	assert.Same(t, again, cache.V3(old, b, in), "an older state must not replace a newer one")
}

func TestSchemaTagsArePublished(t *testing.T) {
	s := catalog(t, registry.Of(registry.Definition[Gadget]{Group: "example.com", Version: "v1", Kind: "Gadget"}))
	def := at(parse(t, V2(s.Types(), info(s))), "definitions", names.Kubernetes.DefinitionName(wellknown.MetaDefinitions, "Gadget"))
	assert.Equal(t, map[string]any{"type": "integer", "format": "int32", "minimum": 1.0, "maximum": 9.0, "default": 3.0, "description": "How big it is."},
		at(def, "properties", "size"))
	assert.Equal(t, []any{"size"}, at(def, "required"))
}

// TestCacheIsSafeForConcurrentUse: requests for old and new states run while types change.
func TestCacheIsSafeForConcurrentUse(t *testing.T) {
	var c resource.Catalog
	k, err := resource.Compile(registry.Of(registry.Definition[Gadget]{Group: "a.example.com", Version: "v1"}), names.Kubernetes)
	require.NoError(t, err)
	c.Put(k)
	var cache Cache
	var all sync.WaitGroup
	gv := meta.GroupVersion{Group: "a.example.com", Version: "v1"}
	for range 8 {
		all.Go(func() {
			for range 20 {
				state := c.Now()
				assert.NotNil(t, cache.V3(state, gv, Info{Names: names.Kubernetes}))
				assert.NotEmpty(t, cache.Index(state, Info{Names: names.Kubernetes}).JSON().Bytes())
				assert.NotEmpty(t, cache.V2(state, Info{Names: names.Kubernetes}).Protobuf().Bytes())
			}
		})
	}
	for i := range 20 {
		other, err := resource.Compile(registry.Of(registry.Definition[Gadget]{Group: "b.example.com", Version: "v1"}), names.Kubernetes)
		require.NoError(t, err)
		if c.Put(other); i%2 == 1 {
			c.Remove(other.GroupResource())
		}
	}
	all.Wait()
}

// TestCacheSkipsIntermediateStates: while a document is made, requests with other states wait, and all of them get
// the document of the last state.
func TestCacheSkipsIntermediateStates(t *testing.T) {
	t.Parallel()
	var (
		c       resource.Catalog
		cache   Cache
		all     sync.WaitGroup
		made    atomic.Int32
		entered = make(chan struct{})
		goOn    = make(chan struct{})
	)
	const states = 5
	docs := make([]*Document, states)
	for i := range states {
		k, err := resource.Compile(customKind("", fmt.Sprintf(`"field%d":{"type":"string"}`, i)), names.Kubernetes)
		require.NoError(t, err)
		source := k.Source
		k.Source = func(v *resource.Version) *schema.Schema {
			if made.Add(1) == 1 {
				close(entered)
				<-goOn
			}
			return source(v)
		}
		c.Put(k)
		state := c.Now()
		all.Go(func() { docs[i] = cache.V2(state, Info{Names: names.Kubernetes}) })
		for now := (*resource.State)(nil); now != state; runtime.Gosched() {
			cache.mu.Lock()
			now = cache.state
			cache.mu.Unlock()
		}
		if i == 0 {
			<-entered
		}
	}
	close(goOn)
	all.Wait()
	assert.EqualValues(t, 2, made.Load(), "only the first and the last state need a document")
	for _, d := range docs[1:] {
		assert.True(t, docs[states-1] == d)
	}
	assert.Contains(t, string(docs[states-1].JSON().Bytes()), "field4")
}
