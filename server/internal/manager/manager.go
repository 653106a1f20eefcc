// Package manager runs the controllers of a server.
//
// If several servers share a store, most controllers run only in the server that holds their Lease (lead.go). Each
// server also has a Lease that publishes its address to the others (heartbeat.go).
package manager

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/reconcile"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
)

// Options configure a Manager.
type Options struct {
	Names     names.Profile
	Backend   storage.Backend
	Hub       *objectcache.Set
	Objects   *objects.Store
	Client    *objects.Client
	Log       *slog.Logger
	Metrics   *metrics.Registry
	Panicked  func(controller string, p any, attrs ...any) // called in the deferred function that recovered a panic
	Advertise netip.AddrPort                               // address of the server for other machines; not published if it is the zero AddrPort
}

// Manager runs controllers. It is safe for concurrent use, except that Add must be called before Run.
type Manager struct {
	o            Options
	leads        *prometheus.GaugeVec
	slowRenewals *prometheus.CounterVec
	members      []member      // set by Add, before Run
	running      chan struct{} // see Running
	failed       chan struct{} // closed when err is set
	ended        sync.WaitGroup

	mu         sync.Mutex // guards the fields below, and keeps ended.Add from running after Stop
	started    bool
	stopped    bool
	drained    bool
	err        error              // the first error of Run
	loops      []*loop            // of the running controllers; the slice is replaced, never modified
	cancel     context.CancelFunc // ends Run; nil before Run
	cancelLead context.CancelFunc // ends the controllers that run under a Lease
}

// loop runs a controller.
type loop = reconcile.Loop[client.Event]

// member is a controller of the server.
type member struct {
	client.Controller
	plugin *Plugin // the admission plugin of the controller, or nil
}

// Plugin is the controller of an admission plugin, which may enqueue keys itself.
type Plugin struct {
	Controller client.Controller
	loop       atomic.Pointer[loop] // nil while it does not run
}

// Enqueue makes the controller reconcile a key after a pause. It does nothing while the controller
// does not run.
func (p *Plugin) Enqueue(key string, after time.Duration) {
	if l := p.loop.Load(); l != nil {
		l.Ask(key, after)
	}
}

// New returns a Manager without controllers. The error is from the registration of metrics.
func New(o Options) (*Manager, error) {
	set := metrics.For(o.Metrics)
	m := &Manager{
		o: o, running: make(chan struct{}), failed: make(chan struct{}),
		leads:        set.Gauges(metrics.Family{Name: "leader_election_master_status", Help: "1 while this server leads the controllers of a Lease, 0 while another server may lead them.", Labels: []string{"name"}}),
		slowRenewals: set.Counters(metrics.Family{Name: "leader_election_slowpath_total", Help: "Renewals of a Lease that found it changed by another writer.", Labels: []string{"name"}}),
	}
	return m, set.Err()
}

// Add adds those controllers and plugins that s selects. It must be called before Run. The error names the
// controllers that s selects by name and that do not exist.
func (m *Manager) Add(s Selection, all []client.Controller, plugins []*Plugin) error {
	has := map[string]bool{}
	add := func(c client.Controller, p *Plugin) {
		has[c.Name] = true
		if s.Selects(c.Name) {
			m.members = append(m.members, member{withIdentity(m.o.Names, c), p})
		}
	}
	for _, c := range all {
		add(c, nil)
	}
	for _, p := range plugins {
		add(p.Controller, p)
	}
	return s.missing(has)
}

// Names returns the names of the added controllers that do not belong to plugins.
func (m *Manager) Names() (list []string) {
	for _, c := range m.members {
		if c.plugin == nil {
			list = append(list, c.Name)
		}
	}
	return list
}

// Has reports whether a controller was added.
func (m *Manager) Has(name string) bool {
	return slices.ContainsFunc(m.members, func(c member) bool { return c.Name == name })
}

// Run runs the controllers until the context ends or Stop is called, and returns when they have stopped. A second
// call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leading, stopLeading := context.WithCancel(ctx)
	defer stopLeading()
	m.mu.Lock()
	if m.stopped {
		m.mu.Unlock()
		return nil
	}
	if m.started {
		m.mu.Unlock()
		return errors.New("the controllers were started already")
	}
	m.started, m.cancel, m.cancelLead = true, cancel, stopLeading
	if m.drained {
		stopLeading()
	}
	m.ended.Add(1)
	m.mu.Unlock()
	defer m.ended.Done()

	every, led := m.groups()
	var all, undecided sync.WaitGroup
	undecided.Add(1 + len(led))
	errs := make([]error, 1+len(led))
	run := func(i int, part func(decided func()) error) {
		all.Go(func() {
			decided := sync.OnceFunc(undecided.Done)
			defer decided()
			if errs[i] = part(decided); errs[i] != nil {
				m.fail(errs[i])
				cancel()
			}
		})
	}
	run(0, func(begun func()) error { return m.work(ctx, every, m.o.Client, false, begun) })
	id := candidateID()
	for i, g := range led {
		run(1+i, func(decided func()) error { return m.leadGroup(leading, g, id, decided) })
	}
	if m.o.Advertise.IsValid() && m.sharesStore() {
		all.Go(func() { m.heartbeat(leading) })
	}
	undecided.Wait()
	if m.failure() == nil {
		close(m.running)
	}
	all.Wait()
	return errors.Join(errs...)
}

