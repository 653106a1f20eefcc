package registry

import (
	"context"
	"net/url"

	"orch.io/controlplane/api/meta"
)

// Connection makes a subresource forward its requests to another server. The server makes an object
// of the subresource's Body from the query parameters of the request; Target decides by this object
// where the request goes.
type Connection struct {
	Style ConnectStyle

	// Target returns the destination of a call, after admission. If it returns nil and no error,
	// nothing is available yet, and the answer is empty.
	Target func(ctx context.Context, call *Call) (*Target, error)
}

// ConnectStyle determines the methods that a Connection accepts and how it forwards them.
type ConnectStyle int

// The styles. Admission sees requests of all styles except Reads as CONNECT.
const (
	// Reads answers a GET with the text that the target sends, as it arrives.
	Reads ConnectStyle = iota

	// Streams upgrades a GET or POST to a bidirectional protocol such as SPDY or WebSocket. Both
	// methods need the permission to create.
	Streams

	// Proxies forwards requests of any method on the path of the subresource and all paths below it.
	// The field path of the object holds the part below.
	Proxies
)

// Target is the destination of a Connection: the agent (kubelet) of a node, or an address.
type Target struct {
	// Node is the node to whose agent the request goes. If it is nil, the request goes to the host
	// of URL.
	Node *meta.Object

	// URL is the requested URL. For an agent its host is empty, or only a port; if the port differs
	// from the agent's own, the request goes to that port of the node with the scheme of URL.
	URL url.URL

	// CallerChosen reports that the client chose the address. Such a request must not reach addresses
	// that mean something else to the server than to the client, such as loopback and link-local
	// addresses.
	CallerChosen bool

	// InsecureSkipVerify disables the verification of the target's certificate.
	InsecureSkipVerify bool
}
