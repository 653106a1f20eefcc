package server

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
)

// serviceResolver finds the endpoint of a service by its objects, unless the program names one.
type serviceResolver struct {
	names  names.Profile
	client client.Client
	own    ServiceResolver // of the program, asked first; or nil
	slices *client.Index[sliceNames]
}

func newServiceResolver(p names.Profile, c client.Client, own ServiceResolver) *serviceResolver {
	s := &serviceResolver{names: p, client: c, own: own}
	service := func(slice *meta.Object) meta.Key {
		return meta.Key{Namespace: slice.Namespace(), Name: slice.Labels()[p.Wire(names.ServiceName)]}
	}
	s.slices = client.NewIndex(c, []meta.GroupResource{s.endpointSlices()}, func() sliceNames { return sliceNames{} },
		func(of sliceNames, e client.Event) {
			if e.Old != nil {
				of.remove(service(e.Old), e.Key.Name)
			}
			if e.Object != nil {
				of.add(service(e.Object), e.Key.Name)
			}
		})
	return s
}

func (s *serviceResolver) endpointSlices() meta.GroupResource {
	return meta.GroupResource{Group: s.names.Group(names.GroupEndpoints), Resource: "endpointslices"}
}

// sliceNames are the names of the EndpointSlices of each service.
type sliceNames map[meta.Key]map[string]bool

func (of sliceNames) add(service meta.Key, slice string) {
	if of[service] == nil {
		of[service] = map[string]bool{}
	}
	of[service][slice] = true
}

func (of sliceNames) remove(service meta.Key, slice string) {
	if delete(of[service], slice); len(of[service]) == 0 {
		delete(of, service)
	}
}

func (s *serviceResolver) find(ctx context.Context, of Service) (Endpoint, error) {
	if s.own != nil {
		if e, err := s.own(ctx, of); err != nil || e.Handler != nil || e.Address != "" {
			return e, err
		}
	}
	service, err := s.client.Get(ctx, meta.GroupResource{Resource: "services"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
	if err != nil {
		return Endpoint{}, err
	}
	if service.String("spec", "type") == "ExternalName" {
		return endpoint(service.String("spec", "externalName"), int64(of.Port)), nil
	}
	for _, port := range service.Objects("spec", "ports") {
		if port.Int("port") != int64(of.Port) {
			continue
		}
		if ip := service.String("spec", "clusterIP"); ip != "" && ip != "None" {
			return endpoint(ip, int64(of.Port)), nil
		}
		return s.ready(ctx, of, port.String("name"))
	}
	return Endpoint{}, fmt.Errorf("the service %s/%s has no port %d", of.Namespace, of.Name, of.Port)
}

func endpoint(host string, port int64) Endpoint {
	return Endpoint{Address: net.JoinHostPort(host, strconv.FormatInt(port, 10))}
}

// ready returns one of the endpoints of a service that are ready, at random: of its
// EndpointSlices, or of its Endpoints where there are none.
func (s *serviceResolver) ready(ctx context.Context, of Service, port string) (Endpoint, error) {
	var found []Endpoint
	var own []string
	s.slices.Read(func(by sliceNames) {
		own = slices.Collect(maps.Keys(by[meta.Key{Namespace: of.Namespace, Name: of.Name}]))
	})
	for _, name := range own {
		slice, err := s.client.Get(ctx, s.endpointSlices(), meta.Key{Namespace: of.Namespace, Name: name})
		if meta.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Endpoint{}, err
		}
		if slice.Labels()[s.names.Wire(names.ServiceName)] != of.Name {
			continue // it is another service's by now
		}
		number := portNumber(slice.Objects("ports"), port)
		for _, e := range slice.Objects("endpoints") {
			if ready, said := e.Get("conditions", "ready"); said && ready == false {
				continue
			}
			if addresses := e.Strings("addresses"); number != 0 && len(addresses) > 0 {
				found = append(found, endpoint(addresses[0], number))
			}
		}
	}
	if len(found) == 0 {
		var err error
		if found, err = s.endpoints(ctx, of, port); err != nil {
			return Endpoint{}, err
		}
	}
	if len(found) == 0 {
		return Endpoint{}, fmt.Errorf("no endpoints available for service %q", of.Name)
	}
	return found[rand.IntN(len(found))], nil
}

func (s *serviceResolver) endpoints(ctx context.Context, of Service, port string) (found []Endpoint, err error) {
	obj, err := s.client.Get(ctx, meta.GroupResource{Resource: "endpoints"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
	if meta.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, subset := range obj.Objects("subsets") {
		number := portNumber(subset.Objects("ports"), port)
		for _, a := range subset.Objects("addresses") {
			if ip := a.String("ip"); number != 0 && ip != "" {
				found = append(found, endpoint(ip, number))
			}
		}
	}
	return found, nil
}

// portNumber returns the number of the port of a name, zero if there is none.
func portNumber(ports []*meta.Object, name string) int64 {
	for _, p := range ports {
		if p.String("name") == name {
			return p.Int("port")
		}
	}
	return 0
}
