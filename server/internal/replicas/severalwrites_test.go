package replicas_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// three returns three servers over one store.
func three(t *testing.T, configure ...func(*server.Builder)) (store *memstore.Store, apis []*apitest.Client) {
	store = memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	for _, s := range several(t, 3, store, configure...) {
		apis = append(apis, apitest.InProcess(t, s))
	}
	return store, apis
}

// together runs n calls at the same time.
func together(n int, call func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { call(i) })
	}
	all.Wait()
}

// TestPatchesAtSeveralServersAreNotLost: of patches without a resourceVersion at all servers,
// none is refused and none is lost.
func TestPatchesAtSeveralServersAreNotLost(t *testing.T) {
	t.Parallel()
	const clients, each = 24, 8
	_, apis := three(t)
	apis[0].Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
	var mu sync.Mutex
	versions := map[string]bool{}
	together(clients, func(i int) {
		for n := range each {
			got := apis[(i+n)%3].Do("PATCH", apitest.ConfigMapsPath+"/c", fmt.Sprintf(`{"data":{"k%d-%d":"v"}}`, i, n))
			if !assert.Equal(t, 200, got.Code, "%s", got.Raw) {
				return
			}
			mu.Lock()
			versions[got.ResourceVersion()] = true
			mu.Unlock()
		}
	})
	assert.Len(t, versions, clients*each, "each made a version of its own")
	assert.Len(t, apis[1].Must(200, "GET", apitest.ConfigMapsPath+"/c", nil).Body["data"], clients*each)
}

// TestServersApplyToOneObject: managers that apply through different servers each own their fields. If
// several managers force the same field, one of them owns it, and the field has its value.
func TestServersApplyToOneObject(t *testing.T) {
	t.Parallel()
	const managers = 12
	_, apis := three(t)
	apply := func(at, manager int, query, data string) int {
		return apis[at%3].Do("PATCH", fmt.Sprintf("%s/c?fieldManager=m%d%s", apitest.ConfigMapsPath, manager, query),
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{`+data+`}}`, "Content-Type", apitest.ApplyPatch).Code
	}
	var mu sync.Mutex
	codes := map[int]int{}
	note := func(code int) {
		mu.Lock()
		defer mu.Unlock()
		codes[code]++
	}
	together(managers, func(i int) { note(apply(i, i, "", fmt.Sprintf(`"own%d":"%d"`, i, i))) })
	assert.Equal(t, map[int]int{201: 1, 200: managers - 1}, codes)
	got := apis[0].Must(200, "GET", apitest.ConfigMapsPath+"/c", nil).Body
	assert.Len(t, got["data"], managers)
	assert.Len(t, apitest.Nested(got, "metadata", "managedFields"), managers)

	clear(codes)
	together(managers, func(i int) { note(apply(i+1, i, "", fmt.Sprintf(`"own%d":"%d","shared":"%d"`, i, i, i))) })
	assert.Equal(t, map[int]int{200: 1, 409: managers - 1}, codes, "who comes first owns it")
	clear(codes)
	together(managers, func(i int) {
		note(apply(i+2, i, "&force=true", fmt.Sprintf(`"own%d":"%d","shared":"%d"`, i, i, i)))
	})
	assert.Equal(t, map[int]int{200: managers}, codes)
	got = apis[1].Must(200, "GET", apitest.ConfigMapsPath+"/c", nil).Body
	assert.Len(t, got["data"], managers+1)
	var owners []string
	for _, e := range apitest.Nested(got, "metadata", "managedFields").([]any) {
		if data, ok := apitest.Nested(e, "fieldsV1", "f:data").(map[string]any); ok && data["f:shared"] != nil {
			owners = append(owners, apitest.NestedString(e, "manager"))
		}
	}
	assert.Equal(t, []string{"m" + apitest.NestedString(got, "data", "shared")}, owners)
}

// TestFinalizersAreRemovedAtSeveralServers: if finalizers are removed through different servers
// at the same time, all of them are removed, and the object is deleted once.
func TestFinalizersAreRemovedAtSeveralServers(t *testing.T) {
	t.Parallel()
	_, apis := three(t)
	watch := apis[2].Watch(apitest.ConfigMapsPath + "?watch=1&labelSelector=held")
	for round := range 8 {
		name := fmt.Sprint("c", round)
		path := apitest.ConfigMapsPath + "/" + name
		apis[0].Must(201, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"`+name+`","labels":{"held":"yes"},"finalizers":["example.com/f0","example.com/f1","example.com/f2"]}}`)
		apis[1].Must(200, "DELETE", path, nil)
		together(3, func(i int) {
			for {
				got := apis[i].Do("GET", path, nil)
				if !assert.Equal(t, 200, got.Code, "it goes with the last of them") {
					return
				}
				list := got.Body["metadata"].(map[string]any)["finalizers"].([]any)
				got.Body["metadata"].(map[string]any)["finalizers"] = slices.DeleteFunc(list, func(f any) bool { return f == fmt.Sprint("example.com/f", i) })
				if code := apis[i].Do("PUT", path, got.Body).Code; code != 409 {
					assert.Equal(t, 200, code)
					return
				}
			}
		})
		for _, a := range apis {
			a.Must(404, "GET", path, nil)
		}
		seen := watch.NextN(5)
		assert.Equal(t, []string{"ADDED " + name, "MODIFIED " + name, "MODIFIED " + name, "MODIFIED " + name, "DELETED " + name}, seen)
	}
}

