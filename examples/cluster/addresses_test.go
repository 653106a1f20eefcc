package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/cluster/internal/testbed"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

const servicesPath = "/api/v1/namespaces/services/services"

// network hands out tokens for addresses and ports of services: holding a token guarantees that an
// address or port is free.
type network struct {
	t                *testing.T
	servers          []*testbed.Server
	addresses, ports chan bool
	made             atomic.Int64

	mu   sync.Mutex
	live map[string]bool // guarded by mu: the existing services, and whether each has a node port
}

// create creates a service on the next server, with a node port if one is free. The caller must hold
// the token of an address.
func (n *network) create() (name string) {
	number := n.made.Add(1)
	name, kind, port := fmt.Sprint("s", number), "ClusterIP", false
	if number%2 == 0 {
		select {
		case <-n.ports:
			kind, port = "NodePort", true
		default:
		}
	}
	n.call(number, 201, "POST", servicesPath, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"type":%q,"ports":[{"port":1}]}}`, name, kind))
	n.mu.Lock()
	defer n.mu.Unlock()
	n.live[name] = port
	return name
}

func (n *network) delete(name string) {
	n.call(n.made.Load(), 200, "DELETE", servicesPath+"/"+name, "")
	n.mu.Lock()
	port := n.live[name]
	delete(n.live, name)
	n.mu.Unlock()
	n.addresses <- true
	if port {
		n.ports <- true
	}
}

// call makes a request and checks the status code of the answer.
func (n *network) call(number int64, code int, method, path, body string) testbed.Object {
	p := n.servers[number%int64(len(n.servers))]
	got, answer, err := p.Call(n.t.Context(), method, path, body)
	if err != nil || got != code {
		n.t.Errorf("%s %s: %d %s %v", method, path, got, answer.Message, err)
	}
	return answer
}

// churn creates services, and deletes every fifth, until the given number was created.
func (n *network) churn(clients int, most int64) {
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			var own []string
			for i := 1; n.made.Load() < most && !n.t.Failed(); i++ {
				select {
				case <-n.addresses:
					own = append(own, n.create())
				default:
				}
				if len(own) > 0 && (i%5 == 0 || len(n.addresses) == 0) {
					n.delete(own[0])
					own = own[1:]
				}
			}
		})
	}
	all.Wait()
}

// fill creates services until all addresses are used.
func (n *network) fill(clients int) {
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for len(n.addresses) > 0 && !n.t.Failed() {
				select {
				case <-n.addresses:
					n.create()
				default:
				}
			}
		})
	}
	all.Wait()
}

// clear deletes all services.
func (n *network) clear(clients int) {
	names := make(chan string, len(n.live))
	for name := range n.live {
		names <- name
	}
	close(names)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for name := range names {
				n.delete(name)
			}
		})
	}
	all.Wait()
}

// verify asserts that every service has an address of its own, and a node port of its own if it should
// have one.
func (n *network) verify() {
	n.t.Helper()
	require.False(n.t, n.t.Failed())
	list := n.call(0, 200, "GET", servicesPath, "")
	require.Len(n.t, list.Items, len(n.live))
	addresses, ports := map[string]bool{}, map[int]bool{}
	for _, item := range list.Items {
		address, port := item.Spec.ClusterIP, item.Spec.Ports[0].NodePort
		require.False(n.t, addresses[address], "%s is given twice", address)
		require.False(n.t, ports[port], "%d is given twice", port)
		require.Equal(n.t, n.live[item.Metadata.Name], port != 0)
		if addresses[address] = true; port != 0 {
			ports[port] = true
		}
	}
}

// TestServiceAddressesAreUnique: 64 clients create 10,000 services on three servers and delete some of
// them, up to the last address and port. No address or port is allocated twice or lost, and no request
// is rejected.
func TestServiceAddressesAreUnique(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const clients, services, addresses, ports = 64, 10_000, 4093, 1000
	etcd := etcdtest.Start(t)
	n := &network{
		t: t, live: map[string]bool{}, addresses: make(chan bool, addresses), ports: make(chan bool, ports),
		servers: testbed.StartServers(t, []string{etcd.Endpoint}, 3, "--service-cluster-ip-range", "10.0.0.0/20", "--service-node-port-range", fmt.Sprintf("30000-%d", 30000+ports-1)),
	}
	for range addresses {
		n.addresses <- true
	}
	for range ports {
		n.ports <- true
	}
	n.call(0, 201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"services"}}`)
	began := time.Now()
	n.churn(clients, services-addresses)
	n.verify()
	n.clear(clients)
	n.fill(clients)
	n.verify()
	require.Len(t, n.live, addresses)
	require.Empty(t, n.ports)
	t.Logf("%d services in %s", n.made.Load(), time.Since(began).Round(time.Millisecond))
}
