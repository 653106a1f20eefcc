// Package aggregator serves API group versions from other API servers, called extension servers here. An APIService
// object names the server of a group version.
//
// A Table (table.go) is a snapshot of the APIServices; requests read only the Table. Two controllers work behind it.
// The first probes the extension servers, writes the result into the condition of their APIServices (availability.go,
// status.go), and reads their discovery and OpenAPI documents (discovery.go, openapi.go). The second creates
// APIServices for the versions that this server serves itself (registration.go). transport.go has the connections to
// extension servers, and the headers that identify the user to them.
package aggregator

import (
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/services"
	"orch.io/controlplane/internal/wellknown"
)

// Options configure an Aggregator.
type Options struct {
	Names   names.Profile
	Objects Source // the APIServices
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// Services resolves a service to an address. Missing returns why a service cannot be reached, as far as that is
	// known without a request to it, or nil.
	Services services.Resolver
	Missing  func(context.Context, services.Service) *Fault

	// Certificate returns the client certificate of this server for extension servers. If it is nil, no certificate
	// is sent.
	Certificate func() (*tls.Certificate, error)

	// Local returns the versions that this server serves itself.
	Local func() []LocalVersion
}

// Source provides the APIService objects.
type Source interface {
	// Changed returns a number that differs after every change.
	Changed() int64
	List() []Record
}

// Record is an APIService object. It does not change as long as its revision does not.
type Record struct {
	Name     string
	Revision int64
	Object   func() *meta.Object
}

// LocalVersion is a group version that this server serves itself.
type LocalVersion struct {
	meta.GroupVersion
	Defined bool // all of its kinds come from definitions
}

// Fault is why a service cannot be reached: the reason and message of a condition.
type Fault struct {
	Reason, Message string
	Unknown         bool // whether it can be reached is unknown
}

// Aggregator manages the APIServices of a server. It is safe for concurrent use.
type Aggregator struct {
	o          Options
	own        string // the group of APIServices, which this server always serves itself
	via        string // value for the Via header; a request that has it has passed this server before
	meters     *meters
	enqueue    func(key string) // adds a key to the queue of the availability controller
	registered atomic.Bool      // there is an APIService for each version that this server serves itself
	started    time.Time
	settled    atomic.Bool // see Settled

	unhealthySlots chan struct{} // limits concurrent probes of servers that failed their last probe
	fetchSlots     chan struct{} // limits concurrent reads of OpenAPI documents
	parseMu        sync.Mutex    // held while an OpenAPI document is parsed

	synced atomic.Int64          // Options.Objects.Changed() of table; -1: never read. Stored with mu held
	table  atomic.Pointer[Table] // stored with mu held

	mu             sync.Mutex         // guards the fields below
	known          map[string]*record // by name of the APIService
	transports     map[target]*transport
	serial         int64 // of the newest table
	lastGeneration int64 // the largest Version.generation
}

// Limits of concurrent operations that may take as long as an extension server wants. Their sum is less than the
// number of workers of the availability controller, so that some workers always remain for the servers that respond.
const (
	maxUnhealthy = 8
	maxFetching  = 4
)

// New returns an Aggregator. enqueue must add a key to the queue of the availability controller. The error is from
// the registration of metrics.
func New(o Options, enqueue func(key string)) (*Aggregator, error) {
	meters, err := newMeters(o.Metrics)
	a := &Aggregator{
		o: o, own: o.Names.Group(wellknown.GroupAggregation), via: "1.1 " + uuid.NewString(), meters: meters, enqueue: enqueue, started: time.Now(),
		unhealthySlots: make(chan struct{}, maxUnhealthy), fetchSlots: make(chan struct{}, maxFetching),
		known: map[string]*record{}, transports: map[target]*transport{},
	}
	a.synced.Store(-1)
	return a, err
}

// Resource returns the resource of the APIServices.
func (a *Aggregator) Resource() meta.GroupResource {
	return meta.GroupResource{Group: a.own, Resource: "apiservices"}
}

// Registered reports whether the APIServices for the versions that this server serves itself exist.
func (a *Aggregator) Registered() bool { return a.registered.Load() }

// Close closes the idle connections to extension servers.
func (a *Aggregator) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.transports {
		w.closeIdle()
	}
}
