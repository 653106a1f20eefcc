package core

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// ServiceNetwork configures the IP addresses and node ports of services. If the kind ServiceCIDR is
// served, its objects add networks.
type ServiceNetwork struct {
	Addresses netip.Prefix // zero means 10.0.0.0/24
	Second    netip.Prefix // network of the other family for dual-stack services; zero means none
	FirstPort int64        // first node port; zero means 30000
	LastPort  int64        // last node port; zero means 32767
}

// First returns the first address of the network, which is the server's own.
func (n ServiceNetwork) First() netip.Addr { return n.configured()[0].Addr().Next() }

// configured returns the networks of the configuration.
func (n ServiceNetwork) configured() []netip.Prefix {
	first := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, 0}), 24)
	if n.Addresses.IsValid() {
		first = n.Addresses.Masked()
	}
	if !n.Second.IsValid() || n.Second.Addr().Is6() == first.Addr().Is6() {
		return []netip.Prefix{first}
	}
	return []netip.Prefix{first, n.Second.Masked()}
}

// Pool returns the allocator of the network.
func (n ServiceNetwork) Pool() *registry.Allocator {
	if n.FirstPort == 0 {
		n.FirstPort = 30000
	}
	if n.LastPort == 0 {
		n.LastPort = 32767
	}
	return &registry.Allocator{
		Values: heldByService, Allocate: n.allocate,
		Source: meta.GroupResource{Group: wellknown.GroupNetworking, Resource: "servicecidrs"}, Initial: n.initial,
	}
}

// initial returns the ServiceCIDR object for the configured networks, which the server creates at its
// start.
func (n ServiceNetwork) initial(p names.Profile) []*meta.Object {
	var cidrs []any
	for _, network := range n.configured() {
		cidrs = append(cidrs, network.String())
	}
	o := meta.NewObject(map[string]any{"spec": map[string]any{"cidrs": cidrs}})
	o.SetGVK(meta.GroupVersionKind{Group: p.Group(wellknown.GroupNetworking), Version: "v1", Kind: "ServiceCIDR"})
	o.SetName(p.Wire(wellknown.ServerService))
	return []*meta.Object{o}
}

// heldByService returns the allocated values of a service: its addresses and node ports.
func heldByService(o *meta.Object) []string {
	var out []string
	for _, ip := range o.Strings("spec", "clusterIPs") {
		if ip != noAddress {
			out = append(out, addressValue(ip))
		}
	}
	for _, p := range portsOf(o) {
		if n := p.Int("nodePort"); n != 0 {
			out = append(out, portValue(n))
		}
	}
	if n := o.Int("spec", "healthCheckNodePort"); n != 0 {
		out = append(out, portValue(n))
	}
	return out
}

// addressValue returns the canonical form of an address, so that different spellings are the same
// value.
func addressValue(ip string) string {
	if a, err := netip.ParseAddr(ip); err == nil {
		return a.String()
	}
	return ip
}

func portValue(n int64) string { return ":" + strconv.FormatInt(n, 10) }

// serviceAllocation is an allocation for a service in progress.
type serviceAllocation struct {
	check.Violations
	ServiceNetwork
	*registry.Allocation
}

func (n ServiceNetwork) allocate(a *registry.Allocation) ([]meta.StatusCause, error) {
	l := &serviceAllocation{ServiceNetwork: n, Allocation: a}
	if hasClusterIP(l.Object) {
		addressSpec(l.Object).addresses(&l.Violations, check.At("spec"))
		if len(l.Violations) == 0 {
			l.assignFamilies()
		}
		if len(l.Violations) > 0 {
			return l.Violations, nil
		}
		if err := l.assignAddresses(); err != nil {
			return nil, err
		}
	}
	if err := l.assignPorts(); err != nil {
		return nil, err
	}
	return l.Violations, nil
}

// findFree returns a random number from low to high that ok accepts, or -1. It tries the first numbers
// last, because they are reserved for manual assignment.
func findFree(low, high, first int64, ok func(int64) bool) int64 {
	count := high - low + 1
	if count <= 0 {
		return -1
	}
	first = min(first, count-1)
	start := first + rand.Int64N(count-first)
	for i := range count - first {
		if n := low + first + (start-first+i)%(count-first); ok(n) {
			return n
		}
	}
	for n := low; n < low+first; n++ {
		if ok(n) {
			return n
		}
	}
	return -1
}

// assignPorts allocates the node ports of a service. Ports with the same number for several protocols
// share the node port.
func (l *serviceAllocation) assignPorts() error {
	if !hasNodePorts(l.Object) {
		return nil
	}
	allocate := l.Object.String("spec", "type") == NodePortType || l.Object.Bool("spec", "allocateLoadBalancerNodePorts")
	ports, numbers, taken := portsOf(l.Object), map[int64]int64{}, map[int64]bool{}
	for i, p := range ports {
		n := p.Int("nodePort")
		if n == 0 {
			continue
		}
		at := check.At("spec", "ports").Index(i).Field("nodePort")
		if taken[n] && numbers[p.Int("port")] != n {
			l.Invalid(at, n, "provided port is already allocated")
		} else {
			l.checkRequestedPort(at, n)
		}
		numbers[p.Int("port")], taken[n] = n, true
	}
	for _, p := range ports {
		if !allocate || p.Int("nodePort") != 0 {
			continue
		}
		n := numbers[p.Int("port")]
		if n == 0 {
			var err error
			if n, err = l.freePort(taken); err != nil {
				return err
			}
			numbers[p.Int("port")] = n
		}
		p.Set(n, "nodePort")
	}
	if !hasHealthCheckPort(l.Object) {
		return nil
	}
	if n := l.Object.Int("spec", "healthCheckNodePort"); n != 0 {
		l.checkRequestedPort(check.At("spec", "healthCheckNodePort"), n)
		return nil
	}
	n, err := l.freePort(taken)
	if err == nil {
		l.Object.Set(n, "spec", "healthCheckNodePort")
	}
	return err
}

// checkRequestedPort checks that a requested node port is in the range and free.
func (l *serviceAllocation) checkRequestedPort(at *check.Path, n int64) {
	switch {
	case n < l.FirstPort || n > l.LastPort:
		l.Invalid(at, n, fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", l.FirstPort, l.LastPort))
	case !l.Free(portValue(n)):
		l.Invalid(at, n, "provided port is already allocated")
	}
}

// freePort returns a free node port and adds it to taken.
func (l *serviceAllocation) freePort(taken map[int64]bool) (int64, error) {
	count := l.LastPort - l.FirstPort + 1
	n := findFree(l.FirstPort, l.LastPort, min(max(count/32, 16), 128), func(n int64) bool {
		return !taken[n] && l.Free(portValue(n))
	})
	if n < 0 {
		return 0, fmt.Errorf("failed to allocate a node port: %d-%d are all taken", l.FirstPort, l.LastPort)
	}
	taken[n] = true
	return n, nil
}