// TestCollectionIsDeletedOnceBySeveralServers: objects that all servers delete as a collection
// are deleted once. An object that was changed meanwhile so that the selector does not match it
// any more stays.
func TestCollectionIsDeletedOnceBySeveralServers(t *testing.T) {
	t.Parallel()
	const objects = 90
	_, apis := three(t)
	for i := range objects {
		apis[i%3].Must(201, "POST", apitest.ConfigMapsPath, fmt.Sprintf(`{"metadata":{"name":"c%d","labels":{"go":"yes"}}}`, i))
	}
	var mu sync.Mutex
	kept := map[string]bool{}
	together(6, func(i int) {
		if i < 3 {
			got := apis[i].Do("DELETE", apitest.ConfigMapsPath+"?labelSelector=go%3Dyes", nil)
			assert.Equal(t, 200, got.Code, "%s", got.Raw)
			return
		}
		for n := objects - 1 - (i - 3); n >= 0; n -= 3 {
			name := fmt.Sprint("c", n)
			got := apis[i-3].Do("PATCH", apitest.ConfigMapsPath+"/"+name, `{"metadata":{"labels":{"go":"no"}}}`)
			assert.Contains(t, []int{200, 404}, got.Code, "%s", got.Raw)
			if got.Code == 200 {
				mu.Lock()
				kept[name] = true
				mu.Unlock()
			}
		}
	})
	names := apis[0].Must(200, "GET", apitest.ConfigMapsPath+"?labelSelector=go", nil).Names()
	assert.Len(t, names, len(kept))
	for _, name := range names {
		assert.True(t, kept[name], name)
	}
}

// TestGeneratedNamesAreDistinctAcrossServers: servers that generate names at the same time
// generate distinct names.
func TestGeneratedNamesAreDistinctAcrossServers(t *testing.T) {
	t.Parallel()
	const objects = 120
	_, apis := three(t)
	var mu sync.Mutex
	made := map[string]bool{}
	together(objects, func(i int) {
		got := apis[i%3].Do("POST", apitest.ConfigMapsPath, `{"metadata":{"generateName":"`+strings.Repeat("x", 253)+`"}}`)
		assert.Equal(t, 201, got.Code, "%s", got.Raw)
		mu.Lock()
		defer mu.Unlock()
		made[apitest.NestedString(got.Body, "metadata", "name")] = true
	})
	assert.Len(t, made, objects)
}

// TestServersKeepValuesUnique: if clients request the same unique value through different servers at the
// same time, in specs or statuses, one gets it, and a deletion releases it.
func TestServersKeepValuesUnique(t *testing.T) {
	t.Parallel()
	const wanted, rivals = 8, 9
	var store storage.Backend
	store, apis := three(t, func(b *server.Builder) { withSites(b.Storage)(b) })
	for round := range 2 {
		var mu sync.Mutex
		won, codes := map[string]int{}, map[int]int{}
		together(wanted*rivals, func(i int) {
			host := fmt.Sprint("h", i%wanted)
			body := fmt.Sprintf(`{"host":%q,"aliases":["a%s","b%s"],"slot":%d}`, host, host, host, i%wanted)
			got := apis[(i/wanted+round)%3].Do("POST", apitest.SitesPath, site(fmt.Sprint("s", i), body))
			mu.Lock()
			defer mu.Unlock()
			if codes[got.Code]++; got.Code == 201 {
				won[host]++
			}
		})
		assert.Equal(t, map[int]int{201: wanted, 422: wanted * (rivals - 1)}, codes)
		assert.Len(t, won, wanted)
		names := apis[0].Must(200, "GET", apitest.SitesPath, nil).Names()
		clear(codes)
		together(len(names), func(i int) {
			got := apis[i%3].Do("PATCH", apitest.SitesPath+"/"+names[i]+"/status", `{"status":{"address":"only"}}`)
			mu.Lock()
			defer mu.Unlock()
			codes[got.Code]++
		})
		assert.Equal(t, map[int]int{200: 1, 422: wanted - 1}, codes)
		assert.Len(t, reserved(t, store), wanted*4+1)
		together(len(names), func(i int) { assert.Equal(t, 200, apis[i%3].Do("DELETE", apitest.SitesPath+"/"+names[i], nil).Code) })
		assert.Empty(t, reserved(t, store))
	}
}

