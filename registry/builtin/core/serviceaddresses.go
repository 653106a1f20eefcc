package core

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// addressSpec returns the fields of a service that concern addresses.
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

// IP families, and policies for their number.
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

// assignFamilies sets the IP families and the policy of a service. The families come from the
// request, else from the requested addresses, else from the network, which gives its first family; the policy
// decides about a second family. A headless service without a selector may have any families, because
// its endpoints are maintained elsewhere. Fields that an update omits keep their values.
func (l *serviceAllocation) assignFamilies() {
	s := addressSpec(l.Object)
	if l.Old != nil && hasClusterIP(l.Old) {
		before := addressSpec(l.Old)
		if s.IPFamilyPolicy == nil {
			s.IPFamilyPolicy = before.IPFamilyPolicy
		}
		if len(s.IPFamilies) == 0 {
			s.IPFamilies = before.IPFamilies
		}
		if check.SemanticEqual(s, before) { // unchanged, even if the network has a second family by now
			l.setFamilies(s)
			return
		}
		l.releaseSecondFamily(s, before)
	}
	anyFamily := s.headless() && len(l.Object.Map("spec", "selector")) == 0
	if s.IPFamilyPolicy == nil {
		policy := singleStack
		if anyFamily {
			policy = bothStacks
		}
		s.IPFamilyPolicy = &policy
	}
	l.checkFamilies(s, anyFamily)
	if len(l.Violations) > 0 {
		return
	}
	if len(s.IPFamilies) == 0 {
		s.IPFamilies = []string{family(l.configured()[0].String())}
	}
	if len(s.IPFamilies) == 1 && *s.IPFamilyPolicy != singleStack && (anyFamily || len(l.configured()) == 2) {
		s.IPFamilies = append(s.IPFamilies, map[string]string{familyIPv4: familyIPv6, familyIPv6: familyIPv4}[s.IPFamilies[0]])
	}
	l.setFamilies(s)
}

// releaseSecondFamily removes the second family and address of a service that becomes single-stack,
// unless the caller changed them.
func (l *serviceAllocation) releaseSecondFamily(s, before *ServiceSpec) {
	at := check.At("spec", "ipFamilyPolicy")
	if s.IPFamilyPolicy != nil && *s.IPFamilyPolicy != singleStack {
		const only = "must be 'SingleStack' to release the secondary "
		if len(before.IPFamilies) == 2 && len(s.IPFamilies) == 1 {
			l.Invalid(at, *s.IPFamilyPolicy, only+"IP family")
		}
		if len(before.ClusterIPs) == 2 && len(s.ClusterIPs) == 1 {
			l.Invalid(at, *s.IPFamilyPolicy, only+"cluster IP")
		}
		return
	}
	if slices.Equal(s.IPFamilies, before.IPFamilies) {
		s.IPFamilies = s.IPFamilies[:min(1, len(s.IPFamilies))]
	}
	if slices.Equal(s.ClusterIPs, before.ClusterIPs) && len(s.ClusterIPs) == 2 {
		s.ClusterIPs = s.ClusterIPs[:1]
		l.setAddresses(s.ClusterIPs)
	}
}

// checkFamilies checks the request against the policy and the network, and appends the families of the
// requested addresses.
func (l *serviceAllocation) checkFamilies(s *ServiceSpec, anyFamily bool) {
	at, policy := check.At("spec"), *s.IPFamilyPolicy
	if policy == singleStack {
		const several = "must be 'RequireDualStack' or 'PreferDualStack' when multiple %s are specified"
		if len(s.ClusterIPs) > 1 {
			l.Invalid(at.Field("ipFamilyPolicy"), policy, fmt.Sprintf(several, "cluster IPs"))
		}
		if len(s.IPFamilies) > 1 {
			l.Invalid(at.Field("ipFamilyPolicy"), policy, fmt.Sprintf(several, "IP families"))
		}
	}
	has := map[string]bool{}
	for _, network := range l.configured() {
		has[family(network.String())] = true
	}
	for i, ip := range s.ClusterIPs {
		switch f := family(ip); {
		case i < len(s.IPFamilies) || ip == noAddress:
		case has[f]:
			s.IPFamilies = append(s.IPFamilies, f)
		default:
			l.Invalid(at.Field("clusterIPs").Index(i), s.ClusterIPs, f+" is not configured on this cluster")
		}
	}
	if len(l.Violations) > 0 || anyFamily {
		return
	}
	if policy == bothStacks && len(has) < 2 {
		l.Invalid(at.Field("ipFamilyPolicy"), policy, "this cluster is not configured for dual-stack services")
	}
	for i, f := range s.IPFamilies {
		if !has[f] {
			l.Invalid(at.Field("ipFamilies").Index(i), f, "not configured on this cluster")
		}
	}
}

