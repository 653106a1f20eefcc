package server

import (
	"context"
	"net/http"
	"runtime"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/controllers"
	"orch.io/controlplane/server/internal/fair"
)

// shares are what all requests of a server share: seats for those that are
// worked on, and pools of what they hold while nobody works on them.
type shares struct {
	sharing     sync.Mutex // held while all of them get another configuration
	given       bool       // the configuration is the program's, not that of objects
	seats       *fair.Controller
	makers      *fair.Controller // of those who make long answers: as many as compute at a time
	headers     [2]string        // that tell the flow schema and the priority level
	places      *fair.Pool       // for requests but watches and connections
	watches     *fair.Pool
	connections *fair.Pool
	refusals    *fair.Pool // places for answers to those who have no place
	bodies      *fair.Pool // bytes of large bodies
	answers     *fair.Pool // bytes of long answers that are one caller's own
	zipping     *fair.Pool // answers that are compressed
}

// maxRefusals is how many refusals wait to be read.
const maxRefusals = 512

func (b *Builder) newShares(s *Server) (err error) {
	s.headers[0], s.headers[1] = b.Names.FlowHeaders()
	for i, name := range s.headers {
		s.headers[i] = http.CanonicalHeaderKey(name)
	}
	s.places, s.refusals = fair.NewPool(int64(s.limits.Requests)), fair.NewPool(maxRefusals)
	s.watches, s.connections = fair.NewPool(int64(s.limits.Watches)), fair.NewPool(int64(s.limits.Connections))
	s.bodies, s.answers, s.zipping = fair.NewPool(s.limits.LargeBodies), fair.NewPool(s.limits.LongAnswers), fair.NewPool(maxZipping)
	config, wait := b.flowControl(), s.limits.RequestTime/4
	s.given = b.Serving.FlowControl != nil
	if s.seats, err = fair.New(fair.Options{Seats: s.limits.InFlight, MaxWait: wait, Metrics: s.registry}, config); err != nil {
		return err
	}
	if s.makers, err = fair.New(fair.Options{Seats: runtime.GOMAXPROCS(0), MaxWait: wait}, oneLevel(config)); err != nil {
		return err
	}
	s.setLevels(config.Levels)
	return nil
}

// SetFlowControl replaces Serving.FlowControl while the server runs, and the objects
// that say it. Requests that hold something keep it, those that wait are sorted anew. A
// fault of the configuration is returned and changes nothing. It may be called at any time.
func (s *Server) SetFlowControl(config flowcontrol.Config) error {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	err := s.setShares(config)
	s.given = s.given || err == nil
	return err
}

// followFlowControl takes the configuration that objects say, unless a program gave one.
func (s *Server) followFlowControl(config flowcontrol.Config) error {
	s.sharing.Lock()
	defer s.sharing.Unlock()
	if s.given {
		return nil
	}
	return s.setShares(config)
}

func (s *Server) setShares(config flowcontrol.Config) error {
	if err := s.seats.SetConfig(config); err != nil {
		return err
	}
	s.setLevels(config.Levels)
	return s.makers.SetConfig(oneLevel(config))
}

// flowObjects is what keeps the shares what objects say; ok tells whether their kinds
// are registered.
func (s *Server) flowObjects() (f controllers.FlowControl, ok bool) {
	group := s.names.Group(names.GroupFlowControl)
	for _, resource := range []string{"flowschemas", "prioritylevelconfigurations"} {
		if s.catalog.Known().Type(meta.GroupResource{Group: group, Resource: resource}) == nil {
			return f, false
		}
	}
	return controllers.FlowControl{Names: s.names, Apply: s.followFlowControl}, true
}

func (s *shares) setLevels(levels []flowcontrol.Level) {
	for _, p := range []*fair.Pool{s.places, s.watches, s.connections, s.refusals, s.bodies, s.answers, s.zipping} {
		p.SetLevels(levels)
	}
}

// oneLevel makes a configuration of one level, of the flows of another one: they
// all share what there is.
func oneLevel(config flowcontrol.Config) flowcontrol.Config {
	one := flowcontrol.Config{Levels: []flowcontrol.Level{{
		Name: "all", Shares: 1, Queuing: &flowcontrol.Queuing{Queues: 128, HandSize: 6, QueueLength: 50},
	}}}
	for _, schema := range config.Schemas {
		schema.Level = "all"
		one.Schemas = append(one.Schemas, schema)
	}
	return one
}

// share is what a request holds of that. The zero share holds nothing.
type share struct {
	flow     fair.Flow
	action   auth.Action // what the flow was found by
	holder   fair.Holder // whose share it is: the user's in his level, nobody's before he is known
	exempt   bool        // goes on without its part of a pool, if it must
	place    fair.Part   // of those for requests, watches, connections or refusals
	seat     fair.Seat
	inFlight prometheus.Gauge // that counts the seat; nil: it is none
	making   fair.Seat
	width    int // how many seats it needs, if more than one
	body     fair.Part
	answer   fair.Part
}

