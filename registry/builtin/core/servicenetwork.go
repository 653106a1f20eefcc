package core

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// ServiceNetwork is what services get their addresses and ports from.
type ServiceNetwork struct {
	Addresses netip.Prefix // zero: 10.0.0.0/24
	FirstPort int64        // of the nodes; zero: 30000
	LastPort  int64        // zero: 32767
}

// First returns the first address of the network, that of the server itself.
func (n ServiceNetwork) First() netip.Addr { return n.network().Addr().Next() }

func (n ServiceNetwork) network() netip.Prefix {
	if !n.Addresses.IsValid() {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, 0}), 24)
	}
	return n.Addresses.Masked()
}

// Pool returns the pool that gives services of the network what they lack.
func (n ServiceNetwork) Pool() *registry.Pool {
	n.Addresses = n.network()
	if n.FirstPort == 0 {
		n.FirstPort = 30000
	}
	if n.LastPort == 0 {
		n.LastPort = 32767
	}
	return &registry.Pool{Held: heldByService, Allot: n.allot}
}

// heldByService returns the addresses and the ports of the nodes that a service
// has.
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

// addressValue is one text for all spellings of an address.
func addressValue(ip string) string {
	if a, err := netip.ParseAddr(ip); err == nil {
		return a.String()
	}
	return ip
}

func portValue(n int64) string { return ":" + strconv.FormatInt(n, 10) }

// allotment gives values to one service.
type allotment struct {
	check.Faults
	ServiceNetwork
	obj, old *meta.Object
	free     func(string) bool
}

func (n ServiceNetwork) allot(obj, old *meta.Object, free func(string) bool) ([]meta.Cause, error) {
	l := &allotment{ServiceNetwork: n, obj: obj, old: old, free: free}
	if addressed(obj) {
		spec := addressSpec(obj)
		spec.addresses(&l.Faults, check.At("spec"))
		if len(l.Faults) > 0 {
			return l.Faults, nil
		}
		l.families()
		if len(l.Faults) > 0 {
			return l.Faults, nil
		}
		if err := l.addresses(); err != nil {
			return nil, err
		}
	}
	if err := l.ports(); err != nil {
		return nil, err
	}
	return l.Faults, nil
}

// addressSpec returns what the rules about addresses look at.
func addressSpec(o *meta.Object) *ServiceSpec {
	s := &ServiceSpec{
		Type: o.String("spec", "type"), ClusterIP: o.String("spec", "clusterIP"),
		ClusterIPs: o.Strings("spec", "clusterIPs"), IPFamilies: o.Strings("spec", "ipFamilies"),
	}
	if v, _ := o.Get("spec", "ipFamilyPolicy"); v != nil {
		p, _ := v.(string)
		s.IPFamilyPolicy = &p
	}
	return s
}

// The IP families and how many of them a service has.
const (
	familyIPv4  = "IPv4"
	familyIPv6  = "IPv6"
	singleStack = "SingleStack"
	bothStacks  = "RequireDualStack"
)

func family(ip string) string {
	if strings.Contains(ip, ":") {
		return familyIPv6
	}
	return familyIPv4
}

// families says of which families a service is. The network has one; only a
// headless service without a selector may be of both, for somebody else keeps
// its endpoints.
func (l *allotment) families() {
	own, policy := family(l.Addresses.Addr().String()), l.obj.String("spec", "ipFamilyPolicy")
	families, at := l.obj.Strings("spec", "ipFamilies"), check.At("spec")
	ips := l.obj.Strings("spec", "clusterIPs")
	if len(ips) > 0 && ips[0] == noAddress && len(l.obj.Map("spec", "selector")) == 0 {
		if len(families) == 0 {
			families = []string{own}
		}
		if len(families) < 2 && policy != singleStack {
			families = append(families, map[string]string{familyIPv4: familyIPv6, familyIPv6: familyIPv4}[families[0]])
		}
		l.setFamilies(families, bothStacks)
		return
	}
	if policy == bothStacks {
		l.Invalid(at.Field("ipFamilyPolicy"), policy, "this cluster is not configured for dual-stack services")
	}
	for i, f := range families {
		if f != own {
			l.Invalid(at.Field("ipFamilies").Index(i), f, "not configured on this cluster")
		}
	}
	for i, ip := range ips {
		if i >= len(families) && ip != noAddress && family(ip) != own {
			l.Invalid(at.Field("clusterIPs").Index(i), ips, family(ip)+" is not configured on this cluster")
		}
	}
	l.setFamilies([]string{own}, singleStack)
}

func (l *allotment) setFamilies(families []string, policy string) {
	list := make([]any, len(families))
	for i, f := range families {
		list[i] = f
	}
	l.obj.Set(list, "spec", "ipFamilies")
	fill(l.obj, policy, "spec", "ipFamilyPolicy")
}

