package server_test

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

// late is the store of a server that hears of what others commit only when it has asked for
// the newest revision.
type late struct {
	*faultinject.Store

	mu   sync.Mutex
	held chan struct{} // nil: everything is heard at once
}

func newLate(b storage.Backend) *late {
	l := &late{}
	l.Store = faultinject.Wrap(shared{b}, func(c faultinject.Call) faultinject.Fault {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case l.held != nil && c.Op == faultinject.OpEvent:
			return faultinject.Fault{Wait: l.held}
		case l.held != nil && c.Op == faultinject.OpRevision:
			close(l.held)
			l.held = nil
		}
		return faultinject.Fault{}
	})
	return l
}

// deaf lets the server hear of nothing until it asks.
func (l *late) deaf() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(chan struct{})
	}
}

// hear lets the server hear of everything.
func (l *late) hear() { _, _ = l.Revision(context.Background()) }

// deaf lets the late server hear of nothing until it asks; its controllers have nothing to
// ask for.
func (w *two) deaf() {
	w.servers[1].Settle()
	w.late.deaf()
}

// two are servers over one store, of which the second is late.
type two struct {
	*late
	servers [2]*servertest.Server
	a, b    *api
}

func newTwo(t *testing.T, configure ...func(*server.Builder)) *two {
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	w := &two{late: newLate(store)}
	for i, b := range []storage.Backend{shared{store}, w.late} {
		w.servers[i] = servertest.New(t, append([]func(*server.Builder){over(b)}, configure...)...)
	}
	w.a, w.b = inProcess(t, w.servers[0]), inProcess(t, w.servers[1])
	return w
}

// as returns how a user calls a server.
func as(t testing.TB, s *servertest.Server, user string, groups ...string) *api {
	u := s.As(user, groups...)
	return &api{t, u.Host(), u.Client()}
}

// TestServersSeeEachOthersWrites: what one server acknowledged another one shows in every
// read but those that take any version, however late it hears of it.
func TestServersSeeEachOthersWrites(t *testing.T) {
	w := newTwo(t)
	first := w.a.must(201, "POST", configMaps, newConfigMap("a", "k", "1")).version()
	w.b.must(200, "GET", configMaps+"/a", nil)
	changed := func(value string) string {
		w.deaf()
		return w.a.must(200, "PATCH", configMaps+"/a", `{"data":{"k":"`+value+`"}}`).version()
	}
	value := func(got answer) string { return text(got.body, "data", "k") }
	first2 := func(got answer) string {
		items, _ := got.body["items"].([]any)
		for _, it := range items {
			if text(it, "metadata", "name") == "a" {
				return text(it, "data", "k")
			}
		}
		return ""
	}

	changed("2")
	assert.Equal(t, "1", value(w.b.must(200, "GET", configMaps+"/a?resourceVersion=0", nil)), "any version is one that the server has")
	assert.Equal(t, "2", value(w.b.must(200, "GET", configMaps+"/a", nil)))
	changed("3")
	assert.Equal(t, "2", first2(w.b.must(200, "GET", configMaps+"?resourceVersion=0", nil)))
	assert.Equal(t, "3", first2(w.b.must(200, "GET", configMaps, nil)))
	for i, query := range []string{"", "&resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=Exact", "&limit=500"} {
		rv := changed(fmt.Sprint("4.", i))
		got := w.b.must(200, "GET", configMaps+"?resourceVersion="+rv+query, nil)
		assert.Equal(t, fmt.Sprint("4.", i), first2(got), query)
		if i > 1 {
			assert.Equal(t, rv, got.version())
		}
	}
	rv := changed("5")
	assert.Equal(t, "5", value(w.b.must(200, "GET", configMaps+"/a?resourceVersion="+rv, nil)))
	assert.Equal(t, "1", first2(w.b.must(200, "GET", configMaps+"?resourceVersionMatch=Exact&resourceVersion="+first, nil)))

	w.deaf()
	w.a.must(200, "DELETE", configMaps+"/a", nil)
	w.b.must(404, "GET", configMaps+"/a", nil)
	w.deaf()
	w.a.must(201, "POST", configMaps, newConfigMap("a", "k", "6"))
	w.b.must(409, "POST", configMaps, newConfigMap("a", "k", "7"))
}

