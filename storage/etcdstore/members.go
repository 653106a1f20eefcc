package etcdstore

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/balancer/endpointsharding"
	"google.golang.org/grpc/balancer/pickfirst"
	"google.golang.org/grpc/connectivity"
)

// route is how a call gets to a member. One that did not answer the call is not asked again as long as
// there are others.
type route struct {
	first  string   // the address of the member that is asked first, if it can be; "": any
	last   string   // that was asked last
	failed []string // that did not answer
}

type routeKey struct{}

// routed returns the route of the calls that are made with a context, and a context that has one.
func routed(ctx context.Context) (context.Context, *route) {
	if r, ok := ctx.Value(routeKey{}).(*route); ok {
		return ctx, r
	}
	r := &route{}
	return context.WithValue(ctx, routeKey{}, r), r
}

// fail takes note that the member that was asked last did not answer.
func (r *route) fail() {
	if r.last != "" && !slices.Contains(r.failed, r.last) {
		r.failed = append(r.failed, r.last)
	}
}

// pick chooses one of the members that are connected.
func (r *route) pick(ready []string) string {
	left := slices.DeleteFunc(slices.Clone(ready), func(c string) bool { return slices.Contains(r.failed, c) })
	switch {
	case len(left) == 0:
		r.failed = nil
		left = ready
	case r.first != "" && slices.Contains(left, r.first):
		return r.first
	}
	return left[rand.IntN(len(left))]
}

// byRoute is the name under which gRPC finds the balancer that follows routes.
const byRoute = "controlplane_route"

func init() { balancer.Register(routeBalancer{}) }

// followRoutes has calls go by their routes, where etcd's client would ask the members in turn: then two
// calls that follow each other would never get to the same one of two members.
func (s *Store) followRoutes() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(s.listen),
		grpc.WithDisableServiceConfig(), // that of etcd's client
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + byRoute + `": {}}]}`),
	}
}

type routeBalancer struct{}

func (routeBalancer) Name() string { return byRoute }

func (routeBalancer) Build(conn balancer.ClientConn, o balancer.BuildOptions) balancer.Balancer {
	return endpointsharding.NewBalancer(routedConn{conn}, o, balancer.Get(pickfirst.Name).Build, endpointsharding.Options{})
}

// routedConn has the calls follow their routes as soon as one of the members is connected.
type routedConn struct{ balancer.ClientConn }

func (c routedConn) UpdateState(s balancer.State) {
	if s.ConnectivityState == connectivity.Ready {
		ready := picker{of: map[string]balancer.Picker{}}
		for _, member := range endpointsharding.ChildStatesFromPicker(s.Picker) {
			if member.State.ConnectivityState == connectivity.Ready {
				ready.of[member.Endpoint.Addresses[0].Addr] = member.State.Picker
			}
		}
		ready.addresses = slices.Collect(maps.Keys(ready.of))
		s.Picker = ready
	}
	c.ClientConn.UpdateState(s)
}

// picker has the members that are connected.
type picker struct {
	addresses []string
	of        map[string]balancer.Picker
}

func (p picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	_, r := routed(info.Ctx)
	r.last = r.pick(p.addresses)
	return p.of[r.last].Pick(info)
}

// listen learns from the answers to calls.
func (s *Store) listen(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, r := routed(ctx)
	before := s.seen.Load()
	if err := call(ctx, method, request, reply, conn, opts...); err != nil {
		return err
	}
	switch answer := reply.(type) {
	case *pb.RangeResponse:
		s.answered(answer.Header, r, before)
	case *pb.TxnResponse:
		s.answered(answer.Header, r, before)
	}
	return nil
}

// leader is the member that leads the others, as far as the store knows. What is asked of it saves the way
// from another one to it and back, and that is a third of what the members have to do for a commit.
type leader struct {
	mu     sync.Mutex
	term   uint64 // another one has another leader; 0: it is not known
	member uint64 // 0: it is not known yet
	at     string // its address; "": it is not known yet
	asking bool
}

// toLeader is a context for calls that the leader is asked first; back ends that, where the route leads on.
func (s *Store) toLeader(ctx context.Context) (_ context.Context, back func()) {
	ctx, r := routed(ctx)
	before := r.first
	s.leader.mu.Lock()
	defer s.leader.mu.Unlock()
	r.first = s.leader.at
	return ctx, func() { r.first = before }
}

// answered learns from an answer that came by a route. It is not older than what was known before the call,
// or etcd was put back to what it had before. Whoever learns of a new term asks who leads, and the address of
// that member is known when an answer of it comes.
func (s *Store) answered(h *pb.ResponseHeader, r *route, before int64) {
	if h.Revision < before {
		s.compare(revisionOf(before, 0), revisionOf(h.Revision, 0))
		s.seen.Store(h.Revision)
	}
	raise(&s.seen, h.Revision)
	l := &s.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case h.RaftTerm != l.term:
		l.term, l.member, l.at = h.RaftTerm, 0, ""
		if !l.asking {
			l.asking = true
			s.done.Go(s.askWhoLeads)
		}
	case h.MemberId == l.member:
		l.at = r.last
	case r.last == l.at: // leads to another member now
		l.at = ""
	}
}

// unanswered takes note that a call failed: if it was the leader that did not answer, there may be another.
func (s *Store) unanswered(r *route, err error) {
	if !s.passing(err) {
		return
	}
	r.fail()
	l := &s.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.at != "" && l.at == r.last && !s.turnedAway(err) {
		l.term, l.member, l.at = 0, 0, ""
	}
}

// askWhoLeads finds out who leads in the term that is known. The members, or what is between, may not tell; then
// nobody is known to lead.
func (s *Store) askWhoLeads() {
	var resp *pb.StatusResponse
	err := s.again(s.life, func(ctx context.Context) (err error) {
		resp, err = pb.NewMaintenanceClient(s.client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
		return rpctypes.Error(err)
	})
	l := &s.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking = false
	switch {
	case err != nil && !s.passing(err):
	case err != nil || resp.RaftTerm != l.term || resp.Leader == 0:
		l.term = 0 // whoever gets the next answer asks again
	default:
		l.member = resp.Leader
	}
}
