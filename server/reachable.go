package server

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/aggregator"
)

// missing tells why a service leads nowhere, as far as the objects say; nil is nothing.
func (s *serviceResolver) missing(ctx context.Context, of Service) *aggregator.Fault {
	if s.own != nil {
		if e, err := s.own(ctx, of); err != nil || e.Handler != nil || e.Address != "" {
			return nil // the objects say nothing then
		}
	}
	service, err := s.client.Get(ctx, meta.GroupResource{Resource: "services"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
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
			return s.unready(ctx, of, port.String("name"))
		}
	}
	return &aggregator.Fault{Reason: "ServicePortError",
		Message: fmt.Sprintf("service/%s in %q is not listening on port %d", of.Name, of.Namespace, of.Port)}
}

// unready tells why a service has no endpoint that is ready.
func (s *serviceResolver) unready(ctx context.Context, of Service, port string) *aggregator.Fault {
	_, err := s.ready(ctx, of, port)
	if err == nil {
		return nil
	}
	found, err := s.anyEndpoints(ctx, of)
	switch {
	case err != nil:
		return &aggregator.Fault{Reason: "EndpointsAccessError", Unknown: true,
			Message: fmt.Sprintf("service/%s in %q cannot be checked due to: %v", of.Name, of.Namespace, err)}
	case !found:
		return &aggregator.Fault{Reason: "EndpointsNotFound", Message: fmt.Sprintf("cannot find endpoints for service/%s in %q", of.Name, of.Namespace)}
	}
	return &aggregator.Fault{Reason: "MissingEndpoints",
		Message: fmt.Sprintf("endpoints for service/%s in %q have no addresses with port name %q", of.Name, of.Namespace, port)}
}

// anyEndpoints reports whether there are objects that say what a service leads to.
func (s *serviceResolver) anyEndpoints(ctx context.Context, of Service) (bool, error) {
	var names []string
	s.slices.Read(func(by sliceNames) {
		names = slices.Collect(maps.Keys(by[meta.Key{Namespace: of.Namespace, Name: of.Name}]))
	})
	if len(names) > 0 {
		return true, nil
	}
	_, err := s.client.Get(ctx, meta.GroupResource{Resource: "endpoints"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
	if meta.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