// Stop ends Run. If Run was not called yet, it will return at once.
func (m *Manager) Stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopped = true
	if m.cancel != nil {
		m.cancel()
	}
}

// Wait returns when Run has returned. It must be called after Stop.
func (m *Manager) Wait() { m.ended.Wait() }

// Drain releases the Leases of the server, so that other servers run its controllers.
func (m *Manager) Drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drained = true
	if m.cancelLead != nil {
		m.cancelLead()
	}
}

// Running returns a channel that is closed when the controllers have seen every object that existed
// when Run began, and when it is known which server leads each Lease. It stays open if Run fails.
func (m *Manager) Running() <-chan struct{} { return m.running }

// fail records the first error of Run.
func (m *Manager) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
		close(m.failed)
	}
}

// failure returns the first error of Run, or nil.
func (m *Manager) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}

// work runs controllers with the client c until the context ends. It calls begun when they have seen every object
// that exists. rerun reports whether the same controllers ran before in this process.
func (m *Manager) work(ctx context.Context, members []member, c client.Client, rerun bool, begun func()) error {
	loops := make([]*loop, 0, len(members))
	for _, k := range members {
		l, err := m.newLoop(k.Controller, c)
		if err != nil {
			for _, l := range loops {
				l.Close()
			}
			return err
		}
		loops = append(loops, l)
	}
	m.mu.Lock()
	m.loops = append(slices.Clip(m.loops), loops...)
	m.mu.Unlock()
	var all sync.WaitGroup
	for i, l := range loops {
		if p := members[i].plugin; p != nil {
			p.loop.Store(l)
			defer p.loop.Store(nil)
		}
		if rerun {
			l.Forget()
		}
		l.Pull() // read the current objects, so that later deletions are seen
	}
	begun()
	for _, l := range loops {
		all.Go(func() { l.Run(ctx) })
	}
	all.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.loops = slices.DeleteFunc(slices.Clone(m.loops), func(l *loop) bool { return slices.Contains(loops, l) })
	return nil
}

// newLoop returns the loop of a controller.
func (m *Manager) newLoop(k client.Controller, c client.Client) (*loop, error) {
	feed := m.o.Hub.Feed
	if k.Identity {
		feed = m.o.Hub.IdentityFeed
	}
	return reconcile.New(reconcile.Options[client.Event]{
		Name: k.Name, Workers: k.Workers, MapEvent: k.MapEvent, Forget: k.Forget, Log: m.o.Log, Metrics: m.o.Metrics,
		Attrs: func(e client.Event) []any {
			return []any{"resource", e.Resource, "namespace", e.Key.Namespace, "name", e.Key.Name}
		},
		Reconcile: func(ctx context.Context, key string) (time.Duration, error) { return k.Reconcile(ctx, c, key) },
		Panicked:  func(p any, attrs ...any) { m.o.Panicked(k.Name, p, attrs...) },
	}, reconcile.Feed[client.Event](feed(k.Types...)))
}

// current returns the loops of the running controllers. The slice must not be modified.
func (m *Manager) current() []*loop {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.loops
}

// Settle waits until Run has begun, the controllers of this server have seen every commit, and no key
// is queued or due within five seconds. It returns the error of Run if Run failed.
func (m *Manager) Settle(ctx context.Context) error {
	select {
	case <-m.running:
	case <-m.failed:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		if err := m.failure(); err != nil {
			return err
		}
		rev, err := m.o.Backend.Revision(ctx)
		if err != nil {
			return err
		}
		if err := m.o.Hub.Wait(ctx, rev); err != nil {
			return err
		}
		loops := m.current()
		for _, l := range loops {
			if err := l.Settle(ctx, rev); err != nil {
				return err
			}
		}
		if now, err := m.o.Backend.Revision(ctx); err != nil || now == rev && slices.Equal(loops, m.current()) {
			return cmp.Or(err, m.failure())
		}
	}
}
