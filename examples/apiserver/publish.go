package main

import (
	"net"
	"net/netip"
	"os"
	"slices"

	"orch.io/controlplane/server/access"
)

// publish is what the server tells others of itself: where it is, and how it
// verifies callers. The range of services must have room for its own.
func (f *flags) publish(id *identity, at net.Addr) (access.Publish, error) {
	p := access.Publish{URL: "https://" + at.String(), Address: f.network.First()}
	if !f.network.Addresses.IsValid() || f.network.Addresses.Contains(p.Address) {
		where, err := netip.ParseAddrPort(at.String())
		if err != nil {
			return p, err
		}
		p.Port = int(where.Port())
	} else {
		p.Address = netip.Addr{}
	}
	p.Authentication.ClientCAs = id.ca.pem
	if f.authn.clientCAFile != "" {
		more, err := os.ReadFile(f.authn.clientCAFile)
		if err != nil {
			return p, err
		}
		p.Authentication.ClientCAs = slices.Concat(id.ca.pem, more)
	}
	if proxy := &f.authn.proxy; proxy.caFile != "" {
		var err error
		if p.Authentication.ProxyCAs, err = os.ReadFile(proxy.caFile); err != nil {
			return p, err
		}
		p.Authentication.ProxyNames, p.Authentication.UserHeaders, p.Authentication.UIDHeaders = proxy.allowed, proxy.users, proxy.uids
		p.Authentication.GroupHeaders, p.Authentication.Extras = proxy.groups, proxy.extras
	}
	return p, nil
}
