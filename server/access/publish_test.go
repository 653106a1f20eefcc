package access_test

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/tokenfile"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/access"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// journal is a log that a test can read.
type journal struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) lines(word string) (list []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for line := range strings.Lines(j.text.String()) {
		if strings.Contains(line, word) {
			list = append(list, line)
		}
	}
	return list
}

// publishing returns a server over a store that publishes its objects; root may do everything.
func publishing(t *testing.T, store storage.Backend, log *journal, c access.Config) guarded {
	users, err := tokenfile.Parse(strings.NewReader("root,root,1,system:masters\n"))
	require.NoError(t, err)
	c.Authenticators = []auth.Authenticator{users}
	return guarded{t: t, Server: servertest.New(t, func(b *server.Builder) {
		b.Storage, b.Logger, b.Authorizer = store, slog.New(slog.NewTextHandler(log, nil)), nil
		b.Kind("", "Service").Allocator = core.ServiceNetwork{}.Pool()
		require.NoError(t, access.Setup(b, c))
	})}
}

var (
	asRoot        = []string{"Authorization", "Bearer root"}
	asRootMerging = append([]string{"Content-Type", "application/merge-patch+json"}, asRoot...)
)

// TestServiceWaitsForItsAddress checks that the service is created when its cluster IP is free, with a single
// warning before, and that changes of it are corrected.
func TestServiceWaitsForItsAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const services = "/api/v1/namespaces/default/services"
		store, log := memstore.New(memstore.Options{}), &journal{}
		before := publishing(t, store, log, access.Config{})
		before.must(201, "POST", services, `{"metadata":{"name":"squatter"},"spec":{"clusterIP":"10.0.0.1","ports":[{"port":1}]}}`, asRoot...)

		g := publishing(t, store.Fork(), log, access.Config{Publish: access.Publish{Address: netip.MustParseAddr("10.0.0.1"), Port: 6443}})
		g.must(404, "GET", services+"/kubernetes", "", asRoot...)
		time.Sleep(time.Hour)
		warnings := log.lines("level=WARN")
		require.Len(t, warnings, 1, "%s", warnings)
		assert.Contains(t, warnings[0], "default/squatter")
		assert.Empty(t, log.lines("level=ERROR"))

		g.must(200, "DELETE", services+"/squatter", "", asRoot...)
		time.Sleep(2 * time.Minute)
		ip := func() any {
			return g.must(200, "GET", services+"/kubernetes", "", asRoot...)["spec"].(map[string]any)["clusterIP"]
		}
		assert.Equal(t, "10.0.0.1", ip())
		g.must(200, "PATCH", services+"/kubernetes", `{"spec":{"type":"ExternalName","externalName":"a.example.com","clusterIP":"","clusterIPs":null}}`,
			asRootMerging...)
		g.Settle()
		assert.Equal(t, "10.0.0.1", ip())
	})
}

// TestServiceThatAnotherServerMakes checks that servers that start at once create the service once, and do
// not report a conflict with it.
func TestServiceThatAnotherServerMakes(t *testing.T) {
	const services = "/api/v1/namespaces/default/services"
	store, log := memstore.New(memstore.Options{}), &journal{}
	other := publishing(t, store, log, access.Config{})
	var made sync.Once
	between := faultinject.Wrap(store, func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpGet && strings.HasSuffix(c.Key, "10.0.0.1") { // the cluster IP is about to be allocated
			made.Do(func() {
				other.must(201, "POST", services, `{"metadata":{"name":"kubernetes"},"spec":{"clusterIP":"10.0.0.1","ports":[{"port":443}]}}`, asRoot...)
			})
		}
		return faultinject.Fault{}
	})
	publishing(t, between, log, access.Config{Publish: access.Publish{Address: netip.MustParseAddr("10.0.0.1"), Port: 6443}})
	other.must(200, "GET", services+"/kubernetes", "", asRoot...)
	assert.Empty(t, log.lines("level=WARN"))
}