// TestConcurrentMigrationsLoseNothing: migrations at two servers at once, while a third server
// writes, leave every object in the current storage version and lose nothing.
func TestConcurrentMigrationsLoseNothing(t *testing.T) {
	t.Parallel()
	const objects = 60
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	servers := several(t, 3, store)
	a := apitest.InProcess(t, servers[0])
	versions := func(stored string) string {
		version := func(name string) string {
			return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`, name, name == stored)
		}
		return "[" + version("v1") + "," + version("v2") + "]"
	}
	a.Must(201, "POST", apitest.DefinitionsPath, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":`+versions("v1")+`}}`)
	servers[0].Settle()
	for i := range objects {
		a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget(fmt.Sprint("w", i), `{"n":0}`))
	}
	a.Must(200, "PATCH", apitest.WidgetDefinitionPath, `{"spec":{"versions":`+versions("v2")+`}}`)
	together(4, func(i int) {
		if i < 2 {
			assert.NoError(t, servers[i].Migrate(t.Context(), nil))
			return
		}
		for n := i - 2; n < objects; n += 2 {
			got := apitest.InProcess(t, servers[i-1]).Do("PATCH", fmt.Sprintf("%s/w%d", apitest.WidgetsPath, n), `{"spec":{"n":1}}`)
			assert.Equal(t, 200, got.Code, "%s", got.Raw)
		}
	})
	assert.Equal(t, []any{"v2"}, apitest.Nested(a.Must(200, "GET", apitest.WidgetDefinitionPath, nil).Body, "status", "storedVersions"))
	for i := range objects {
		rec := apitest.StoredObject(t, store, fmt.Sprint("widgets.example.com/default/w", i))
		require.Equal(t, "example.com/v2", rec["apiVersion"])
		require.Equal(t, map[string]any{"n": 1.0}, rec["spec"])
	}
}

// TestBootstrapTokensApplyToOtherServers: a bootstrap token that was created, deleted or expired
// at one server is accepted or refused accordingly at another server.
func TestBootstrapTokensApplyToOtherServers(t *testing.T) {
	t.Parallel()
	w := apitest.NewPair(t, func(b *server.Builder) {
		methods := b.Authenticators
		b.Authenticators, b.Authorizer = nil, nil
		require.NoError(t, access.Setup(b, access.Config{BootstrapTokens: true, Authenticators: methods}))
	})
	root := apitest.As(t, w.Servers[0], "root", "system:masters")
	const secrets = "/api/v1/namespaces/kube-system/secrets"
	token := func(id, expiration string) string {
		return `{"metadata":{"name":"bootstrap-token-` + id + `"},"type":"bootstrap.kubernetes.io/token","stringData":{"token-id":"` + id +
			`","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"true","expiration":"` + expiration + `"}}`
	}
	use := func(id string) int {
		return w.B.Do("GET", "/api", nil, "Authorization", "Bearer "+id+".0123456789abcdef").Code
	}
	later := time.Now().Add(time.Hour).Format(time.RFC3339)
	require.Equal(t, 401, use("abcdef"))
	for range 2 {
		w.Lag()
		root.Must(201, "POST", secrets, token("abcdef", later))
		assert.NotEqual(t, 401, use("abcdef"))
		w.Lag()
		root.Must(200, "DELETE", secrets+"/bootstrap-token-abcdef", nil)
		assert.Equal(t, 401, use("abcdef"))
	}
	root.Must(201, "POST", secrets, token("fedcba", later))
	assert.NotEqual(t, 401, use("fedcba"))
	w.Lag()
	root.Must(200, "PATCH", secrets+"/bootstrap-token-fedcba", `{"stringData":{"expiration":"`+time.Now().Add(-time.Hour).Format(time.RFC3339)+`"}}`)
	assert.Equal(t, 401, use("fedcba"))
}
