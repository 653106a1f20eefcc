package registry

import (
	"context"
	"net/url"

	"orch.io/controlplane/api/meta"
)

// Connection makes a sub-resource one whose requests go on to another server. What is
// asked for stands in the query, of which an object of the Body of the sub-resource is
// made; Target says of it where the request goes.
type Connection struct {
	Style ConnectStyle

	// Target finds what the call leads to, once admission has seen its object. nil and
	// no error: there is nothing yet, and the answer is empty.
	Target func(ctx context.Context, call *Call) (*Target, error)
}

// ConnectStyle is which requests a connection takes, and what becomes of them.
type ConnectStyle int

// The styles. All but Reads are a CONNECT to admission.
const (
	// Reads: a GET is answered with the text that the target has, as it comes.
	Reads ConnectStyle = iota

	// Streams: a GET or a POST becomes another protocol, such as SPDY or WebSocket,
	// whose bytes go both ways. Either takes the right to create.
	Streams

	// Proxies: any method on the path and on all paths below, which stand in the field
	// path of the object, is a request to the target.
	Proxies
)

// Target is the server that a connection leads to: the agent of a node, or an address.
type Target struct {
	// Node is the node whose agent is asked; nil: the host of URL is asked.
	Node *meta.Object

	// URL is what is asked for. Of an agent it has no host, or one that is a port only:
	// then it is asked by the scheme at that port of the node, if that is another one
	// than the agent's own.
	URL url.URL

	// CallerChosen tells that the caller chose what is asked for. Such requests must not reach
	// addresses that mean something else to the server than to the caller, as those of
	// loopback and of the local link.
	CallerChosen bool

	// InsecureSkipVerify asks for no check of the certificate.
	InsecureSkipVerify bool
}
