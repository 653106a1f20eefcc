// Package aggregator makes other servers part of this one: APIService objects say which
// version of an API group who serves.
//
// A Table (table.go) is what the objects say at a time; requests ask it alone. Two
// controllers stand behind it: one looks whether the other servers are there, says so in
// the objects (availability.go, status.go) and keeps what they tell of themselves
// (discovery.go, openapi.go), one makes objects for the versions that are served here
// (registration.go). The way to another server, and how it is told who calls, is in way.go.
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

// Options are what an Aggregator is made of.
type Options struct {
	Names   names.Profile
	Objects Source // the APIServices
	Log     *slog.Logger
	Metrics prometheus.Registerer

	// Services find what services lead to, and Missing tells why one leads nowhere, as far
	// as that is known without asking it; nil is nothing.
	Services services.Resolver
	Missing  func(context.Context, services.Service) *Fault

	// Certificate is what other servers know this one by; nil: they do not.
	Certificate func() (*tls.Certificate, error)

	// Local returns the versions that are served here.
	Local func() []LocalVersion
}

// Source are the APIService objects.
type Source interface {
	// Changed returns a number that is another one after any change.
	Changed() int64
	List() []Record
}

// Record is one object. It is the same as long as its revision is.
type Record struct {
	Name     string
	Revision int64
	Object   func() *meta.Object
}

// LocalVersion is a version of a group that is served here.
type LocalVersion struct {
	meta.GroupVersion
	Defined bool // by definitions alone
}

// Fault is why a service cannot be reached: the reason of a condition and a text.
type Fault struct {
	Reason, Message string
	Unknown         bool // that it cannot be reached
}

// Aggregator knows the APIServices of a server.
type Aggregator struct {
	o          Options
	own        string // the group of the APIServices, which is always served here
	word       string // in the header Via: a request that has it was here before
	figures    *figures
	ask        func(key string) // has the availability controller look at a key soon
	registered atomic.Bool      // there is an object for each version that is served here
	born       time.Time
	settled    atomic.Bool   // see Settled
	doubtful   chan struct{} // places for looks at servers that were not well the last time
	fetching   chan struct{} // places for those who fetch long documents
	parsing    sync.Mutex    // held while one is read

	synced  atomic.Int64
	table   atomic.Pointer[Table]
	mu      sync.Mutex // guards the rest, and the order of tables
	known   map[string]*record
	ways    map[target]*way
	serial  int64
	unknown int64 // versions so far of which nothing was known
}

// Places for what takes as long as other servers want. All together are fewer than the
// controller has workers, so that some are left for the servers that answer.
const (
	maxDoubtful = 8
	maxFetching = 4
)

// New returns an Aggregator. ask has a key of the availability controller looked at soon.
// The error is that of registering metrics.
func New(o Options, ask func(key string)) (*Aggregator, error) {
	figures, err := newFigures(o.Metrics)
	a := &Aggregator{
		o: o, own: o.Names.Group(wellknown.GroupAggregation), word: "1.1 " + uuid.NewString(), figures: figures, ask: ask, born: time.Now(),
		doubtful: make(chan struct{}, maxDoubtful), fetching: make(chan struct{}, maxFetching),
		known: map[string]*record{}, ways: map[target]*way{},
	}
	a.synced.Store(-1)
	return a, err
}

// Resource returns the resource of the APIServices.
func (a *Aggregator) Resource() meta.GroupResource {
	return meta.GroupResource{Group: a.own, Resource: "apiservices"}
}

// Registered reports whether the versions that are served here have their objects.
func (a *Aggregator) Registered() bool { return a.registered.Load() }

// Close lets the connections to other servers go.
func (a *Aggregator) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.ways {
		w.end()
	}
}
