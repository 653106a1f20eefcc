// Package server is the API server: it takes a request apart, asks who and
// whether, and reads, writes or watches objects of the registered kinds.
//
// The way of a GET and of a POST through its files is told in the documentation of
// the module's root, [orch.io/controlplane]. A watch takes the same door, then
// stream.go.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/clientconfig"
	"orch.io/controlplane/controller"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/conversion"
	"orch.io/controlplane/server/internal/fair"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// Builder says what a server is made of. Fill in its fields, Register kinds and
// Build; an Authorizer is the one thing that has no default. A Builder is used once.
type Builder struct {
	// Names chooses the words on the wire; zero is the product's own.
	Names names.Profile

	// Storage keeps the objects; nil is a new memory store. Build takes it
	// over: Shutdown closes it, and so does a Build that fails.
	Storage storage.Backend

	// Authenticators find out who calls; the first that knows decides, and a
	// caller whom none knows is refused with 401. auth.AnonymousAccess among
	// them lets callers without credentials in as system:anonymous. None at all
	// means that everybody is anonymous.
	Authenticators []auth.Authenticator

	// Authorizer decides what callers may do. There is no default: nil fails
	// Build. auth.AllowAll is the explicit choice of no access control.
	Authorizer auth.Authorizer

	// Admission are plugins that change or refuse writes, in order, in the place
	// that plugins.Table gives them among the built-in ones.
	Admission []admission.Plugin

	// AdmissionOptions choose and configure plugins, the built-in ones and those of
	// Admission, by name.
	AdmissionOptions admission.Options

	// Prepare runs at the end of Build, before any request is answered: for
	// objects that have to be there from the start. An error fails Build.
	Prepare []func(context.Context, controller.Client) error

	// Controllers run beside the built-in controllers while Run runs.
	Controllers []controller.Controller

	// RunControllers chooses the built-in controllers that run, see ControllerNames: "*" is
	// all, "NAME" is one, "-NAME" leaves one out, wherever it stands, and "envtest" is those
	// that do what the field's API server does by itself: no namespace is emptied, nothing
	// is collected, no account is made. None is "*". Of Controllers all run but those that
	// "-NAME" leaves out.
	RunControllers []string

	// Handlers serve further paths, such as issuer discovery, behind
	// authentication and authorization. Keys are exact paths, or prefixes if
	// they end in a slash; meta.UserFrom(r.Context()) is who calls.
	Handlers map[string]http.Handler

	// Connector is the way to nodes and pods, such as a nodeagent.Connector. nil:
	// there is none, and what leads there (log, exec, attach, portforward, proxy) is 503.
	Connector Connector

	// Services find what a service leads to that the server itself calls, such as that
	// of a webhook: an address, or a handler of this program. nil, and an empty Endpoint
	// without an error, is what the objects say: the Service's clusterIP or external
	// name, or one of its ready endpoints.
	Services clientconfig.Services

	// Limits bounds what callers can cost; zero fields have defaults.
	Limits Limits

	// What an operator sees.

	// Logger receives what an operator should know; nil discards.
	Logger *slog.Logger

	// Audit receives what happens; nil records nothing. If it has a method Check,
	// as an audit.Log has, the health endpoints tell whether it is degraded; if it
	// is a prometheus.Collector, /metrics shows what it counts.
	Audit auth.Auditor

	// Checks are health checks beside the server's own, by name.
	Checks map[string]func(context.Context) error

	// Metrics is where metrics are registered; nil is a private registry.
	// Either way /metrics shows them.
	Metrics *prometheus.Registry

	// Release is the release whose versions of kinds are served, such as "1.22": what is
	// introduced later is not, nor what is removed by then. Objects are stored such that
	// the release before can read them, and those that any release has stored are read.
	// The oldest one is 1.15; empty is the newest.
	//
	// Where the admission plugin PodSecurityPolicy is enabled its policies are served in
	// every release.
	Release string

	// Serving is what few programs change.
	Serving Serving

	kinds   []*registry.Kind
	client  objects.Client
	plugged []*plugged            // of admission plugins
	finds   clientconfig.Services // what services lead to
	built   bool                  // a server was made of it
}

// Serving is how requests are answered. A zero field means what its comment says.
type Serving struct {
	// FlowControl says how requests share Limits.InFlight. A fault in it fails Build.
	// nil is flowcontrol.Default and, if the kinds of flow control are registered, what
	// their objects say from then on.
	FlowControl *flowcontrol.Config

	// GzipFrom is the length in bytes from which on an answer is compressed with
	// gzip, for callers who accept that; watches never are. Zero is 128 KiB, and
	// only for callers on other machines: on loopback it costs more than it saves.
	// Negative is never.
	GzipFrom int

	// Version is what /version tells as gitVersion; empty is that of Builder.Release.
	Version string

	// LivezGrace is how long after the start /livez ignores failing checks
	// other than ping. Zero: not at all.
	LivezGrace time.Duration

	// DisabledVersions are group/versions that are not served, such as
	// "apps/v1" or "v1" for the core group.
	DisabledVersions []string
}

