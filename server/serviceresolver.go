package server

import "orch.io/controlplane/internal/services"

// ServiceResolver returns the current endpoint of a service. It is called before each request
// and must be safe for concurrent use.
type ServiceResolver = services.Resolver

// Service is a port of a service.
type Service = services.Service

// Endpoint is the address of a service (host:port), or a handler in this process that answers
// in its place.
type Endpoint = services.Endpoint
