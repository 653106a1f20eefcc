package apiserver

import (
	"net"
	"net/netip"
	"os"
	"slices"

	"orch.io/controlplane/server/access"
)

// publish returns what the server publishes about itself: its address, and how it verifies clients. It
// publishes its Service only if the range of Services contains the address of that Service.
func (f *flags) publish(id *identity, at netip.AddrPort) (access.Publish, error) {
	if f.network.advertised.IsValid() {
		at = netip.AddrPortFrom(f.network.advertised, at.Port())
	}
	p := access.Publish{URL: "https://" + at.String(), Address: f.network.First(), Endpoint: at.Addr()}
	if !f.network.Addresses.IsValid() || f.network.Addresses.Contains(p.Address) {
		p.Port = int(at.Port())
	} else {
		p.Address = netip.Addr{}
	}
	p.Authentication.ClientCAs = id.ca.PEM()
	if f.authn.clientCAFile != "" {
		more, err := os.ReadFile(f.authn.clientCAFile)
		if err != nil {
			return p, err
		}
		p.Authentication.ClientCAs = slices.Concat(id.ca.PEM(), more)
	}
	if proxy := &f.authn.proxy; proxy.caFile != "" {
		var err error
		if p.Authentication.ProxyCAs, err = os.ReadFile(proxy.caFile); err != nil {
			return p, err
		}
		p.Authentication.ProxyNames = proxy.allowed
	}
	return p, nil
}

// reachableAddress returns the address at which clients reach a server that listens at an address. If the
// server listens at every address of the machine, that is the first non-loopback address, if there is
// one.
func reachableAddress(at net.Addr, machine func() ([]net.Addr, error)) (netip.AddrPort, error) {
	where, err := netip.ParseAddrPort(at.String())
	if err != nil || !where.Addr().IsUnspecified() {
		return where, err
	}
	list, err := machine()
	if err != nil {
		return where, err
	}
	four := where.Addr().Is4()
	for _, a := range list {
		p, err := netip.ParsePrefix(a.String())
		if err == nil && p.Addr().IsGlobalUnicast() && (p.Addr().Is4() || !four) {
			return netip.AddrPortFrom(p.Addr(), where.Port()), nil
		}
	}
	if four {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), where.Port()), nil
	}
	return netip.AddrPortFrom(netip.IPv6Loopback(), where.Port()), nil
}
