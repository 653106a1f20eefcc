package serviceresolver

import (
	"context"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/server/internal/aggregator"
)

// Fault returns the reason why the objects of a service lead to no endpoint, or nil. The texts are
// the same as in APIService conditions of the field's API server.
func (r *Resolver) Fault(ctx context.Context, of services.Service) *aggregator.Fault {
	if r.override != nil {
		if e, err := r.override(ctx, of); err != nil || e.Handler != nil || e.Address != "" {
			return nil // the program resolves this service
		}
	}
	service, err := r.client.Get(ctx, meta.GroupResource{Resource: "services"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
	switch {
	case meta.IsNotFound(err):
		return &aggregator.Fault{Reason: "ServiceNotFound", Message: fmt.Sprintf("service/%s in %q is not present", of.Name, of.Namespace)}
	case err != nil:
		return &aggregator.Fault{Reason: "ServiceAccessError", Unknown: true,
			Message: fmt.Sprintf("service/%s in %q cannot be checked due to: %v", of.Name, of.Namespace, err)}
	case service.String("spec", "type") == "ExternalName":
		return nil
	}
	for _, port := range service.Objects("spec", "ports") {
		if port.Int("port") == int64(of.Port) {
			return r.endpointFault(ctx, of, port.String("name"))
		}
	}
	return &aggregator.Fault{Reason: "ServicePortError",
		Message: fmt.Sprintf("service/%s in %q is not listening on port %d", of.Name, of.Namespace, of.Port)}
}

// endpointFault returns the reason why a service has no ready endpoint, or nil.
func (r *Resolver) endpointFault(ctx context.Context, of services.Service, port string) *aggregator.Fault {
	_, err := r.readyEndpoint(ctx, of, port)
	if err == nil {
		return nil
	}
	exist, err := r.endpointsExist(ctx, of)
	switch {
	case err != nil:
		return &aggregator.Fault{Reason: "EndpointsAccessError", Unknown: true,
			Message: fmt.Sprintf("service/%s in %q cannot be checked due to: %v", of.Name, of.Namespace, err)}
	case !exist:
		return &aggregator.Fault{Reason: "EndpointsNotFound", Message: fmt.Sprintf("cannot find endpoints for service/%s in %q", of.Name, of.Namespace)}
	}
	return &aggregator.Fault{Reason: "MissingEndpoints",
		Message: fmt.Sprintf("endpoints for service/%s in %q have no addresses with port name %q", of.Name, of.Namespace, port)}
}

// endpointsExist reports whether a service has EndpointSlices or an Endpoints object.
func (r *Resolver) endpointsExist(ctx context.Context, of services.Service) (bool, error) {
	if len(r.slicesOf(of)) > 0 {
		return true, nil
	}
	_, err := r.client.Get(ctx, meta.GroupResource{Resource: "endpoints"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
	if meta.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