func (l *serviceAllocation) setFamilies(s *ServiceSpec) {
	list := make([]any, len(s.IPFamilies))
	for i, f := range s.IPFamilies {
		list[i] = f
	}
	l.Object.Set(list, "spec", "ipFamilies")
	l.Object.Set(*s.IPFamilyPolicy, "spec", "ipFamilyPolicy")
}

func (l *serviceAllocation) setAddresses(ips []string) {
	list := make([]any, len(ips))
	for i, ip := range ips {
		list[i] = ip
	}
	l.Object.Set(ips[0], "spec", "clusterIP")
	l.Object.Set(list, "spec", "clusterIPs")
}

// assignAddresses allocates the missing addresses of a service, an address of each family, and checks
// requested ones. Existing addresses are kept.
func (l *serviceAllocation) assignAddresses() error {
	var had []string
	if l.Old != nil && hasClusterIP(l.Old) {
		had = l.Old.Strings("spec", "clusterIPs")
	}
	ips, at := l.Object.Strings("spec", "clusterIPs"), check.At("spec", "clusterIPs")
	if len(ips) > 0 && ips[0] == noAddress {
		return nil
	}
	networks := l.networks()
	for i, f := range l.Object.Strings("spec", "ipFamilies") {
		if i < len(had) && i < len(ips) {
			if i > 0 && ips[i] != had[i] { // validation reports a change of the first address
				l.Invalid(at.Index(i), ips, immutableOnceSet)
			}
			continue
		}
		if i < len(ips) {
			l.checkRequestedAddress(at, networks, ips, i)
			continue
		}
		ip, ok := l.freeAddress(networks, f)
		if !ok {
			return fmt.Errorf("failed to allocate a service IP: the networks of %s are full", f)
		}
		ips = append(ips, ip)
	}
	if len(ips) > 0 {
		l.setAddresses(ips)
	}
	return nil
}

// checkRequestedAddress checks that a requested address is in the networks and free.
func (l *serviceAllocation) checkRequestedAddress(at *check.Path, networks []netip.Prefix, ips []string, i int) {
	addr, err := netip.ParseAddr(ips[i])
	inside := func(n netip.Prefix) bool { return contains(n, addr) }
	switch {
	case err != nil || !slices.ContainsFunc(networks, inside):
		l.Invalid(at, ips, "failed to allocate IP "+ips[i]+": the provided network does not match the current range")
	case !l.Free(addressValue(ips[i])):
		l.Invalid(at, ips, "failed to allocate IP "+ips[i]+": provided IP is already allocated")
	}
}

// networks returns the networks for new addresses: the configured networks and the networks of
// ServiceCIDR objects. A network is left out if all of its objects are being deleted or not ready.
func (l *serviceAllocation) networks() []netip.Prefix {
	networks, ready, unavailable := l.configured(), map[netip.Prefix]bool{}, map[netip.Prefix]bool{}
	for _, o := range l.Sources {
		usable := !o.Terminating() && !slices.ContainsFunc(o.Objects("status", "conditions"), func(c *meta.Object) bool {
			return c.String("type") == "Ready" && c.String("status") != "True"
		})
		for _, text := range o.Strings("spec", "cidrs") {
			network, err := netip.ParsePrefix(text)
			if err != nil {
				continue
			}
			ready[network], unavailable[network] = ready[network] || usable, unavailable[network] || !usable
			if usable && !slices.Contains(networks, network) {
				networks = append(networks, network)
			}
		}
	}
	return slices.DeleteFunc(networks, func(n netip.Prefix) bool { return unavailable[n] && !ready[n] })
}

// contains reports whether services may use an address: it is in the network, and is neither the
// network nor the broadcast address.
func contains(network netip.Prefix, a netip.Addr) bool {
	if a == network.Addr() || !network.Contains(a) {
		return false
	}
	return a.Is6() || network.Contains(a.Next())
}

// freeAddress returns a free address of the family other than the server's own, from the first network
// that has any. It starts above the range that is reserved for manual assignment.
func (l *serviceAllocation) freeAddress(networks []netip.Prefix, of string) (string, bool) {
	for _, network := range networks {
		if family(network.String()) != of {
			continue
		}
		n := addressCount(network)
		n = findFree(1, n-1, min(max(n/16, 16), 256), func(i int64) bool {
			a := offset(network.Addr(), i)
			return contains(network, a) && a != l.First() && l.Free(a.String())
		})
		if n >= 0 {
			return offset(network.Addr(), n).String(), true
		}
	}
	return "", false
}

// addressCount returns the number of addresses of a network, including the network and the broadcast
// address, limited to 2^20.
func addressCount(network netip.Prefix) int64 {
	const maxCount = 1 << 20
	bits := network.Addr().BitLen() - network.Bits()
	if bits > 20 {
		return maxCount
	}
	return 1 << bits
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
