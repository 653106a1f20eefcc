package replicas_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// several starts servers over the same store, which each server treats as shared.
func several(t *testing.T, n int, store storage.Backend, configure ...func(*server.Builder)) (servers []*servertest.Server) {
	for range n {
		servers = append(servers, servertest.New(t, append([]func(*server.Builder){apitest.WithStorage(apitest.SharedStore{Backend: store})}, configure...)...))
	}
	return servers
}

// crowd is a group of clients that create and delete services, some of them with a node port. The
// number of services never exceeds the addresses of the network.
type crowd struct {
	t                *testing.T
	servers          []*servertest.Server
	addresses, ports chan bool // a token for each that may be free

	mu   sync.Mutex
	next int
	live []madeService
}

type madeService struct {
	name string
	port bool
}

// create creates the next service at one of the servers, if an address is free.
func (c *crowd) create(at int) (bool, madeService) {
	c.mu.Lock()
	s := madeService{fmt.Sprint("s", c.next), c.next%3 == 0}
	c.next++
	c.mu.Unlock()
	select {
	case <-c.addresses:
	default:
		return false, s
	}
	if s.port {
		select {
		case <-c.ports:
		default:
			s.port = false
		}
	}
	spec := ""
	if s.port {
		spec = `,"type":"NodePort"`
	}
	code, answer := apitest.Call(c.t, c.servers[at%len(c.servers)], "POST", apitest.ServicesPath, apitest.NewService(s.name, spec))
	return assert.Equal(c.t, 201, code, "%v", answer.Tree()), s
}

// delete deletes a service at one of the servers.
func (c *crowd) delete(at int, s madeService) {
	code, answer := apitest.Call(c.t, c.servers[at%len(c.servers)], "DELETE", apitest.ServicesPath+"/"+s.name, "")
	assert.Equal(c.t, 200, code, "%v", answer.Tree())
	c.addresses <- true
	if s.port {
		c.ports <- true
	}
}

// run lets each client create services, and delete a service in some steps and whenever no address is
// free. The services that are left at the end are live.
func (c *crowd) run(clients, each int) {
	var all sync.WaitGroup
	for id := range clients {
		all.Go(func() {
			var own []madeService
			for made := 0; made < each && !c.t.Failed(); {
				ok, s := c.create(id + made)
				if ok {
					own = append(own, s)
					made++
				}
				if (!ok || made%4 == 0) && len(own) > 0 {
					c.delete(id+made+1, own[0])
					own = own[1:]
				}
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.live = append(c.live, own...)
		})
	}
	all.Wait()
}

// verify asserts that no two services have the same address or port, and that the reservations are
// exactly those of their values.
func (c *crowd) verify(store storage.Backend) {
	c.t.Helper()
	addresses, ports := map[string]bool{}, map[int64]bool{}
	for _, o := range services(c.t, c.servers[0]) {
		addresses[o.String("spec", "clusterIP")] = true
		if n := o.Objects("spec", "ports")[0].Int("nodePort"); n != 0 {
			ports[n] = true
		}
	}
	want := 0
	for _, s := range c.live {
		if s.port {
			want++
		}
	}
	require.Len(c.t, addresses, len(c.live))
	require.Len(c.t, ports, want)
	require.Len(c.t, reserved(c.t, store), len(c.live)+want)
}

// TestConcurrentServersAllocateDistinctAddresses: 64 clients create Services on three servers with
// barely enough addresses. Each Service gets addresses of its own while there is room, and every
// server can use a released address.
func TestConcurrentServersAllocateDistinctAddresses(t *testing.T) {
	t.Parallel()
	const clients, addresses, ports, each = 64, 253, 60, 32
	store := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	servers := several(t, 3, store, apitest.Patient, func(b *server.Builder) {
		b.Kind("", "Service").Allocator = core.ServiceNetwork{
			Addresses: netip.MustParsePrefix("10.0.0.0/24"), FirstPort: 30000, LastPort: 30000 + ports - 1,
		}.Pool()
	})
	c := &crowd{t: t, servers: servers, addresses: make(chan bool, addresses), ports: make(chan bool, ports)}
	for range addresses {
		c.addresses <- true
	}
	for range ports {
		c.ports <- true
	}
	c.run(clients, each)
	c.verify(store)
	for range 2 { // everything can be given, and once more
		for i := 0; len(c.addresses) > 0; i++ {
			ok, s := c.create(i)
			require.True(t, ok)
			c.live = append(c.live, s)
		}
		require.Len(t, c.live, addresses)
		c.verify(store)
		apitest.Must(t, servers[0], 500, "POST", apitest.ServicesPath, apitest.NewService("more", ""))
		var all sync.WaitGroup
		for i, s := range c.live {
			all.Go(func() { c.delete(i, s) })
		}
		all.Wait()
		c.live = nil
		c.verify(store)
	}
}

// TestRetryUsesAddressReleasedMeanwhile: the retry of a write can allocate an address that another
// server held at the first try and released since.
func TestRetryUsesAddressReleasedMeanwhile(t *testing.T) {
	t.Parallel()
	inner := memstore.New(memstore.Options{})
	t.Cleanup(func() { require.NoError(t, inner.Close()) })
	two := func(b *server.Builder) {
		b.Register(registry.Of(registry.Definition[apitest.Site]{Group: "example.com", Version: "v1", Allocator: &registry.Allocator{
			Values: func(o *meta.Object) []string { return []string{fmt.Sprint(o.Int("spec", "port"))} },
			Allocate: func(a *registry.Allocation) ([]meta.StatusCause, error) {
				for port := int64(1); port <= 2; port++ {
					if a.Free(fmt.Sprint(port)) {
						a.Object.Set(port, "spec", "port")
						return nil, nil
					}
				}
				return nil, errors.New("none is left")
			},
		}}))
	}
	store := faultinject.Wrap(apitest.SharedStore{Backend: inner}, nil)
	one := servertest.New(t, apitest.WithStorage(apitest.SharedStore{Backend: inner}), two)
	late := servertest.New(t, apitest.WithStorage(apitest.SharedStore{Backend: store}), two)
	apitest.Must(t, one, 201, "POST", apitest.SitesPath, site("first", `{}`))

	var taken, back sync.Once
	store.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op != faultinject.OpGet || !strings.HasPrefix(c.Key, resource.ReservationPrefix) {
			return faultinject.Fault{}
		}
		taken.Do(func() { apitest.Must(t, one, 201, "POST", apitest.SitesPath, site("other", `{}`)) })
		store.SetPlan(func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpRevision { // of the next look
				back.Do(func() { apitest.Must(t, one, 200, "DELETE", apitest.SitesPath+"/other", "") })
			}
			return faultinject.Fault{}
		})
		return faultinject.Fault{}
	})
	got := apitest.Must(t, late, 201, "POST", apitest.SitesPath, site("second", `{}`))
	require.Equal(t, int64(2), got.Int("spec", "port"))
}