// TestServersWatchEachOthersWrites: a watch begins with, or after, what other servers
// acknowledged before, goes on at another server, and tells everything once.
func TestServersWatchEachOthersWrites(t *testing.T) {
	w := newTwo(t)
	w.a.must(201, "POST", configMaps, newConfigMap("a"))
	w.b.must(200, "GET", configMaps, nil)
	fields := "&fieldSelector=metadata.name!%3Dkube-root-ca.crt"

	w.deaf()
	rv := w.a.must(201, "POST", configMaps, newConfigMap("b")).version()
	assert.Equal(t, []string{"ADDED a", "ADDED b"}, w.b.watch(configMaps+"?watch=1"+fields).some(2))
	w.deaf()
	w.a.must(201, "POST", configMaps, newConfigMap("c"))
	initial := w.b.watch(configMaps + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true" + fields)
	assert.Equal(t, []string{"ADDED a", "ADDED b", "ADDED c"}, initial.some(3))
	mark := initial.next()
	assert.Equal(t, "BOOKMARK", mark.Type)
	assert.Equal(t, "true", text(mark.Object, "metadata", "annotations", "k8s.io/initial-events-end"))

	w.deaf()
	w.a.must(200, "PATCH", configMaps+"/a", `{"data":{"x":"1"}}`)
	after := w.b.watch(configMaps + "?watch=1&resourceVersion=" + rv + fields)
	assert.Equal(t, []string{"ADDED c", "MODIFIED a"}, after.some(2))
	last := after.next
	w.b.must(200, "DELETE", configMaps+"/c", nil)
	gone := last()
	assert.Equal(t, "DELETED c", gone.String())
	w.a.must(201, "POST", configMaps, newConfigMap("d"))
	assert.Equal(t, "ADDED d", last().String())
	assert.Equal(t, "ADDED d", w.a.watch(configMaps+"?watch=1&resourceVersion="+gone.version()+fields).next().String(), "where another server's watch ended")
	assert.Equal(t, "ADDED d", w.b.watch(configMaps + "?watch=1&resourceVersion=" + mark.version() + fields).some(3)[2])
}

// TestPagesMoveBetweenServers: each page of a list may come from another server, also from
// one that started after the list began, and all show one state.
func TestPagesMoveBetweenServers(t *testing.T) {
	onSharedStores(t, func(t *testing.T, inner storage.Backend) {
		store := shared{inner}
		servers := []*servertest.Server{servertest.New(t, over(store)), servertest.New(t, over(store))}
		first := inProcess(t, servers[0])
		for i := range 9 {
			first.must(201, "POST", configMaps, newConfigMap(fmt.Sprint("c", i), "k", "old"))
		}
		page := first.must(200, "GET", configMaps+"?limit=2", nil)
		rv, names := page.version(), page.names()
		first.must(200, "DELETE", configMaps+"/c5", nil)
		first.must(200, "PATCH", configMaps+"/c6", `{"data":{"k":"new"}}`)
		for i := 1; text(page.body, "metadata", "continue") != ""; i++ {
			if i == 2 {
				servers[0].Restart(over(store))
				servers = append(servers, servertest.New(t, over(store)))
			}
			first.must(201, "POST", configMaps, newConfigMap(fmt.Sprint("b", i)))
			s := inProcess(t, servers[i%len(servers)])
			page = s.must(200, "GET", configMaps+"?limit=2&continue="+text(page.body, "metadata", "continue"), nil)
			require.Equal(t, rv, page.version())
			for _, it := range page.body["items"].([]any) {
				assert.NotEqual(t, "new", text(it, "data", "k"))
			}
			names = append(names, page.names()...)
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

// TestServersObeyNewRights: a right that one server gave or took away holds on another with
// the next request that is acknowledged there, also that of acting as somebody else.
func TestServersObeyNewRights(t *testing.T) {
	w := newTwo(t, servertest.RBAC, func(b *server.Builder) {
		b.Handlers = map[string]http.Handler{"/own": http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	})
	root := as(t, w.servers[0], "root", "system:masters")
	b := as(t, w.servers[1], "jane")
	const rbacPath = "/apis/rbac.authorization.k8s.io/v1"
	root.must(201, "POST", rbacPath+"/clusterroles", `{"metadata":{"name":"all"},"rules":[
		{"apiGroups":[""],"resources":["configmaps","users","pods/log"],"verbs":["*"]},{"nonResourceURLs":["/own"],"verbs":["get"]}]}`)
	binding := `{"metadata":{"name":"jane"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"all"},
		"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}`
	requests := []struct {
		code               int
		method, path, body string
		header             []string
	}{
		{200, "GET", configMaps, "", nil},
		{404, "GET", configMaps + "/none", "", nil},
		{200, "GET", configMaps + "?watch=1", "", nil},
		{201, "POST", configMaps + "?dryRun=All", `{"metadata":{"name":"new"}}`, nil},
		{404, "DELETE", configMaps + "/none", "", nil},
		{404, "GET", configMaps + "/none", "", []string{"Impersonate-User", "jane"}},
		{404, "GET", "/api/v1/namespaces/default/pods/none/log?resourceVersion=0", "", nil},
		{200, "GET", "/own", "", nil},
		{200, "GET", "/livez", "", []string{"Impersonate-User", "jane"}},
	}
	for _, c := range requests {
		code := func() int {
			res := b.open(t.Context(), c.method, c.path, c.body, c.header...)
			defer res.Body.Close()
			return res.StatusCode
		}
		b.must(403, "GET", configMaps, nil)
		w.deaf()
		root.must(201, "POST", rbacPath+"/clusterrolebindings", binding)
		assert.Equal(t, c.code, code(), "granted: %s %s", c.method, c.path)
		w.deaf()
		root.must(200, "DELETE", rbacPath+"/clusterrolebindings/jane", nil)
		assert.Equal(t, 403, code(), "taken away: %s %s", c.method, c.path)
	}
}

// TestServersSeeDeletedAccounts: the token of an account that was deleted at one server, or
// of another one of its name, or that is bound to what was deleted, is worth nothing at another.
func TestServersSeeDeletedAccounts(t *testing.T) {
	key, err := serviceaccount.GenerateKey()
	require.NoError(t, err)
	w := newTwo(t, func(b *server.Builder) {
		tokens, err := serviceaccount.New(serviceaccount.Config{Keys: []serviceaccount.Key{key}, Client: b.Client(), Names: b.Names})
		require.NoError(t, err)
		methods := b.Authenticators
		b.Authenticators, b.Authorizer = nil, nil
		require.NoError(t, access.Setup(b, access.Config{Tokens: tokens, Methods: methods}))
	})
	root := as(t, w.servers[0], "root", "system:masters")
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
		root.do("POST", account, `{"metadata":{"name":"robot"}}`)
		if c.object != "" {
			root.must(201, "POST", path.Dir(c.path), c.object)
		}
		token := text(root.must(201, "POST", account+"/robot/token", c.request).body, "status", "token")
		review := func() answer {
			return w.b.do("GET", "/apis/authentication.k8s.io/v1", nil, "Authorization", "Bearer "+token)
		}
		assert.Equal(t, http.StatusOK, review().code)
		w.deaf()
		root.must(200, "DELETE", c.path, nil)
		assert.Equal(t, http.StatusUnauthorized, review().code, c.path)
	}
}
