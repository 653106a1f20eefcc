package access_test

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

const (
	ownEndpoints = "/api/v1/namespaces/default/endpoints/kubernetes"
	ownSlice     = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"
	systemLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
)

// common is a store that several servers share.
type common struct{ storage.Backend }

func (common) Shared() bool { return true }
func (common) Close() error { return nil }

// group is servers over one store that publish their addresses.
type group struct {
	t     *testing.T
	store storage.Backend
	log   *journal

	full    atomic.Bool // the store accepts only deletions
	mu      sync.Mutex  // guards written
	written int         // commits of Endpoints and EndpointSlices, including failed ones
}

func newGroup(t *testing.T) *group {
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &group{t: t, store: store, log: &journal{}}
}

// writes returns the number of commits of Endpoints and EndpointSlices since its last call.
func (g *group) writes() (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, g.written = g.written, 0
	return n
}

// member is a server of a group.
type member struct {
	guarded
	dead atomic.Bool // the store fails
}

// start starts a server with an endpoint address.
func (g *group) start(address string, port int) *member {
	users, err := tokenfile.Parse(strings.NewReader("root,root,1,system:masters\n"))
	require.NoError(g.t, err)
	m := &member{}
	store := faultinject.Wrap(common{g.store}, func(c faultinject.Call) faultinject.Fault {
		if m.dead.Load() {
			return faultinject.Fault{Err: errors.New("the server is dead")}
		}
		if c.Op == faultinject.OpCommit && (strings.HasPrefix(c.Key, "endpoints/") || strings.HasPrefix(c.Key, "endpointslices.")) {
			g.mu.Lock()
			g.written++
			g.mu.Unlock()
		}
		if c.Op == faultinject.OpCommit && g.full.Load() && slices.ContainsFunc(c.Writes, func(w storage.Write) bool { return w.Value != nil }) {
			return faultinject.Fault{Err: storage.ErrFull}
		}
		return faultinject.Fault{}
	})
	m.guarded = guarded{t: g.t, Server: servertest.New(g.t, func(b *server.Builder) {
		b.Storage, b.Logger, b.Authorizer = store, slog.New(slog.NewTextHandler(g.log, nil)), nil
		b.Kind("", "Service").Allocator = core.ServiceNetwork{}.Pool()
		require.NoError(g.t, access.Setup(b, access.Config{Authenticators: []auth.Authenticator{users}, Publish: access.Publish{
			Address: netip.MustParseAddr("10.0.0.1"), Port: port, Endpoint: netip.MustParseAddr(address),
		}}))
	})}
	return m
}

// leadsTo asserts the addresses of the service, as read from by, and returns the holders of the server
// Leases.
func (g *group) leadsTo(by *member, addresses ...string) (holders []string) {
	g.t.Helper()
	g.hasAddresses(by, addresses...)
	for _, lease := range by.leases() {
		holders = append(holders, lease["spec"].(map[string]any)["holderIdentity"].(string))
	}
	return holders
}

// leases returns the server Leases.
func (m *member) leases() (found []map[string]any) {
	m.t.Helper()
	for _, lease := range m.must(200, "GET", systemLeases, "", asRoot...)["items"].([]any) {
		if lease := lease.(map[string]any); strings.HasPrefix(nameOf(lease), "controlplane-server-") {
			found = append(found, lease)
		}
	}
	return found
}

func nameOf(object map[string]any) string {
	return object["metadata"].(map[string]any)["name"].(string)
}

// hasAddresses asserts the addresses of the service, as read from by.
func (g *group) hasAddresses(by *member, addresses ...string) {
	g.t.Helper()
	var want, slice []any
	for _, at := range addresses {
		want = append(want, map[string]any{"ip": at})
		slice = append(slice, map[string]any{"addresses": []any{at}, "conditions": map[string]any{"ready": true}})
	}
	subsets := by.must(200, "GET", ownEndpoints, "", asRoot...)["subsets"].([]any)
	assert.Equal(g.t, want, subsets[0].(map[string]any)["addresses"])
	assert.Equal(g.t, slice, by.must(200, "GET", ownSlice, "", asRoot...)["endpoints"])
}