// Limits bounds requests. A zero field means the default that its comment gives.
//
// Of LargeBodies, LongAnswers, Requests, Watches and Connections every priority level keeps the
// share that it does not lend, half of all at most. A quarter is for who holds
// nothing yet; of the rest of what his level may have nobody may hold more than is
// still free: one user has half of it at most, two have a third each. The service accounts of a namespace are one user here. Users
// of an exempt level are not bounded. Who has too much is told so with 429.
type Limits struct {
	Body           int64         // bytes of a request body: 3 MiB
	LargeBodies    int64         // bytes of room for all bodies over 16 KiB at a time, made as they come, held until the answer: 24 MiB; see below
	LongAnswers    int64         // bytes of all answers over 16 KiB made for one caller, until they are read; of JSON lists what is made for them alone: 128 MiB; see below
	Depth          int           // nesting of JSON and YAML: 1000
	Entries        int           // of one object or list in a body: 20,000
	InFlight       int           // seats: requests that are worked on at a time, shared as Serving.FlowControl says: 600
	Requests       int           // requests at a time, those that wait for a body, a seat or a reader among them, but no watches and connections: 8 times InFlight; see below
	Watches        int           // watches at a time: 100,000; see below
	Connections    int           // connections to nodes and pods, such as of exec, log and proxy, at a time, each with two sockets and ten times the memory of a watch: 10,000; see below
	RequestTime    time.Duration // of one request that is no watch and no connection: 60 s
	WatchTime      time.Duration // of one watch without timeoutSeconds: 30 to 60 minutes at random
	FutureWait     time.Duration // for a resourceVersion from the future: 3 s
	PatchOps       int           // operations of a JSON patch: 10,000
	History        time.Duration // of watches, exact lists and continue tokens: 5 minutes
	CollectionPage int           // objects that one deletecollection removes at most: 100,000
	NamespaceBytes int64         // of all objects of one namespace, as JSON of their hubs; what would exceed it is 403: no bound
	StoreBytes     int64         // of all objects; what would exceed it is 507: no bound. What makes objects smaller, and deletions, always pass
	HistoryBytes   int64         // of replaced objects kept in memory for watches and paging, older ones come from the store: 32 MiB
}

func (l Limits) withDefaults() Limits {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	span := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if l.Body == 0 {
		l.Body = 3 << 20
	}
	if l.LargeBodies == 0 {
		l.LargeBodies = 24 << 20
	}
	def(&l.Depth, 1000)
	def(&l.Entries, 20_000)
	if l.LongAnswers == 0 {
		l.LongAnswers = 128 << 20
	}
	def(&l.InFlight, 600)
	def(&l.Requests, 8*l.InFlight)
	def(&l.Watches, 100_000)
	def(&l.Connections, 10_000)
	def(&l.PatchOps, 10_000)
	def(&l.CollectionPage, 100_000)
	span(&l.RequestTime, time.Minute)
	span(&l.WatchTime, 0)
	span(&l.FutureWait, 3*time.Second)
	span(&l.History, 5*time.Minute)
	return l
}

func (b *Builder) flowControl() flowcontrol.Config {
	if b.Serving.FlowControl != nil {
		return *b.Serving.FlowControl
	}
	return flowcontrol.Default(b.Names)
}

// Register adds kinds. What is wrong with them is reported by Build.
func (b *Builder) Register(kinds ...*registry.Kind) {
	for _, k := range kinds {
		if k != nil {
			k = k.Clone()
		}
		b.kinds = append(b.kinds, k)
	}
}

// Kind returns the registered kind of a spec group and name, nil if there is none. It
// is this server's own, and what is changed in it before Build holds: a built-in kind
// gets a further sub-resource, or another pool.
//
//	b.Register(builtin.Kinds()...)
//	b.Kind("", "Service").Pool = core.ServiceNetwork{Addresses: network}.Pool()
func (b *Builder) Kind(group, name string) *registry.Kind {
	i := slices.IndexFunc(b.kinds, func(k *registry.Kind) bool { return k != nil && k.Group == group && k.Kind == name })
	if i < 0 {
		return nil
	}
	return b.kinds[i]
}

// Client returns a client that works once the server is built, for parts that
// the server is built from, such as an authorizer that reads roles. Until then
// its methods fail with 503.
func (b *Builder) Client() controller.Client { return &b.client }

