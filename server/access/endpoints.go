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
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// serverAddress returns the address at which other machines reach the server. It returns false if no address is
// published.
func (p Publish) serverAddress() (netip.AddrPort, bool) {
	at := netip.AddrPortFrom(p.Endpoint.Unmap(), uint16(p.Port))
	return at, p.Address.IsValid() && at.Addr().IsGlobalUnicast() && at.Addr().Zone() == ""
}

// endpoints returns the Endpoints and the EndpointSlice of the service.
func (p Publish) endpoints(profile names.Profile) []published {
	family := "IPv4"
	if at, _ := p.serverAddress(); at.Addr().Is6() {
		family = "IPv6"
	}
	name, group := profile.Wire(wellknown.ServerService), profile.Group(wellknown.GroupEndpoints)
	port := map[string]any{"name": "https", "protocol": "TCP", "port": int64(p.Port)}
	mirror, service := profile.Wire(wellknown.SkipMirror), profile.Wire(wellknown.ServiceName)
	return []published{
		{
			resource: meta.GroupResource{Resource: "endpoints"},
			object: newObject("v1", "Endpoints", "default", name, map[string]any{
				"metadata": map[string]any{"labels": map[string]any{mirror: "true"}}, // no EndpointSlice mirroring: the next object is the slice
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

// servers tracks the servers over the store that publish their address. Each server holds a Lease while it runs.
// Expired Leases are deleted. Expiry is measured by the local clock from the time when this server saw the last change
// of the Lease, so that the clocks of other servers do not matter. While no Lease changes at all, for example because
// the store is full, no Lease expires.
type servers struct {
	own       netip.AddrPort
	namespace string // of the Leases
	leases    meta.GroupResource

	mu      sync.Mutex           // guards the fields below
	seen    map[string]leaseSeen // by Lease name
	renewed time.Time            // when a Lease was last seen to change
}

// leaseSeen is the version of a Lease and when it was first seen.
type leaseSeen struct {
	version string
	since   time.Time
}

func newServers(own netip.AddrPort, p names.Profile) *servers {
	return &servers{
		own: own, namespace: p.SystemNamespace("system"), seen: map[string]leaseSeen{},
		leases: meta.GroupResource{Group: p.Group(wellknown.GroupCoordination), Resource: "leases"},
	}
}

func (s *servers) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.seen)
}

// observe records a change of a Lease, and reports whether a server was added or removed.
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
	s.recordVersion(c.Object)
	return c.Old == nil
}

// stopped is the time without any change of a Lease after which no Lease expires. All servers, including this server,
// renew much more often, so the store must be refusing writes then.
const stopped = election.Duration / 2

// recordVersion records the version of a Lease, and returns when it was first seen. The caller holds mu.
func (s *servers) recordVersion(lease *meta.Object) time.Time {
	if seen := s.seen[lease.Name()]; seen.version == lease.ResourceVersion() {
		return seen.since
	}
	now := time.Now()
	if now.Sub(s.renewed) > stopped {
		clear(s.seen) // no Lease could be renewed meanwhile: restart the time of all Leases
	}
	s.renewed, s.seen[lease.Name()] = now, leaseSeen{lease.ResourceVersion(), now}
	return now
}

// remaining returns the time until a Lease expires; it is negative if the Lease has expired.
func (s *servers) remaining(lease *meta.Object) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	duration := time.Duration(lease.Int("spec", "leaseDurationSeconds")) * time.Second
	end := s.recordVersion(lease).Add(min(max(duration, time.Second), election.Duration))
	now := time.Now()
	if last := s.renewed.Add(stopped); now.After(last) {
		now = last
	}
	return end.Sub(now)
}

// addressOf returns the address of the server that holds a Lease, or the zero AddrPort if the Lease does not belong to a
// server.
func addressOf(lease *meta.Object) netip.AddrPort {
	at, err := netip.ParseAddrPort(lease.String("spec", "holderIdentity"))
	if err != nil || !strings.HasPrefix(lease.Name(), election.ServerLeasesAt(at)) {
		return netip.AddrPort{}
	}
	return at
}

// sharesService reports whether the service can also route to an address, because it has the same port and family as
// the address of this server.
func (s *servers) sharesService(a netip.AddrPort) bool {
	at := a.Addr()
	return a.Port() == s.own.Port() && at.Is4() == s.own.Addr().Is4() && at.IsGlobalUnicast() && at.Zone() == ""
}

// live returns the sorted addresses of the live servers to which the service can route, including this server. again
// is the time until the next Lease may expire, or 0 if there is no other Lease. live deletes expired Leases.
func (s *servers) live(ctx context.Context, cl client.Client) (at []netip.Addr, again time.Duration, err error) {
	at = []netip.Addr{s.own.Addr()}
	list, err := cl.List(ctx, s.leases, s.namespace)
	if err != nil && !meta.IsNotFound(err) { // the server may not serve Leases
		return nil, 0, err
	}
	for _, lease := range list {
		if !strings.HasPrefix(lease.Name(), election.ServerLeases) {
			continue
		}
		left := s.remaining(lease)
		if left <= 0 {
			err := cl.Delete(ctx, s.leases, keyOf(lease), registry.DeleteOptions{UID: lease.UID(), Version: lease.ResourceVersion()})
			if err == nil || meta.IsNotFound(err) {
				continue
			}
			if !meta.IsConflict(err) {
				return nil, 0, err
			}
			left = time.Second // it was renewed, but the cache does not show that yet
		}
		if again == 0 || left < again {
			again = left
		}
		if place := addressOf(lease); s.sharesService(place) {
			at = append(at, place.Addr())
		}
	}
	slices.SortFunc(at, netip.Addr.Compare)
	return slices.Compact(at), again, nil
}