// TestEndpointsOfManyServers checks that the service routes to every live server, independently of the leader,
// and that servers do not undo each other's writes.
func TestEndpointsOfManyServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		a, b, c := g.start("192.0.2.1", 6443), g.start("192.0.2.3", 6443), g.start("192.0.2.2", 6443)
		synctest.Wait()
		assert.Equal(t, []string{"192.0.2.1:6443", "192.0.2.2:6443", "192.0.2.3:6443"}, g.leadsTo(c, "192.0.2.1", "192.0.2.2", "192.0.2.3"))
		assert.Equal(t, 2*3, g.writes(), "two writes for each server that started")
		time.Sleep(time.Hour)
		assert.Zero(t, g.writes())

		// The leader shuts down, then another server.
		a.Drain()
		synctest.Wait()
		assert.Equal(t, []string{"192.0.2.2:6443", "192.0.2.3:6443"}, g.leadsTo(a, "192.0.2.2", "192.0.2.3"))
		require.NoError(t, a.Shutdown(t.Context()))
		d := g.start("192.0.2.4", 6443)
		synctest.Wait()
		g.leadsTo(b, "192.0.2.2", "192.0.2.3", "192.0.2.4")
		require.NoError(t, d.Shutdown(t.Context()))
		synctest.Wait()
		g.leadsTo(b, "192.0.2.2", "192.0.2.3")
		assert.Equal(t, 2*3, g.writes())

		// A server dies, maybe the leader, and restarts before its Lease expires.
		for _, dies := range []*member{c, b} {
			lives := b
			if dies == b {
				lives = c
			}
			dies.dead.Store(true)
			time.Sleep(10 * time.Second)
			g.leadsTo(lives, "192.0.2.2", "192.0.2.3")
			dies.dead.Store(false)
			time.Sleep(time.Minute)
			g.leadsTo(lives, "192.0.2.2", "192.0.2.3")
		}
		assert.Zero(t, g.writes())
		b.dead.Store(true)
		time.Sleep(45 * time.Second) // it may have been the leader
		assert.Equal(t, []string{"192.0.2.2:6443"}, g.leadsTo(c, "192.0.2.2"))
		assert.Equal(t, 2, g.writes())
		b.dead.Store(false)
		time.Sleep(time.Minute)
		g.leadsTo(c, "192.0.2.2", "192.0.2.3")
		assert.Equal(t, 2, g.writes())
		assert.Empty(t, g.log.lines("level=ERROR"))
	})
}

// TestEndpointsOfServersApart checks that a server with another port or address family is not published with
// the leader, that a server with a wrong clock is, and that invalid Leases are harmless.
func TestEndpointsOfServersApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		a := g.start("192.0.2.1", 6443)
		g.start("fd00::7", 6443)
		g.start("192.0.2.2", 443)
		lease := func(name, holder string) {
			a.must(201, "POST", systemLeases, `{"metadata":{"name":"controlplane-server-`+name+`"},
				"spec":{"holderIdentity":"`+holder+`","leaseDurationSeconds":2147483647,"renewTime":"2999-01-01T00:00:00.000000Z"}}`, asRoot...)
		}
		lease("192.0.2.9-6443-a", "192.0.2.9:6443")
		lease("late", "192.0.2.10:6443") // does not belong to a server: the name does not match
		lease("odd", "somewhere")
		synctest.Wait()
		g.leadsTo(a, "192.0.2.1", "192.0.2.9")
		for range 10 { // renew the Lease
			time.Sleep(10 * time.Second)
			a.must(200, "PATCH", systemLeases+"/controlplane-server-192.0.2.9-6443-a", `{"spec":{"renewTime":"1999-01-01T00:00:`+time.Now().Format("05")+`.000000Z"}}`, asRootMerging...)
		}
		g.leadsTo(a, "192.0.2.1", "192.0.2.9")
		time.Sleep(20 * time.Second)
		assert.Equal(t, []string{"192.0.2.1:6443", "192.0.2.2:443", "[fd00::7]:6443"}, g.leadsTo(a, "192.0.2.1"))
		a.must(200, "DELETE", systemLeases+"/"+nameOf(a.leases()[0]), "", asRoot...)
		time.Sleep(5 * time.Second)
		assert.Len(t, g.leadsTo(a, "192.0.2.1"), 3)
	})
}

