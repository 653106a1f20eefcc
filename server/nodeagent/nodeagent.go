// Package nodeagent is how a server reaches the agents of nodes, and what runs in pods:
// the Connector of clusters in which nodes are reached directly.
package nodeagent

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// defaultPort is that of agents whose nodes do not tell one.
const defaultPort = "10250"

// AddressTypes returns the types of addresses of nodes as they are preferred by default.
func AddressTypes() []string {
	return []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"}
}

// Config says how agents are reached. The zero value trusts those whose certificate an
// authority of the system has signed, and shows them none.
type Config struct {
	// TLS is that of connections to agents: RootCAs are who signs their certificates,
	// Certificates, or GetClientCertificate, is how they know the server. It is not
	// used for pods, whose certificates nobody can check.
	TLS *tls.Config

	// AddressTypes are the types of addresses of nodes that are used, best first; nil is
	// what AddressTypes returns.
	AddressTypes []string

	// Loopback lets callers reach addresses of loopback and of the local link as those of
	// pods, services and nodes, for tests. They are what the server alone can reach:
	// who may write the status of a pod would reach all that.
	Loopback bool
}

// Connector connects a server to agents and pods, with a connection for each request: on
// one that was used before, an upgrade could meet its end, and cannot be tried again.
type Connector struct {
	types []string
	// What callers choose is kept to addresses that are theirs to reach.
	agents, chosenAgents, unverified, addresses *http.Transport
}

// New returns a Connector.
func New(c Config) *Connector {
	base := c.TLS
	if base == nil {
		base = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	control := onlyProxyable
	if c.Loopback {
		control = nil
	}
	unchecked := base.Clone()
	unchecked.InsecureSkipVerify = true
	types := c.AddressTypes
	if types == nil {
		types = AddressTypes()
	}
	return &Connector{
		types: types, agents: transport(base, nil), chosenAgents: transport(base, control), unverified: transport(unchecked, nil),
		addresses: transport(&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, control),
	}
}

type control = func(ctx context.Context, network, address string, c syscall.RawConn) error

// transport returns what carries requests by HTTP/1, of which alone there are upgrades.
func transport(c *tls.Config, control control) *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, ControlContext: control}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
	}
}

// Connect implements server.Connector. A node without an address is 500, and an address
// that callers cannot choose 400.
func (c *Connector) Connect(_ context.Context, to *registry.Target) (*url.URL, http.RoundTripper, error) {
	if to.Node == nil {
		if addr, err := netip.ParseAddr(to.URL.Hostname()); err != nil || addr.Zone() != "" {
			return nil, nil, notAllowed()
		}
		return &url.URL{Scheme: to.URL.Scheme, Host: to.URL.Host}, c.addresses, nil
	}
	host, err := c.address(to.Node)
	if err != nil {
		return nil, nil, err
	}
	port := defaultPort
	if n := to.Node.Int("status", "daemonEndpoints", "kubeletEndpoint", "Port"); n != 0 {
		port = strconv.FormatInt(n, 10)
	}
	if other := to.URL.Port(); other != "" && other != port {
		return &url.URL{Scheme: to.URL.Scheme, Host: net.JoinHostPort(host, other)}, c.addresses, nil
	}
	carrier := c.agents
	switch {
	case to.Chosen:
		carrier = c.chosenAgents
	case to.Unverified:
		carrier = c.unverified
	}
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}, carrier, nil
}

// address is the address at which a node is reached.
func (c *Connector) address(node *meta.Object) (string, error) {
	all := node.Objects("status", "addresses")
	for _, kind := range c.types {
		i := slices.IndexFunc(all, func(a *meta.Object) bool { return a.String("type") == kind && a.String("address") != "" })
		if i >= 0 {
			return all[i].String("address"), nil
		}
	}
	known := make([]string, len(all))
	for i, a := range all {
		known[i] = fmt.Sprintf("{%s %s}", a.String("type"), a.String("address"))
	}
	return "", meta.Failure(http.StatusInternalServerError, "", "no preferred addresses found; known addresses: %s", known)
}

// onlyProxyable refuses to connect to addresses that mean the server or its link. It sees
// what a name was resolved to.
func onlyProxyable(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !proxyable(at.Addr().Unmap()) {
		return notAllowed()
	}
	return nil
}

func proxyable(a netip.Addr) bool {
	return !a.IsLoopback() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLinkLocalUnicast()
}

func notAllowed() error { return meta.BadRequest("address not allowed") }
