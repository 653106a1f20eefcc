package server

import (
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/manager"
)

// openAggregation creates the aggregator and its controllers if the kind APIService is registered.
// Otherwise s.aggregator stays nil; a nil Aggregator has no APIServices.
func (s *Server) openAggregation(b *Builder) (err error) {
	r := meta.GroupResource{Group: s.names.Group(wellknown.GroupAggregation), Resource: "apiservices"}
	if s.catalog.Types().Type(r) == nil {
		return nil
	}
	p := &manager.Plugin{}
	s.aggregator, err = aggregator.New(aggregator.Options{
		Names: s.names, Objects: aggregator.Cached(s.hub.Cache(r)), Log: s.log, Metrics: s.registry,
		Services: b.resolver.Resolve, Missing: b.resolver.Fault, Certificate: b.Serving.ProxyCertificate,
		Local: func() []aggregator.LocalVersion { return aggregator.LocalVersions(s.catalog.Types().Types()) },
	}, func(key string) { p.Enqueue(key, 0) })
	p.Controller = s.aggregator.Availability(s.servedResources(
		meta.GroupResource{Resource: "services"}, meta.GroupResource{Resource: "endpoints"},
		meta.GroupResource{Group: s.names.Group(wellknown.GroupEndpoints), Resource: "endpointslices"})...)
	b.plugins = append(b.plugins, p)
	return err
}

// servedResources returns the resources among all that the server serves.
func (s *Server) servedResources(all ...meta.GroupResource) []meta.GroupResource {
	return slices.DeleteFunc(all, func(r meta.GroupResource) bool { return s.catalog.Types().Type(r) == nil })
}

// createsAPIServices reports whether the server creates APIServices for the versions that it serves
// itself.
func (s *Server) createsAPIServices() bool {
	return s.aggregator != nil && s.manager.Has("apiservice-registration")
}
