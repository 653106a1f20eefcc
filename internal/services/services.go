// Package services defines how the server finds the endpoints of services that it calls,
// such as those of webhooks.
package services

import (
	"context"
	"net"
	"net/http"
	"strconv"
)

// Service is a port of a service.
type Service struct {
	Namespace, Name string
	Port            int32
}

// Host returns the DNS name that the service's certificate must be valid for.
func (s Service) Host() string { return s.Name + "." + s.Namespace + ".svc" }

// Address returns host:port.
func (s Service) Address() string { return net.JoinHostPort(s.Host(), strconv.Itoa(int(s.Port))) }

// Endpoint is the address of a service, or a handler in this process that answers in its
// place.
type Endpoint struct {
	Address string // host:port
	Handler http.Handler
}

// Resolver returns the current endpoint of a service. It is called before each request and
// must be safe for concurrent use.
type Resolver func(ctx context.Context, s Service) (Endpoint, error)