// Build makes the server and loads what the store holds. It reports every
// fault of the configuration and of the kinds at once, joined, and a *NamesError
// if the store was filled under other names. The server answers requests as soon
// as Build returns; its controllers start with Run.
//
// Storage belongs to Build from the call on: when it fails, for whatever reason,
// the store is closed. A Builder that has made a server makes no other one.
func (b *Builder) Build(ctx context.Context) (built *Server, err error) {
	if b.built {
		return nil, errors.New("this Builder has made a server: a further one takes a Builder of its own")
	}
	if !isNil(b.Storage) {
		defer func() {
			if err != nil {
				err = errors.Join(err, b.Storage.Close())
			}
		}()
	}
	faults := b.faults()
	var s *Server
	types, err := b.compile(func(ctx context.Context) ([]*meta.Object, error) { return s.components(ctx) })
	if err == nil {
		faults = append(faults, b.servedFaults(types)...)
	} else {
		faults = append(faults, err)
	}
	plugs := b.pluginFaults()
	faults = append(faults, plugs...)
	if err := fair.Check(b.flowControl()); err != nil {
		faults = append(faults, fmt.Errorf("Serving.FlowControl: %w", err))
	}
	log := b.Logger
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if b.Metrics == nil {
		b.Metrics = prometheus.NewRegistry()
	}
	b.plugged, b.finds = nil, newServices(b.Names, &b.client, b.Services).find
	var chain *admission.Chain
	if len(plugs) == 0 {
		chain, err = b.admission(log)
		faults = append(faults, err)
	}
	faults = append(faults, b.checkChoice())
	if err := errors.Join(faults...); err != nil {
		if chain != nil {
			chain.Close()
		}
		return nil, err
	}
	if s, err = b.newServer(log); err != nil {
		return nil, err
	}
	if s, err = s.open(ctx, b, types, chain); err == nil {
		b.built = true
	}
	return s, err
}

// admission makes the chain of the plugins.
func (b *Builder) admission(log *slog.Logger) (*admission.Chain, error) {
	return admission.New(plugins.Table(b.Admission...), b.AdmissionOptions, admission.Env{
		Names: b.Names, Authorizer: b.Authorizer, Client: &b.client, Admitted: objects.Admitted{Client: &b.client}, Type: b.client.Type, Schema: b.client.Schema, Convert: b.client.Convert, Log: log,
		Runs: func(name string) bool {
			return b.runs(name) && slices.ContainsFunc(b.Controllers, func(c controller.Controller) bool { return c.Name == name })
		},
		Control: func(c controller.Controller) func(string, time.Duration) {
			p := &plugged{controller: c}
			b.plugged = append(b.plugged, p)
			return p.ask
		},
		Services: b.finds, Metrics: b.Metrics,
	})
}

// newServer makes a server of the parts that need nothing of the store.
func (b *Builder) newServer(log *slog.Logger) (*Server, error) {
	s := &Server{
		names: b.Names, backend: b.Storage, limits: b.Limits.withDefaults(), log: log, failures: failures{log: log}, begun: make(chan struct{}),
		authenticator: auth.Union(b.Authenticators...), authorizer: b.Authorizer,
		handlers: b.Handlers, connector: b.Connector, audit: b.Audit, version: b.gitVersion(), started: time.Now(), livezGrace: b.Serving.LivezGrace,
		checks: b.Checks,
	}
	s.zipper.from, s.zipper.near = cmp.Or(b.Serving.GzipFrom, gzipFrom), b.Serving.GzipFrom > 0
	if len(b.Authenticators) == 0 {
		s.authenticator = auth.Union(auth.AnonymousAccess)
	}
	s.life, s.end = context.WithCancel(context.Background())
	if s.backend == nil {
		s.backend = memstore.New(memstore.Options{Retain: s.limits.History})
	}
	s.writer, _ = s.backend.(storage.Writer)
	s.metrics = newMetrics(b.Metrics, s.backend)
	s.conversions = conversion.New(b.Names, b.finds, b.Metrics, s.failures.report)
	if c, ok := b.Audit.(prometheus.Collector); ok {
		var twice prometheus.AlreadyRegisteredError
		if err := s.metrics.registry.Register(c); err != nil && !errors.As(err, &twice) { // servers may share an audit
			return nil, fmt.Errorf("metrics of the audit: %w", err)
		}
	}
	s.slis = newSLIs(b.Names)
	if err := b.newShares(s); err != nil {
		return nil, err
	}
	return s, nil
}

