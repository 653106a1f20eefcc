package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/clientconfig"
	"orch.io/controlplane/controller"
)

// services find what services lead to by the objects that say so.
type services struct {
	names  names.Profile
	client controller.Client
	own    clientconfig.Services // of the program, asked first; or nil
}

func (s services) find(ctx context.Context, of clientconfig.Service) (clientconfig.Endpoint, error) {
	if s.own != nil {
		if e, err := s.own(ctx, of); err != nil || e.Handler != nil || e.Address != "" {
			return e, err
		}
	}
	service, err := s.client.Get(ctx, meta.GroupResource{Resource: "services"}, meta.Key{Namespace: of.Namespace, Name: of.Name})
	if err != nil {
		return clientconfig.Endpoint{}, err
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
	return clientconfig.Endpoint{}, fmt.Errorf("the service %s/%s has no port %d", of.Namespace, of.Name, of.Port)
}

func endpoint(host string, port int64) clientconfig.Endpoint {
	return clientconfig.Endpoint{Address: net.JoinHostPort(host, strconv.FormatInt(port, 10))}
}

// ready returns one of the endpoints of a service that are ready, at random: of its
// EndpointSlices, or of its Endpoints where there are none.
func (s services) ready(ctx context.Context, of clientconfig.Service, port string) (clientconfig.Endpoint, error) {
	var found []clientconfig.Endpoint
	slices, err := s.client.List(ctx, meta.GroupResource{Group: s.names.Group(names.GroupEndpoints), Resource: "endpointslices"}, of.Namespace)
	if err != nil && !meta.IsNotFound(err) {
		return clientconfig.Endpoint{}, err
	}
	for _, slice := range slices {
		if slice.Labels()[s.names.Wire(names.ServiceName)] != of.Name {
			continue
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
		if found, err = s.endpoints(ctx, of, port); err != nil {
			return clientconfig.Endpoint{}, err
		}
	}
	if len(found) == 0 {
		return clientconfig.Endpoint{}, fmt.Errorf("no endpoints available for service %q", of.Name)
	}
	return found[rand.IntN(len(found))], nil
}

func (s services) endpoints(ctx context.Context, of clientconfig.Service, port string) (found []clientconfig.Endpoint, err error) {
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