// addresses gives a service that has no address one, and checks the one that the
// caller wants. A service keeps the address that it has.
func (l *allotment) addresses() error {
	if l.old != nil && addressed(l.old) {
		return nil
	}
	if wanted := l.obj.Strings("spec", "clusterIPs"); len(wanted) > 0 {
		ip := wanted[0]
		addr, err := netip.ParseAddr(ip)
		switch at := check.At("spec", "clusterIPs"); {
		case ip == noAddress:
		case err != nil || !l.contains(addr):
			l.Invalid(at, ip, "failed to allocate IP: it is not in the valid range "+l.Addresses.String())
		case !l.free(addressValue(ip)):
			l.Invalid(at, ip, "failed to allocate IP: provided IP is already allocated")
		}
		return nil
	}
	ip, ok := l.address()
	if !ok {
		return fmt.Errorf("failed to allocate a service IP: %s is full", l.Addresses)
	}
	l.obj.Set(ip, "spec", "clusterIP")
	l.obj.Set([]any{ip}, "spec", "clusterIPs")
	return nil
}

// size is how many addresses the network has, network and broadcast address
// included; of a large one only the first part is used.
func (l *allotment) size() int64 {
	const most = 1 << 20
	bits := l.Addresses.Addr().BitLen() - l.Addresses.Bits()
	if bits > 20 {
		return most
	}
	return 1 << bits
}

// contains reports whether services may have an address.
func (l *allotment) contains(a netip.Addr) bool {
	if a == l.Addresses.Addr() || !l.Addresses.Contains(a) {
		return false
	}
	return a.Is6() || l.Addresses.Contains(a.Next())
}

// address returns an address that is free and not that of the server itself. It
// begins above the part that is left to those who choose addresses by hand.
func (l *allotment) address() (string, bool) {
	n := l.size()
	n = l.search(1, n-1, min(max(n/16, 16), 256), func(i int64) bool {
		a := offset(l.Addresses.Addr(), i)
		return l.contains(a) && a != l.First() && l.free(a.String())
	})
	return offset(l.Addresses.Addr(), max(n, 0)).String(), n >= 0
}

func offset(a netip.Addr, n int64) netip.Addr {
	b := a.AsSlice()
	for i := len(b) - 1; n > 0; i-- {
		n += int64(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	out, _ := netip.AddrFromSlice(b)
	return out
}

// search returns a number from low to high that ok accepts, by chance and if
// possible not among the first ones; -1: there is none.
func (l *allotment) search(low, high, first int64, ok func(int64) bool) int64 {
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

// ports gives the ports of a service their numbers on the nodes. Ports of
// several protocols that share a number share it there too.
func (l *allotment) ports() error {
	if !onNodes(l.obj) {
		return nil
	}
	wanted := l.obj.String("spec", "type") == NodePortType || l.obj.Bool("spec", "allocateLoadBalancerNodePorts")
	ports, numbers, taken := portsOf(l.obj), map[int64]int64{}, map[int64]bool{}
	for i, p := range ports {
		n := p.Int("nodePort")
		if n == 0 {
			continue
		}
		at := check.At("spec", "ports").Index(i).Field("nodePort")
		if taken[n] && numbers[p.Int("port")] != n {
			l.Invalid(at, n, "provided port is already allocated")
		} else {
			l.given(at, n)
		}
		numbers[p.Int("port")], taken[n] = n, true
	}
	for _, p := range ports {
		if !wanted || p.Int("nodePort") != 0 {
			continue
		}
		n := numbers[p.Int("port")]
		if n == 0 {
			var err error
			if n, err = l.port(taken); err != nil {
				return err
			}
			numbers[p.Int("port")] = n
		}
		p.Set(n, "nodePort")
	}
	if !healthChecked(l.obj) {
		return nil
	}
	if n := l.obj.Int("spec", "healthCheckNodePort"); n != 0 {
		l.given(check.At("spec", "healthCheckNodePort"), n)
		return nil
	}
	n, err := l.port(taken)
	if err == nil {
		l.obj.Set(n, "spec", "healthCheckNodePort")
	}
	return err
}

// given checks a port of the nodes that the caller wants.
func (l *allotment) given(at *check.Path, n int64) {
	switch {
	case n < l.FirstPort || n > l.LastPort:
		l.Invalid(at, n, fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", l.FirstPort, l.LastPort))
	case !l.free(portValue(n)):
		l.Invalid(at, n, "provided port is already allocated")
	}
}

// port returns a free port of the nodes.
func (l *allotment) port(taken map[int64]bool) (int64, error) {
	count := l.LastPort - l.FirstPort + 1
	n := l.search(l.FirstPort, l.LastPort, min(max(count/32, 16), 128), func(n int64) bool {
		return !taken[n] && l.free(portValue(n))
	})
	if n < 0 {
		return 0, fmt.Errorf("failed to allocate a node port: %d-%d are all taken", l.FirstPort, l.LastPort)
	}
	taken[n] = true
	return n, nil
}
