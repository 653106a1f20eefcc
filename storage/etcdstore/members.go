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

// route selects the member that a call is sent to. A member that did not answer the call is not tried
// again as long as there are others.
//
// A route belongs to a call of the store. The attempts of a call are sequential, so it needs no lock.
type route struct {
	first  string   // the address of the preferred member; "" for no preference
	last   string   // the address of the member of the latest attempt
	failed []string // the members that did not answer
}

type routeKey struct{}

// routed returns the route in ctx. If there is none, it adds a new route and returns the new context
// with it.
func routed(ctx context.Context) (context.Context, *route) {
	if r, ok := ctx.Value(routeKey{}).(*route); ok {
		return ctx, r
	}
	r := &route{}
	return context.WithValue(ctx, routeKey{}, r), r
}

// fail records that the member of the latest attempt did not answer.
func (r *route) fail() {
	if r.last != "" && !slices.Contains(r.failed, r.last) {
		r.failed = append(r.failed, r.last)
	}
}

// pick returns the address of the member for the next attempt, out of the connected members.
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

// byRoute is the name of the gRPC balancer that follows routes.
const byRoute = "controlplane_route"

func init() { balancer.Register(routeBalancer{}) }

// followRoutes returns options with which calls follow their routes. By default, the client would use
// the members in turn; with two members, every second call would reach the same one.
func (s *Store) followRoutes() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(s.learnFromAnswer),
		grpc.WithDisableServiceConfig(), // the client of etcd sets a balancer there
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"` + byRoute + `": {}}]}`),
	}
}

type routeBalancer struct{}

func (routeBalancer) Name() string { return byRoute }

func (routeBalancer) Build(conn balancer.ClientConn, o balancer.BuildOptions) balancer.Balancer {
	return endpointsharding.NewBalancer(routedConn{conn}, o, balancer.Get(pickfirst.Name).Build, endpointsharding.Options{})
}

// routedConn installs a picker that follows routes as soon as a member is connected.
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

// picker holds the connected members.
type picker struct {
	addresses []string
	of        map[string]balancer.Picker
}

func (p picker) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	_, r := routed(info.Ctx)
	r.last = r.pick(p.addresses)
	return p.of[r.last].Pick(info)
}

// learnFromAnswer is an interceptor that passes the headers of successful answers to noteAnswer.
func (s *Store) learnFromAnswer(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, r := routed(ctx)
	before := s.seen.Load()
	if err := call(ctx, method, request, reply, conn, opts...); err != nil {
		return err
	}
	switch answer := reply.(type) {
	case *pb.RangeResponse:
		s.noteAnswer(answer.Header, r, before)
	case *pb.TxnResponse:
		s.noteAnswer(answer.Header, r, before)
	}
	return nil
}

// leader is the leader of the cluster, as far as the store knows. A call sent to the leader saves the
// hop from another member to it and back, which is a third of the work of the members for a commit.
type leader struct {
	mu        sync.Mutex
	term      uint64 // the raft term of the other fields; 0 if it is unknown
	member    uint64 // the ID of the leader; 0 if it is unknown
	address   string // the address of the leader; "" if it is unknown
	searching bool
}

// preferLeader returns a context in which calls go to the leader first. restore resets the preference of
// the route.
func (s *Store) preferLeader(ctx context.Context) (_ context.Context, restore func()) {
	ctx, r := routed(ctx)
	before := r.first
	s.leader.mu.Lock()
	defer s.leader.mu.Unlock()
	r.first = s.leader.address
	return ctx, func() { r.first = before }
}

// noteAnswer updates seen and the leader from the header of an answer. before is the value of seen
// before the call: if the answer is older, etcd was restored to an older state. The first answer of a
// new term starts a search for the leader; the address of the leader is known when an answer from it
// arrives.
func (s *Store) noteAnswer(h *pb.ResponseHeader, r *route, before int64) {
	if h.Revision < before {
		s.detectLoss(revisionOf(before, 0), revisionOf(h.Revision, 0))
		s.seen.Store(h.Revision)
	}
	raise(&s.seen, h.Revision)
	l := &s.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case h.RaftTerm != l.term:
		l.term, l.member, l.address = h.RaftTerm, 0, ""
		if !l.searching {
			l.searching = true
			s.background.Go(s.findLeader)
		}
	case h.MemberId == l.member:
		l.address = r.last
	case r.last == l.address: // the address belongs to another member now
		l.address = ""
	}
}

// noteFailure records that a call failed. If it was sent to the leader, another member may be the
// leader now.
func (s *Store) noteFailure(r *route, err error) {
	if !s.retryable(err) {
		return
	}
	r.fail()
	l := &s.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.address != "" && l.address == r.last && !s.notExecuted(err) {
		l.term, l.member, l.address = 0, 0, ""
	}
}

// findLeader asks a member for the leader of the current term. If there is no answer, for example
// because a proxy does not forward the call, the leader stays unknown.
func (s *Store) findLeader() {
	var resp *pb.StatusResponse
	err := s.retry(s.lifetime, func(ctx context.Context) (err error) {
		resp, err = pb.NewMaintenanceClient(s.client.ActiveConnection()).Status(ctx, &pb.StatusRequest{})
		return rpctypes.Error(err)
	})
	l := &s.leader
	l.mu.Lock()
	defer l.mu.Unlock()
	l.searching = false
	switch {
	case err != nil && !s.retryable(err):
	case err != nil || resp.RaftTerm != l.term || resp.Leader == 0:
		l.term = 0 // the next answer starts another search
	default:
		l.member = resp.Leader
	}
}
