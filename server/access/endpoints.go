package access

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/election"
	"orch.io/controlplane/registry"
)

// at is where other machines reach the server, if they do.
func (p Publish) at() (netip.AddrPort, bool) {
	at := netip.AddrPortFrom(p.Endpoint.Unmap(), uint16(p.Port))
	return at, p.Address.IsValid() && at.Addr().IsGlobalUnicast() && at.Addr().Zone() == ""
}

// endpoints are those of the service, in the old kind and in the new one.
func (p Publish) endpoints(profile names.Profile) []kept {
	family := "IPv4"
	if at, _ := p.at(); at.Addr().Is6() {
		family = "IPv6"
	}
	name, group := profile.Wire(names.ServerService), profile.Group(names.GroupEndpoints)
	port := map[string]any{"name": "https", "protocol": "TCP", "port": int64(p.Port)}
	mirror, service := profile.Wire(names.SkipMirror), profile.Wire(names.ServiceName)
	return []kept{
		{
			resource: meta.GroupResource{Resource: "endpoints"},
			object: newObject("v1", "Endpoints", "default", name, map[string]any{
				"metadata": map[string]any{"labels": map[string]any{mirror: "true"}}, // the slice is here already
			}),
			lead: func(o *meta.Object, servers []netip.Addr) {
				var addresses []any
				for _, at := range servers {
					addresses = append(addresses, map[string]any{"ip": at.String()})
				}
				o.Set([]any{map[string]any{"addresses": addresses, "ports": []any{port}}}, "subsets")
			},
			own: [][]string{{"subsets"}, {"metadata", "labels", mirror}},
		},
		{
			resource: meta.GroupResource{Group: group, Resource: "endpointslices"},
			object: newObject(group+"/v1", "EndpointSlice", "default", name, map[string]any{
				"metadata":    map[string]any{"labels": map[string]any{service: name}},
				"addressType": family,
				"ports":       []any{port},
			}),
			lead: func(o *meta.Object, servers []netip.Addr) {
				var endpoints []any
				for _, at := range servers {
					endpoints = append(endpoints, map[string]any{"addresses": []any{at.String()}, "conditions": map[string]any{"ready": true}})
				}
				o.Set(endpoints, "endpoints")
			},
			own:   [][]string{{"endpoints"}, {"ports"}, {"metadata", "labels", service}},
			fixed: [][]string{{"addressType"}},
		},
	}
}

// servers are those over the store that tell where they are, each by a Lease that it holds as
// long as it lives, and this one. Which ones are told, the Leases that are there say: one that
// has run out is deleted. Until when one counts, the clock of its holder does not matter, but
// when it was seen to change; while none changes, for want of room, none runs out.
type servers struct {
	own       netip.AddrPort
	namespace string // of the Leases
	leases    meta.GroupResource

	mu      sync.Mutex           // guards the rest
	seen    map[string]leaseSeen // by name
	renewed time.Time            // when one of them was seen to change last
}

// leaseSeen is since when a Lease has been as it is.
type leaseSeen struct {
	version string
	since   time.Time
}

func newServers(own netip.AddrPort, p names.Profile) *servers {
	return &servers{
		own: own, namespace: p.SystemNamespace("system"), seen: map[string]leaseSeen{},
		leases: meta.GroupResource{Group: p.Group(names.GroupCoordination), Resource: "leases"},
	}
}

func (s *servers) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
}

// observe notes a change of a Lease, and reports whether a server came or went.
func (s *servers) observe(c client.Event) bool {
	if c.Key.Namespace != s.namespace || !strings.HasPrefix(c.Key.Name, election.ServerLeases) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.Object == nil {
		delete(s.seen, c.Key.Name)
		return true
	}
	s.note(c.Object)
	return c.Old == nil
}

// stopped is how long no Lease changes before none runs out any more: their holders, of which this
// server is one, renew them much more often, so that the store takes none then.
const stopped = election.Duration / 2

// note notes how a Lease is, and returns since when it has been so. The caller has the lock.
func (s *servers) note(lease *meta.Object) time.Time {
	if seen := s.seen[lease.Name()]; seen.version == lease.ResourceVersion() {
		return seen.since
	}
	now := time.Now()
	if now.Sub(s.renewed) > stopped {
		clear(s.seen) // nobody's could be renewed: all count anew
	}
	s.renewed, s.seen[lease.Name()] = now, leaseSeen{lease.ResourceVersion(), now}
	return now
}

// left returns for how long a Lease counts.
func (s *servers) left(lease *meta.Object) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	lasts := time.Duration(lease.Int("spec", "leaseDurationSeconds")) * time.Second
	end := s.note(lease).Add(min(max(lasts, time.Second), election.Duration))
	now := time.Now()
	if last := s.renewed.Add(stopped); now.After(last) {
		now = last
	}
	return end.Sub(now)
}

// placeOf returns where the server is reached that holds a Lease, nowhere if it is no server's.
func placeOf(lease *meta.Object) netip.AddrPort {
	at, err := netip.ParseAddrPort(lease.String("spec", "holderIdentity"))
	if err != nil || !strings.HasPrefix(lease.Name(), election.ServerLeasesAt(at)) {
		return netip.AddrPort{}
	}
	return at
}

// besides reports whether the service can lead to an address, too.
func (s *servers) besides(a netip.AddrPort) bool {
	at := a.Addr()
	return a.Port() == s.own.Port() && at.Is4() == s.own.Addr().Is4() && at.IsGlobalUnicast() && at.Zone() == ""
}

// living returns the addresses of the servers, this one and those that listen as it does, in
// order, and when to look again. What has run out goes.
func (s *servers) living(ctx context.Context, cl client.Client) (at []netip.Addr, again time.Duration, err error) {
	at = []netip.Addr{s.own.Addr()}
	list, err := cl.List(ctx, s.leases, s.namespace)
	if err != nil && !meta.IsNotFound(err) { // Leases need not be served
		return nil, 0, err
	}
	for _, lease := range list {
		if !strings.HasPrefix(lease.Name(), election.ServerLeases) {
			continue
		}
		left := s.left(lease)
		if left <= 0 {
			err := cl.Delete(ctx, s.leases, keyOf(lease), registry.DeleteOptions{UID: lease.UID(), Version: lease.ResourceVersion()})
			if err == nil || meta.IsNotFound(err) {
				continue
			}
			if !meta.IsConflict(err) {
				return nil, 0, err
			}
			left = time.Second // it was renewed, which this server has not seen yet
		}
		if again == 0 || left < again {
			again = left
		}
		if place := placeOf(lease); s.besides(place) {
			at = append(at, place.Addr())
		}
	}
	slices.SortFunc(at, netip.Addr.Compare)
	return slices.Compact(at), again, nil
}