// TestServersAtOneAddress checks that servers with the same address are published once while any of them
// lives, each with its own Lease.
func TestServersAtOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		leads, b, c := g.start("192.0.2.1", 6443), g.start("192.0.2.2", 6443), g.start("192.0.2.2", 6443)
		synctest.Wait()
		assert.Equal(t, []string{"192.0.2.1:6443", "192.0.2.2:6443", "192.0.2.2:6443"}, g.leadsTo(leads, "192.0.2.1", "192.0.2.2"))
		time.Sleep(time.Minute)
		assert.Equal(t, 2*2, g.writes())

		for range 10 { // a server shuts down, and another starts
			require.NoError(t, b.Shutdown(t.Context()))
			synctest.Wait()
			assert.Equal(t, []string{"192.0.2.1:6443", "192.0.2.2:6443"}, g.leadsTo(leads, "192.0.2.1", "192.0.2.2"))
			b, c = c, g.start("192.0.2.2", 6443)
			time.Sleep(time.Second)
		}
		b.dead.Store(true)
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"192.0.2.1:6443", "192.0.2.2:6443"}, g.leadsTo(leads, "192.0.2.1", "192.0.2.2"))
		assert.Zero(t, g.writes())
		c.Drain()
		synctest.Wait()
		assert.Equal(t, []string{"192.0.2.1:6443"}, g.leadsTo(leads, "192.0.2.1"))
		assert.Equal(t, 2, g.writes())
	})
}

// startApart starts servers that renew their Leases at different times.
func (g *group) startApart(addresses ...string) (members []*member) {
	for _, at := range addresses {
		members = append(members, g.start(at, 6443))
		time.Sleep(700 * time.Millisecond)
	}
	g.leadsTo(members[0], addresses...)
	g.writes()
	return members
}

// TestEndpointsOfAFullStore checks that no server counts as dead while the store is full and no Lease can be
// renewed, nor right after.
func TestEndpointsOfAFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		all := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}
		members := g.startApart(all...)
		for i := range 8 {
			g.full.Store(i%2 == 0)
			time.Sleep(time.Minute + time.Duration(i)*300*time.Millisecond)
			assert.Len(t, g.leadsTo(members[0], all...), 4)
			assert.Zero(t, g.writes())
		}
	})
}

// TestServersLeaveAFullStore checks that a server that shuts down deletes its Lease although the store is
// full, and that the failure to write Endpoints is logged once. When there is room, the Endpoints are
// corrected, without servers that died meanwhile.
func TestServersLeaveAFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		all := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"}
		members := g.startApart(all...)
		g.full.Store(true)
		time.Sleep(time.Minute)
		members[2].Drain()
		members[3].dead.Store(true)
		time.Sleep(10 * time.Minute)
		assert.Equal(t, []string{"192.0.2.1:6443", "192.0.2.2:6443", "192.0.2.4:6443"}, g.leadsTo(members[1], all...))
		assert.Empty(t, g.log.lines("controller=publisher"))
		assert.Len(t, g.log.lines("cannot publish an object"), 2, "once for each object")

		g.full.Store(false)
		time.Sleep(2 * time.Minute)
		assert.Equal(t, []string{"192.0.2.1:6443", "192.0.2.2:6443"}, g.leadsTo(members[1], "192.0.2.1", "192.0.2.2"))
	})
}