// open loads what the store holds and makes the parts that stand on it.
func (s *Server) open(ctx context.Context, b *Builder, types []*resource.Type, chain *admission.Chain) (*Server, error) {
	for _, t := range types {
		s.setConverter(t)
	}
	s.catalog.Put(types...)
	if err := s.stamp(ctx); err != nil {
		return nil, err
	}
	if err := s.firstRevision(ctx); err != nil {
		return nil, err
	}
	var err error
	records := objects.Records(s.backend, types, s.log)
	if s.hub, err = watch.Open(ctx, records, watch.Options{
		Retain: s.limits.History, MaxBytes: s.limits.HistoryBytes, Panicked: func(p any) { s.panicked("storage", p) },
	}); err != nil {
		return nil, fmt.Errorf("loading the store: %w", err)
	}
	s.openDefinitions()
	s.objects = objects.New(objects.Options{
		Names: s.names, Backend: records, Hub: s.hub, Types: s.types, Admission: chain, Log: s.log,
		RequestTime: s.limits.RequestTime, FutureWait: s.limits.FutureWait,
		NamespaceBytes: s.limits.NamespaceBytes, StoreBytes: s.limits.StoreBytes,
	}, types)
	s.client, s.chain = &b.client, chain
	s.client.Open(s.objects)
	if err := s.choose(b, append(s.builtinControllers(), b.Controllers...)); err != nil {
		return nil, errors.Join(err, s.Shutdown(ctx))
	}
	if err := s.objects.ReserveHeld(ctx); err != nil {
		s.log.Error("what objects hold is not reserved; other servers over the store may give it again", "error", err)
	}
	err = s.objects.Bootstrap(ctx, s.client)
	if f, ok := s.flowObjects(); ok && err == nil {
		err = f.Start(ctx, s.client)
	}
	if n, ok := s.serviceNetworks(); ok && err == nil {
		err = n.Start(ctx, s.client)
	}
	for _, prepare := range b.Prepare {
		if err == nil {
			err = prepare(ctx, s.client)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Shutdown(ctx))
	}
	return s, nil
}

// compile makes the types of the registered kinds. components reads what the server
// stands on; it belongs to one server and is not kept in the Builder's kind.
func (b *Builder) compile(components func(context.Context) ([]*meta.Object, error)) ([]*resource.Type, error) {
	var types []*resource.Type
	var faults []error
	seen := map[meta.GroupResource]bool{}
	seenKind := map[meta.GroupKind]bool{}
	for i, k := range b.kinds {
		if k == nil {
			faults = append(faults, fmt.Errorf("Register: kind %d of those registered is nil", i+1))
			continue
		}
		if k.Group == "" && k.Kind == "ComponentStatus" && k.Read == nil {
			k = k.Clone()
			k.Read = components
		}
		t, err := resource.CompileAt(k, b.Names, b.releaseOf(k))
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if t == nil {
			continue
		}
		if seen[t.GroupResource()] || seenKind[t.GroupKind()] {
			faults = append(faults, fmt.Errorf("kind %s (%s) is registered twice", t.GroupKind(), t.GroupResource()))
			continue
		}
		seen[t.GroupResource()], seenKind[t.GroupKind()] = true, true
		for _, v := range t.Versions {
			for _, off := range b.Serving.DisabledVersions {
				if v.GVK().APIVersion() == off {
					v.Served = false
				}
			}
		}
		faults = append(faults, t.RuleFaults()...)
		types = append(types, t)
	}
	if err := resource.Clashes(types); err != nil {
		faults = append(faults, err)
	}
	return types, errors.Join(faults...)
}

// stamp marks the store with the naming profile, or refuses a store that was
// filled under another.
func (s *Server) stamp(ctx context.Context) error {
	st, ok := s.backend.(storage.Stamper)
	if !ok {
		return nil
	}
	found, err := st.Stamp(ctx, "names", s.names.String())
	if err != nil {
		return fmt.Errorf("stamping the store: %w", err)
	}
	if found != s.names.String() {
		return &NamesError{Store: found, Server: s.names.String()}
	}
	return nil
}

// firstRevision gives an empty store its first revision. Another server may do that, too.
func (s *Server) firstRevision(ctx context.Context) error {
	rev, err := s.backend.Revision(ctx)
	if err != nil || rev > 0 {
		return err
	}
	var conflict *storage.ConflictError
	_, err = s.backend.Commit(ctx, storage.Write{Key: resource.FirstKey, Value: []byte("{}")})
	if err != nil && !errors.As(err, &conflict) {
		return fmt.Errorf("beginning the store: %w", err)
	}
	return nil
}

// NamesError says that a store was filled under other names than the server's.
// What it holds cannot be served under these.
type NamesError struct{ Store, Server string }

// Error implements error.
func (e *NamesError) Error() string {
	return fmt.Sprintf("the store was filled with %q names, this server uses %q", e.Store, e.Server)
}
