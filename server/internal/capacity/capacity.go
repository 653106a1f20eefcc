// Package capacity bounds the resources that requests use: slots while they exist, seats while the
// server works on them, and bytes of bodies and responses that wait.
package capacity

import (
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/fairqueue"
)

// Limiter holds the capacity of a server. Its methods may be called concurrently.
//
// Every request has a slot of its Kind for as long as it exists. It takes a seat when the server
// has everything to work on it, and releases the seat when its response begins. A request that
// makes a long response also takes a builder; there are as many builders as processors.
type Limiter struct {
	seats    *fairqueue.Controller
	builders *fairqueue.Controller
	slots    [3]*fairqueue.Pool // by Kind
	refusals *fairqueue.Pool    // slots for the responses to requests that got no slot
	bodies   *fairqueue.Pool    // bytes of large bodies
	answers  *fairqueue.Pool    // bytes of long responses, without bytes that several responses share
	zipping  *fairqueue.Pool    // responses that are being compressed
	headers  [2]string          // names of the headers with the flow schema and the priority level, in canonical form

	reading, mutating requests

	config sync.Mutex // held while all parts get another configuration
	pinned bool       // the program set the configuration; guarded by config
}

// requests counts the requests of a kind that hold a seat or wait for a seat.
type requests struct{ inFlight, inQueue prometheus.Gauge }

// Kind is the kind of a slot.
type Kind uint8

// The kinds of slots.
const (
	Request    Kind = iota // any request that ends by itself
	Watch                  // a watch
	Connection             // a connection to a node, a pod or another server
)

// full is the message of the 429 if no slot of a Kind is free.
var full = [...]string{"too many requests wait", "too many watches at a time", "too many connections at a time"}

const (
	maxRefusals = 512 // refusals that wait for their readers
	maxZipping  = 32  // concurrently compressed responses, each with about 1 MiB of memory; further responses are sent uncompressed

	objectsPerSeat = 100 // objects that a request may look at for each of its seats
)

// Options configure a Limiter.
type Options struct {
	Names   names.Profile
	Metrics prometheus.Registerer

	Config flowcontrol.Config
	Pinned bool // Config is the program's, so that Follow has no effect

	Seats                          int
	MaxWait                        time.Duration // for a seat
	Requests, Watches, Connections int           // slots of each Kind
	BodyBytes, AnswerBytes         int64
}

// New returns a Limiter. It fails if the configuration is invalid or a metric is registered
// already.
func New(o Options) (l *Limiter, err error) {
	l = &Limiter{
		slots:    [3]*fairqueue.Pool{fairqueue.NewPool(int64(o.Requests)), fairqueue.NewPool(int64(o.Watches)), fairqueue.NewPool(int64(o.Connections))},
		refusals: fairqueue.NewPool(maxRefusals), bodies: fairqueue.NewPool(o.BodyBytes), answers: fairqueue.NewPool(o.AnswerBytes), zipping: fairqueue.NewPool(maxZipping),
		pinned: o.Pinned,
	}
	l.headers[0], l.headers[1] = o.Names.FlowHeaders()
	for i, name := range l.headers {
		l.headers[i] = http.CanonicalHeaderKey(name)
	}
	if err := l.addMetrics(metrics.For(o.Metrics)); err != nil {
		return nil, err
	}
	if l.seats, err = fairqueue.New(fairqueue.Options{Seats: o.Seats, MaxWait: o.MaxWait, Metrics: o.Metrics}, o.Config); err != nil {
		return nil, err
	}
	if l.builders, err = fairqueue.New(fairqueue.Options{Seats: runtime.GOMAXPROCS(0), MaxWait: o.MaxWait}, oneLevel(o.Config)); err != nil {
		return nil, err
	}
	l.setLevels(o.Config.Levels)
	return l, nil
}

func (l *Limiter) addMetrics(set *metrics.Set) error {
	kind := []string{"request_kind"}
	inFlight := set.Gauges(metrics.Family{Name: "apiserver_current_inflight_requests", Help: "Requests that hold a seat: those that are worked on.", Stability: metrics.Stable, Labels: kind})
	inQueue := set.Gauges(metrics.Family{Name: "apiserver_current_inqueue_requests", Help: "Requests that wait for a seat.", Labels: kind})
	l.reading = requests{inFlight.WithLabelValues("readOnly"), inQueue.WithLabelValues("readOnly")}
	l.mutating = requests{inFlight.WithLabelValues("mutating"), inQueue.WithLabelValues("mutating")}
	return set.Err()
}

// SetConfig replaces the configuration and pins it. Requests keep their slots and seats; waiting
// requests are classified again. If the configuration is invalid, SetConfig returns an error and
// changes nothing.
func (l *Limiter) SetConfig(config flowcontrol.Config) error {
	l.config.Lock()
	defer l.config.Unlock()
	err := l.set(config)
	l.pinned = l.pinned || err == nil
	return err
}

// Follow is SetConfig for the configuration that the objects of flow control make. It has no
// effect if the program set a configuration.
func (l *Limiter) Follow(config flowcontrol.Config) error {
	l.config.Lock()
	defer l.config.Unlock()
	if l.pinned {
		return nil
	}
	return l.set(config)
}

func (l *Limiter) set(config flowcontrol.Config) error {
	if err := l.seats.SetConfig(config); err != nil {
		return err
	}
	l.setLevels(config.Levels)
	return l.builders.SetConfig(oneLevel(config))
}

func (l *Limiter) setLevels(levels []flowcontrol.PriorityLevel) {
	for _, p := range append(l.slots[:], l.refusals, l.bodies, l.answers, l.zipping) {
		p.SetLevels(levels)
	}
}

// Headers returns the names of the response headers with the flow schema and the priority
// level of a request.
func (l *Limiter) Headers() [2]string { return l.headers }

// oneLevel returns a configuration with the flows of config in a single level, so that all
// share the same capacity.
func oneLevel(config flowcontrol.Config) flowcontrol.Config {
	single := flowcontrol.Config{Levels: []flowcontrol.PriorityLevel{{
		Name: "all", Shares: 1, Queuing: &flowcontrol.Queuing{Queues: 128, HandSize: 6, QueueLength: 50},
	}}}
	for _, schema := range config.Schemas {
		schema.Level = "all"
		single.Schemas = append(single.Schemas, schema)
	}
	return single
}

// holder returns the holder that the pools count a request of a user for. The service accounts of a
// namespace are a single holder, because a user that can create a service account can create any
// number of them.
func holder(f fairqueue.Flow, u *auth.User) fairqueue.Holder {
	h := fairqueue.Holder{Level: f.Level(), Name: u.Name}
	if namespace, _, ok := auth.SplitServiceAccount(u.Name); ok {
		h.Name = auth.ServiceAccountUser(namespace, "")
	}
	return h
}
