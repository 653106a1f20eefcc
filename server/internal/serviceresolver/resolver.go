// Package serviceresolver resolves Services that the server itself calls, such as webhooks, to
// addresses.
package serviceresolver

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
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/internal/wellknown"
)

// Resolver resolves services by their Service, EndpointSlice and Endpoints objects. It is safe for
// concurrent use.
type Resolver struct {
	names    names.Profile
	client   client.Client
	override services.Resolver // of the program, called first; may be nil
	slices   *client.Index[sliceNames]
}

// New returns a Resolver that reads objects from a client. If override, which may be nil, returns an
// empty Endpoint, the objects decide.
func New(p names.Profile, c client.Client, override services.Resolver) *Resolver {
	r := &Resolver{names: p, client: c, override: override}
	service := func(slice *meta.Object) meta.Key {
		return meta.Key{Namespace: slice.Namespace(), Name: slice.Labels()[p.Wire(wellknown.ServiceName)]}
	}
	r.slices = client.NewIndex(c, []meta.GroupResource{r.endpointSlices()}, func() sliceNames { return sliceNames{} },
		func(of sliceNames, e client.Event) {
			if e.Old != nil {
				of.remove(service(e.Old), e.Key.Name)
			}
			if e.Object != nil {
				of.add(service(e.Object), e.Key.Name)
			}
		})
	return r
}

func (r *Resolver) endpointSlices() meta.GroupResource {
	return meta.GroupResource{Group: r.names.Group(wellknown.GroupEndpoints), Resource: "endpointslices"}
}

// sliceNames has the names of the EndpointSlices of each service.
type sliceNames map[meta.Key]map[string]bool

func (s sliceNames) add(service meta.Key, slice string) {
	if s[service] == nil {
		s[service] = map[string]bool{}
	}
	s[service][slice] = true
}

func (s sliceNames) remove(service meta.Key, slice string) {
	if delete(s[service], slice); len(s[service]) == 0 {
		delete(s, service)
	}
}

// Resolve returns an endpoint of a service: its cluster IP or external name, or a randomly chosen
// ready endpoint if it has no cluster IP. It implements services.Resolver.
func (r *Resolver) Resolve(ctx context.Context, of services.Service) (services.Endpoint, error) {
	if r.override != nil {
		if e, err := r.override(ctx, of); err != nil || e.Handler != nil || e.Address != "" {
			return e, err
		}
	}
	service, err := r.client.Get(ctx, meta.GroupResource{Resource: "services"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
	if err != nil {
		return services.Endpoint{}, err
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
		return r.readyEndpoint(ctx, of, port.String("name"))
	}
	return services.Endpoint{}, fmt.Errorf("service %s/%s has no port %d", of.Namespace, of.Name, of.Port)
}

func endpoint(host string, port int64) services.Endpoint {
	return services.Endpoint{Address: net.JoinHostPort(host, strconv.FormatInt(port, 10))}
}

// readyEndpoint returns a randomly chosen ready endpoint of a service, from its EndpointSlices, or
// from its Endpoints if the slices have none.
func (r *Resolver) readyEndpoint(ctx context.Context, of services.Service, port string) (services.Endpoint, error) {
	var found []services.Endpoint
	for _, name := range r.slicesOf(of) {
		slice, err := r.client.Get(ctx, r.endpointSlices(), meta.Key{Namespace: of.Namespace, Name: name})
		if meta.IsNotFound(err) {
			continue
		}
		if err != nil {
			return services.Endpoint{}, err
		}
		if slice.Labels()[r.names.Wire(wellknown.ServiceName)] != of.Name {
			continue // the slice was given to another service after the index was read
		}
		number := portNumber(slice.Objects("ports"), port)
		for _, e := range slice.Objects("endpoints") {
			if ready, ok := e.Get("conditions", "ready"); ok && ready == false {
				continue
			}
			if addresses := e.Strings("addresses"); number != 0 && len(addresses) > 0 {
				found = append(found, endpoint(addresses[0], number))
			}
		}
	}
	if len(found) == 0 {
		var err error
		if found, err = r.endpoints(ctx, of, port); err != nil {
			return services.Endpoint{}, err
		}
	}
	if len(found) == 0 {
		return services.Endpoint{}, fmt.Errorf("no endpoints available for service %q", of.Name)
	}
	return found[rand.IntN(len(found))], nil
}

// slicesOf returns the names of the EndpointSlices of a service.
func (r *Resolver) slicesOf(of services.Service) (list []string) {
	r.slices.Read(func(by sliceNames) {
		list = slices.Collect(maps.Keys(by[meta.Key{Namespace: of.Namespace, Name: of.Name}]))
	})
	return list
}

// endpoints returns the endpoints in the Endpoints object of a service.
func (r *Resolver) endpoints(ctx context.Context, of services.Service, port string) (found []services.Endpoint, err error) {
	obj, err := r.client.Get(ctx, meta.GroupResource{Resource: "endpoints"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
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

// portNumber returns the number of the port with a name, or 0 if there is none.
func portNumber(ports []*meta.Object, name string) int64 {
	for _, p := range ports {
		if p.String("name") == name {
			return p.Int("port")
		}
	}
	return 0
}
