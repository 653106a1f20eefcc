package clientconfig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"orch.io/controlplane/internal/inprocess"
)

// Service is a port of a service, as objects refer to one.
type Service struct {
	Namespace, Name string
	Port            int32
}

// Host returns the name that stands in the certificate of the service.
func (s Service) Host() string { return s.Name + "." + s.Namespace + ".svc" }

// Address returns the host and the port.
func (s Service) Address() string { return net.JoinHostPort(s.Host(), strconv.Itoa(int(s.Port))) }

// Endpoint is what a service leads to: the address to dial, or a handler in this
// process.
type Endpoint struct {
	Address string // host:port
	Handler http.Handler
}

// Services find what a service leads to now. They are asked before each request and
// are called by many goroutines at once.
type Services func(ctx context.Context, s Service) (Endpoint, error)

// errNowhere is why an Endpoint cannot be reached.
var errNowhere = errors.New("clientconfig: the service leads nowhere")

// dial connects to what the service of a Remote leads to.
func (r *Remote) dial(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	if r.Endpoint == nil {
		return d.DialContext(ctx, network, address)
	}
	e, err := r.Endpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("clientconfig: %w", err)
	}
	if e.Address == "" {
		return nil, errNowhere
	}
	return d.DialContext(ctx, network, e.Address)
}

// inProcess answers a request if a handler in this process does; else there is no answer.
func (r *Remote) inProcess(req *http.Request) (*http.Response, error) {
	if r.Endpoint == nil {
		return nil, nil
	}
	e, err := r.Endpoint(req.Context())
	if err != nil || e.Handler == nil {
		return nil, err
	}
	return inprocess.Transport(e.Handler).RoundTrip(req)
}
