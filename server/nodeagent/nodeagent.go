// Package nodeagent connects a server to node agents (kubelets), pods and services. Its Connector is for
// clusters in which the server can reach nodes directly.
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

// defaultPort is the port of an agent if the status of its node has none.
const defaultPort = "10250"

// AddressTypes returns the default order of preference of node address types.
func AddressTypes() []string {
	return []string{"Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"}
}

// Config configures a Connector. The zero value accepts agents whose certificate was signed by an authority
// of the host system, and presents no client certificate.
type Config struct {
	// TLS is the configuration of connections to agents. RootCAs verify their certificates; Certificates or
	// GetClientCertificate authenticate the server. Connections to pods do not use it, because pods have no
	// certificates that could be verified.
	TLS *tls.Config

	// AddressTypes are the types of node addresses to use, in order of preference; nil means the result of
	// AddressTypes.
	AddressTypes []string

	// Loopback allows connections to loopback and link-local addresses of pods, services and nodes. Set it in
	// tests only: such addresses belong to the server's own machine, and a user with the right to write the
	// status of a pod could reach it by them.
	Loopback bool
}

// Connector connects a server to agents, pods and services. It is safe for concurrent use. It opens a
// connection for each request, because an upgrade request on a reused connection that the peer has closed
// could not be retried.
type Connector struct {
	types []string
	// chosenAgents and addresses refuse loopback and link-local addresses, because callers choose the
	// address.
	agents, chosenAgents, unverified, addresses *http.Transport
}

// New returns a Connector. It does not change c.
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

// transport returns an HTTP/1.1 transport, because HTTP/2 has no upgrade. control can refuse an address; nil
// allows all.
func transport(c *tls.Config, control control) *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, ControlContext: control}
	return &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: 10 * time.Second, DisableCompression: true,
		MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
	}
}

// Connect implements server.Connector. The error is a Status: 500 if the node has no address of the
// configured types, 400 if the address is not allowed.
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
	case to.CallerChosen:
		carrier = c.chosenAgents
	case to.InsecureSkipVerify:
		carrier = c.unverified
	}
	return &url.URL{Scheme: "https", Host: net.JoinHostPort(host, port)}, carrier, nil
}

// address returns the preferred address of a node.
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

// onlyProxyable refuses loopback and link-local addresses. It runs after name resolution, so that a host name
// cannot bypass it.
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