// classify finds the flow of a request whose caller is known, and tells it.
func (s *Server) classify(w http.ResponseWriter, r *request) {
	r.share.action = r.action()
	f := s.seats.Classify(&r.share.action)
	r.share.flow, r.share.exempt = f, f.Exempt()
	h, values := w.Header(), []string{f.SchemaUID(), f.LevelUID()}
	h[s.headers[0]], h[s.headers[1]] = values[:1:1], values[1:]
}

// acquirePlace takes a place for the request, in place of one that it has, so that no caller
// fills the server with requests that wait: for their bodies, for seats, for their answers to be
// read.
func (s *Server) acquirePlace(r *request) error {
	sh := &r.share
	if r.user != nil {
		sh.holder = holder(sh.flow, r.user)
	}
	sh.place.Give()
	places, why := s.placesFor(r)
	place, ok := places.Take(sh.holder, 1)
	if !ok && !sh.exempt {
		return r.tooMany(why)
	}
	sh.place = place
	return nil
}

// placesFor returns the pool that a request takes a place of, and what it means that it is full.
func (s *Server) placesFor(r *request) (places *fair.Pool, full string) {
	switch {
	case r.Verb == "watch":
		return s.watches, "too many watches at a time"
	case s.connects(r):
		return s.connections, "too many connections at a time"
	}
	return s.places, "too many requests wait"
}

// holder is whose share of the pools a request takes. The service accounts of a
// namespace have one together: who may make one there may make any number.
func holder(f fair.Flow, u *auth.User) fair.Holder {
	h := fair.Holder{Level: f.Level(), Name: u.Name}
	if namespace, _, ok := auth.SplitServiceAccount(u.Name); ok {
		h.Name = auth.ServiceAccountUser(namespace, "")
	}
	return h
}

// reject refuses a request that has no place. The caller gets a moment to take
// the answer; if too many wait like that, there is none.
func (s *Server) reject(w *response, r *request, why error) {
	place, ok := s.refusals.Take(r.share.holder, 1)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	r.share.place = place
	r.deadline.cut()
	s.fail(w, r, why)
}

// acquireSeat waits until the request may be worked on. The seat is given back when
// its answer begins.
func (s *Server) acquireSeat(ctx context.Context, r *request) error {
	f := s.metrics.flight(r.Verb)
	f.inQueue.Inc()
	seat, err := s.seats.Acquire(ctx, r.share.flow, r.share.width)
	f.inQueue.Dec()
	r.outside.Add(seat.Waited())
	if err != nil {
		return r.tooMany("too many requests at a time")
	}
	r.share.seat, r.share.inFlight = seat, f.inFlight
	f.inFlight.Inc()
	return nil
}

// acquireMaker waits until the request may make an answer of many objects. Many who
// compute for long at a time would hold up everybody, as the processors are
// shared by all who have something to do. It comes after the seat, which levels
// have of their own: who waited for one of those while he is a maker would keep
// all levels from making answers. It is given back with the seat.
func (s *Server) acquireMaker(ctx context.Context, r *request) error {
	if r.share.width <= 1 || r.share.exempt {
		return nil
	}
	seat, err := s.makers.Acquire(ctx, s.makers.Classify(&r.share.action), 1)
	r.outside.Add(seat.Waited())
	if err != nil {
		return r.tooMany("too many long answers at a time")
	}
	r.share.making = seat
	return nil
}

// yield lets others run, now and then, within work on many objects.
func yield(i int) {
	if i%64 == 63 {
		runtime.Gosched()
	}
}

// objectsPerSeat is how many objects one seat is for.
const objectsPerSeat = 100

// estimateSeats makes a request that looks at many objects take more seats.
func (s *Server) estimateSeats(r *request, o *listOptions) {
	n := s.hub.Cache(r.version.GroupResource()).Len()
	if o.Limit > 0 && o.Labels.Empty() && o.Fields.Empty() {
		n = int(min(o.Limit, int64(n)))
	}
	r.share.width = min((n+objectsPerSeat-1)/objectsPerSeat, fair.MaxSeats)
}

// reserveAnswer takes the size of a long answer from its pool until it was read, in
// place of what was taken for the request before.
func (s *Server) reserveAnswer(r *request, size int) error {
	r.share.answer.Give()
	if size < long {
		return nil
	}
	answer, ok := s.answers.Take(r.share.holder, int64(size))
	switch {
	case ok:
		r.share.answer = answer
		return nil
	case r.share.exempt:
		return nil
	case r.Verb == "get" || r.Verb == "list":
		return r.tooMany("too many answers wait to be read")
	}
	return meta.Failure(http.StatusGatewayTimeout, meta.ReasonTimeout, "the request was carried out, but too many answers wait to be read")
}

// worked gives back what only a request that is worked on needs: its answer is
// made.
func (s *Server) worked(r *request) {
	r.share.making.Release()
	if r.share.seat.Release(); r.share.inFlight != nil {
		r.share.inFlight.Dec()
		r.share.inFlight = nil
	}
	r.share.body.Give()
}

// leave gives everything back, when the answer has left. HTTP/2 would keep a
// short one until the handler has returned, and let it wait for its reader for
// ever.
func (s *Server) leave(w *response, r *request) {
	if r.http.ProtoMajor > 1 && w.code != 0 {
		_ = r.deadline.control.Flush()
	}
	s.worked(r)
	r.share.answer.Give()
	r.share.place.Give()
}
