package replicas_test

import (
	"fmt"
	"net/http"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// TestServersSeeEachOthersWrites: every read on one server, except reads at any version, shows the
// writes that another server acknowledged, even if the watch of the reading server lags.
func TestServersSeeEachOthersWrites(t *testing.T) {
	t.Parallel()
	w := apitest.NewPair(t)
	first := w.A.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a", "k", "1")).ResourceVersion()
	w.B.Must(200, "GET", apitest.ConfigMapsPath+"/a", nil)
	changed := func(value string) string {
		w.Lag()
		return w.A.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", `{"data":{"k":"`+value+`"}}`).ResourceVersion()
	}
	value := func(got apitest.Response) string { return apitest.NestedString(got.Body, "data", "k") }
	first2 := func(got apitest.Response) string {
		items, _ := got.Body["items"].([]any)
		for _, it := range items {
			if apitest.NestedString(it, "metadata", "name") == "a" {
				return apitest.NestedString(it, "data", "k")
			}
		}
		return ""
	}

	changed("2")
	assert.Equal(t, "1", value(w.B.Must(200, "GET", apitest.ConfigMapsPath+"/a?resourceVersion=0", nil)), "any version is one that the server has")
	assert.Equal(t, "2", value(w.B.Must(200, "GET", apitest.ConfigMapsPath+"/a", nil)))
	changed("3")
	assert.Equal(t, "2", first2(w.B.Must(200, "GET", apitest.ConfigMapsPath+"?resourceVersion=0", nil)))
	assert.Equal(t, "3", first2(w.B.Must(200, "GET", apitest.ConfigMapsPath, nil)))
	for i, query := range []string{"", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact", "&limit=500"} {
		rv := changed(fmt.Sprint("4.", i))
		got := w.B.Must(200, "GET", apitest.ConfigMapsPath+"?resourceVersion="+rv+query, nil)
		assert.Equal(t, fmt.Sprint("4.", i), first2(got), query)
		if i > 1 {
			assert.Equal(t, rv, got.ResourceVersion())
		}
	}
	rv := changed("5")
	assert.Equal(t, "5", value(w.B.Must(200, "GET", apitest.ConfigMapsPath+"/a?resourceVersion="+rv, nil)))
	assert.Equal(t, "1", first2(w.B.Must(200, "GET", apitest.ConfigMapsPath+"?resourceVersionMatch=Exact&resourceVersion="+first, nil)))

	w.Lag()
	w.A.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
	w.B.Must(404, "GET", apitest.ConfigMapsPath+"/a", nil)
	w.Lag()
	w.A.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a", "k", "6"))
	w.B.Must(409, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a", "k", "7"))
}

// TestServersWatchEachOthersWrites: a watch begins with or after the writes that other servers
// acknowledged before, continues on another server, and reports each change once.
func TestServersWatchEachOthersWrites(t *testing.T) {
	t.Parallel()
	w := apitest.NewPair(t)
	w.A.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
	w.B.Must(200, "GET", apitest.ConfigMapsPath, nil)
	fields := "&fieldSelector=metadata.name!%3Dkube-root-ca.crt"

	w.Lag()
	rv := w.A.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("b")).ResourceVersion()
	assert.Equal(t, []string{"ADDED a", "ADDED b"}, w.B.Watch(apitest.ConfigMapsPath+"?watch=1"+fields).NextN(2))
	w.Lag()
	w.A.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("c"))
	initial := w.B.Watch(apitest.ConfigMapsPath + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true" + fields)
	assert.Equal(t, []string{"ADDED a", "ADDED b", "ADDED c"}, initial.NextN(3))
	mark := initial.Next()
	assert.Equal(t, "BOOKMARK", mark.Type)
	assert.Equal(t, "true", apitest.NestedString(mark.Object, "metadata", "annotations", "k8s.io/initial-events-end"))

	w.Lag()
	w.A.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", `{"data":{"x":"1"}}`)
	after := w.B.Watch(apitest.ConfigMapsPath + "?watch=1&resourceVersion=" + rv + fields)
	assert.Equal(t, []string{"ADDED c", "MODIFIED a"}, after.NextN(2))
	last := after.Next
	w.B.Must(200, "DELETE", apitest.ConfigMapsPath+"/c", nil)
	gone := last()
	assert.Equal(t, "DELETED c", gone.String())
	w.A.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("d"))
	assert.Equal(t, "ADDED d", last().String())
	assert.Equal(t, "ADDED d", w.A.Watch(apitest.ConfigMapsPath+"?watch=1&resourceVersion="+gone.ResourceVersion()+fields).Next().String(), "where another server's watch ended")
	assert.Equal(t, "ADDED d", w.B.Watch(apitest.ConfigMapsPath + "?watch=1&resourceVersion=" + mark.ResourceVersion() + fields).NextN(3)[2])
}