// TestEndpointsOfTheServer checks that the service routes to the server, also after its address changed, and
// that changes by others are corrected.
func TestEndpointsOfTheServer(t *testing.T) {
	const endpoints, slice = "/api/v1/namespaces/default/endpoints/kubernetes", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
	synctest.Test(t, func(t *testing.T) {
		store, log := memstore.New(memstore.Options{}), &journal{}
		at := func(address string, port int) guarded {
			store = store.Fork()
			g := publishing(t, store, log, access.Config{Publish: access.Publish{
				Address: netip.MustParseAddr("10.0.0.1"), Port: port, Endpoint: netip.MustParseAddr(address)}})
			g.Settle()
			return g
		}
		leadsTo := func(g guarded, family, address string, port float64) {
			t.Helper()
			ports := []any{map[string]any{"name": "https", "protocol": "TCP", "port": port}}
			old := g.must(200, "GET", endpoints, "", asRoot...)
			assert.Equal(t, []any{map[string]any{"addresses": []any{map[string]any{"ip": address}}, "ports": ports}}, old["subsets"])
			assert.Equal(t, map[string]any{"endpointslice.kubernetes.io/skip-mirror": "true"}, old["metadata"].(map[string]any)["labels"])
			now := g.must(200, "GET", slice, "", asRoot...)
			assert.Equal(t, family, now["addressType"])
			assert.Equal(t, []any{map[string]any{"addresses": []any{address}, "conditions": map[string]any{"ready": true}}}, now["endpoints"])
			assert.Equal(t, ports, now["ports"])
			assert.Equal(t, map[string]any{"kubernetes.io/service-name": "kubernetes"}, now["metadata"].(map[string]any)["labels"])
		}
		for _, nowhere := range []string{"127.0.0.1", "::1", "0.0.0.0", "fe80::1", "fd00::1%eth0"} {
			g := at(nowhere, 6443)
			g.must(404, "GET", endpoints, "", asRoot...)
			g.must(404, "GET", slice, "", asRoot...)
		}
		leadsTo(at("192.0.2.7", 6443), "IPv4", "192.0.2.7", 6443)
		leadsTo(at("::ffff:192.0.2.8", 443), "IPv4", "192.0.2.8", 443)
		g := at("fd00::7", 443)
		leadsTo(g, "IPv6", "fd00::7", 443)

		g.must(200, "DELETE", endpoints, "", asRoot...)
		g.must(200, "DELETE", slice, "", asRoot...)
		g.Settle()
		leadsTo(g, "IPv6", "fd00::7", 443)
		g.must(200, "PATCH", endpoints, `{"metadata":{"labels":null},"subsets":null}`, asRootMerging...)
		g.must(200, "PATCH", slice, `{"metadata":{"labels":null},"endpoints":null,"ports":[{"port":1}]}`, asRootMerging...)
		g.Settle()
		leadsTo(g, "IPv6", "fd00::7", 443)
		assert.Empty(t, log.lines("level=ERROR"))
		assert.Empty(t, log.lines("level=WARN"))
	})
}

// TestClusterInfoThatWasClosed checks that a deleted Role or RoleBinding is not created again, not even after
// a restart.
func TestClusterInfoThatWasClosed(t *testing.T) {
	const public, info = "/namespaces/kube-public/", "/api/v1/namespaces/kube-public/configmaps/cluster-info"
	config := access.Config{BootstrapTokens: true, RootCA: []byte("one"), Publish: access.Publish{URL: "https://one"}}
	for _, what := range []string{"roles", "rolebindings"} {
		store, log := memstore.New(memstore.Options{}), &journal{}
		g := publishing(t, store, log, config)
		g.Settle()
		g.must(200, "GET", info, "")
		path := "/apis/rbac.authorization.k8s.io/v1" + public + what + "/kubeadm:bootstrap-signer-clusterinfo"
		g.must(200, "DELETE", path, "", asRoot...)
		g.Settle()
		g.must(404, "GET", path, "", asRoot...)
		g = publishing(t, store.Fork(), log, config)
		g.Settle()
		g.must(403, "GET", info, "")
		g.must(404, "GET", path, "", asRoot...)
	}
}

// TestClusterInfoFollowsTheServer checks that the text is updated while only the server has written it.
func TestClusterInfoFollowsTheServer(t *testing.T) {
	const info = "/api/v1/namespaces/kube-public/configmaps/cluster-info"
	config := func(url string) access.Config {
		return access.Config{BootstrapTokens: true, RootCA: []byte("one"), Publish: access.Publish{URL: url}}
	}
	store, log := memstore.New(memstore.Options{}), &journal{}
	text := func(g guarded) any {
		g.Settle()
		return g.must(200, "GET", info, "")["data"].(map[string]any)["kubeconfig"]
	}
	g := publishing(t, store, log, config("https://one"))
	assert.Contains(t, text(g), "server: https://one\n")
	store = store.Fork()
	g = publishing(t, store, log, config("https://two"))
	assert.Contains(t, text(g), "server: https://two\n")
	g.must(200, "PATCH", info, `{"data":{"kubeconfig":"mine"}}`, asRootMerging...)
	g = publishing(t, store.Fork(), log, config("https://three"))
	assert.Equal(t, "mine", text(g))
}

// TestChecksThatToolsWaitFor checks that each configured start hook has its check, and others have none.
func TestChecksThatToolsWaitFor(t *testing.T) {
	const roles, service, authentication = "/readyz/poststarthook/rbac/bootstrap-roles", "/readyz/poststarthook/bootstrap-controller",
		"/readyz/poststarthook/start-cluster-authentication-info-controller"
	g := publishing(t, memstore.New(memstore.Options{}), &journal{}, access.Config{})
	g.must(200, "GET", roles, "", asRoot...)
	g.must(404, "GET", service, "", asRoot...)
	g.must(404, "GET", authentication, "", asRoot...)
	g = publishing(t, memstore.New(memstore.Options{}), &journal{}, access.Config{Publish: access.Publish{
		Address: netip.MustParseAddr("10.0.0.1"), Port: 6443, Authentication: access.Authentication{ClientCAs: []byte("one")},
	}})
	for _, path := range []string{roles, service, authentication} {
		g.must(200, "GET", path, "", asRoot...)
	}
}