// TestPagesMayComeFromDifferentServers: each page of a list may come from another server,
// including a server that started after the list began, and all pages show the same state.
func TestPagesMayComeFromDifferentServers(t *testing.T) {
	t.Parallel()
	apitest.OnSharedStores(t, func(t *testing.T, inner storage.Backend) {
		store := apitest.KeepOpen{Backend: inner}
		servers := []*servertest.Server{servertest.New(t, apitest.WithStorage(store)), servertest.New(t, apitest.WithStorage(store))}
		first := apitest.InProcess(t, servers[0])
		for i := range 9 {
			first.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i), "k", "old"))
		}
		page := first.Must(200, "GET", apitest.ConfigMapsPath+"?limit=2", nil)
		rv, names := page.ResourceVersion(), page.Names()
		first.Must(200, "DELETE", apitest.ConfigMapsPath+"/c5", nil)
		first.Must(200, "PATCH", apitest.ConfigMapsPath+"/c6", `{"data":{"k":"new"}}`)
		for i := 1; apitest.NestedString(page.Body, "metadata", "continue") != ""; i++ {
			if i == 2 {
				servers[0].Restart(apitest.WithStorage(store))
				servers = append(servers, servertest.New(t, apitest.WithStorage(store)))
			}
			first.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("b", i)))
			s := apitest.InProcess(t, servers[i%len(servers)])
			page = s.Must(200, "GET", apitest.ConfigMapsPath+"?limit=2&continue="+apitest.NestedString(page.Body, "metadata", "continue"), nil)
			require.Equal(t, rv, page.ResourceVersion())
			for _, it := range page.Body["items"].([]any) {
				assert.NotEqual(t, "new", apitest.NestedString(it, "data", "k"))
			}
			names = append(names, page.Names()...)
		}
		assert.Equal(t, []string{"c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"}, without(names, "kube-root-ca.crt"))
	})
}

func without(list []string, name string) (rest []string) {
	for _, s := range list {
		if s != name {
			rest = append(rest, s)
		}
	}
	return rest
}

// TestServersObeyNewRights: a permission that one server granted or revoked, including impersonation,
// applies to the next request on every server.
func TestServersObeyNewRights(t *testing.T) {
	t.Parallel()
	w := apitest.NewPair(t, servertest.RBAC, func(b *server.Builder) {
		b.Handlers = map[string]http.Handler{"/own": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	})
	root := apitest.As(t, w.Servers[0], "root", "system:masters")
	b := apitest.As(t, w.Servers[1], "jane")
	const rbacPath = "/apis/rbac.authorization.k8s.io/v1"
	root.Must(201, "POST", rbacPath+"/clusterroles", `{"metadata":{"name":"all"},"rules":[
		{"apiGroups":[""],"resources":["configmaps","users","pods/log"],"verbs":["*"]},{"nonResourceURLs":["/own"],"verbs":["get"]}]}`)
	binding := `{"metadata":{"name":"jane"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"all"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}`
	requests := []struct {
		code               int
		method, path, body string
		header             []string
	}{
		{200, "GET", apitest.ConfigMapsPath, "", nil},
		{404, "GET", apitest.ConfigMapsPath + "/none", "", nil},
		{200, "GET", apitest.ConfigMapsPath + "?watch=1", "", nil},
		{201, "POST", apitest.ConfigMapsPath + "?dryRun=All", `{"metadata":{"name":"new"}}`, nil},
		{404, "DELETE", apitest.ConfigMapsPath + "/none", "", nil},
		{404, "GET", apitest.ConfigMapsPath + "/none", "", []string{"Impersonate-User", "jane"}},
		{404, "GET", "/api/v1/namespaces/default/pods/none/log?resourceVersion=0", "", nil},
		{200, "GET", "/own", "", nil},
		{200, "GET", "/livez", "", []string{"Impersonate-User", "jane"}},
	}
	for _, c := range requests {
		code := func() int {
			res := b.Open(t.Context(), c.method, c.path, c.body, c.header...)
			defer res.Body.Close()
			return res.StatusCode
		}
		b.Must(403, "GET", apitest.ConfigMapsPath, nil)
		w.Lag()
		root.Must(201, "POST", rbacPath+"/clusterrolebindings", binding)
		assert.Equal(t, c.code, code(), "granted: %s %s", c.method, c.path)
		w.Lag()
		root.Must(200, "DELETE", rbacPath+"/clusterrolebindings/jane", nil)
		assert.Equal(t, 403, code(), "taken away: %s %s", c.method, c.path)
	}
}

// TestTokensOfDeletedObjectsAreRefusedByOtherServers: a token is refused if its account, or the
// object that it is bound to, was deleted or replaced through another server.
func TestTokensOfDeletedObjectsAreRefusedByOtherServers(t *testing.T) {
	t.Parallel()
	key, err := serviceaccount.GenerateKey()
	require.NoError(t, err)
	w := apitest.NewPair(t, func(b *server.Builder) {
		tokens, err := serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: b.Client(), Names: b.Names})
		require.NoError(t, err)
		methods := b.Authenticators
		b.Authenticators, b.Authorizer = nil, nil
		require.NoError(t, access.Setup(b, access.Config{Tokens: tokens, Authenticators: methods}))
	})
	root := apitest.As(t, w.Servers[0], "root", "system:masters")
	const in = "/api/v1/namespaces/default"
	account := in + "/serviceaccounts"
	bound := func(kind string) string {
		return `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"` + kind + `","name":"bound"}}}`
	}
	for _, c := range []struct{ path, object, request string }{
		{account + "/robot", "", `{"spec":{}}`},
		{account + "/robot", "", `{"spec":{}}`},
		{in + "/secrets/bound", `{"metadata":{"name":"bound"}}`, bound("Secret")},
		{in + "/pods/bound?gracePeriodSeconds=0", `{"metadata":{"name":"bound"},"spec":{"serviceAccountName":"robot","containers":[{"name":"c","image":"i"}]}}`, bound("Pod")},
	} {
		root.Do("POST", account, `{"metadata":{"name":"robot"}}`)
		if c.object != "" {
			root.Must(201, "POST", path.Dir(c.path), c.object)
		}
		token := apitest.NestedString(root.Must(201, "POST", account+"/robot/token", c.request).Body, "status", "token")
		review := func() apitest.Response {
			return w.B.Do("GET", "/apis/authentication.k8s.io/v1", nil, "Authorization", "Bearer "+token)
		}
		assert.Equal(t, http.StatusOK, review().Code)
		w.Lag()
		root.Must(200, "DELETE", c.path, nil)
		assert.Equal(t, http.StatusUnauthorized, review().Code, c.path)
	}
}
