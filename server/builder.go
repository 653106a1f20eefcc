package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/flowcontrol"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/conversion"
	"orch.io/controlplane/server/internal/definitions"
	"orch.io/controlplane/server/internal/discovery"
	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/server/internal/fairqueue"
	"orch.io/controlplane/server/internal/health"
	"orch.io/controlplane/server/internal/manager"
	"orch.io/controlplane/server/internal/metered"
	"orch.io/controlplane/server/internal/migration"
	"orch.io/controlplane/server/internal/objectcache"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestmetrics"
	"orch.io/controlplane/server/internal/serviceresolver"
	"orch.io/controlplane/server/internal/telemetry"
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

	// ServeIncompatible serves a store that holds what the kinds cannot show, as after a field was
	// removed or has another type, instead of failing Build with a *IncompatibleError. What
	// does not fit stays in the store, unseen, until the field is written; an object that
	// cannot be read at all can only be deleted.
	ServeIncompatible bool

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

	// OnStart runs at the end of Build, before any request is answered: for
	// objects that have to be there from the start. An error fails Build.
	OnStart []func(context.Context, client.Client) error

	// Controllers run beside the built-in controllers while Run runs; of several servers over
	// one store one runs each, unless its field EveryServer is set.
	Controllers []client.Controller

	// RunControllers chooses the built-in controllers that run, see ControllerNames: "*" is
	// all, "NAME" is one, "-NAME" leaves one out, wherever it stands, and "envtest" is those
	// that do what the field's API server does by itself: no namespace is emptied, nothing
	// is collected, no account is made. None is "*". Of Controllers all run but those that
	// "-NAME" leaves out.
	RunControllers []string

	// Handlers serve further paths, such as issuer discovery, behind
	// authentication and authorization. Keys are exact paths, or prefixes if
	// they end in a slash; meta.UserFrom(r.Context()) is who calls. An answer may take
	// Limits.RequestTime, or what http.ResponseController.SetWriteDeadline gives the writes
	// that follow: a long one sets it before each of them, so that a caller who does not read
	// is still cut off.
	Handlers map[string]http.Handler

	// Connector is the way to nodes and pods, such as a nodeagent.Connector. nil:
	// there is none, and what leads there (log, exec, attach, portforward, proxy) is 503.
	Connector Connector

	// ServiceResolver finds the endpoints of services that the server calls, such as those
	// of webhooks and aggregated API servers. If it is nil or returns an empty Endpoint, the
	// Service object decides: its clusterIP or external name, or one of its ready endpoints.
	ServiceResolver ServiceResolver

	// Advertise is where other machines reach the server; package access sets it to what it
	// publishes. Where several servers may be over the store (storage.Shared), the server tells
	// so by a Lease in the system namespace, from Run until it is drained or shut down. The Leases
	// of servers that were killed are removed by the controller of package access.
	Advertise netip.AddrPort

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
	// Either way /metrics shows them. One registry is for one server: those of a Build
	// that failed are taken back, those of a server that ended stay.
	Metrics *prometheus.Registry

	// Release is the release whose versions of kinds are served, such as "1.22": what is
	// introduced later is not, nor what is removed by then. Objects are stored such that
	// the release before can read them, and those that any release has stored are read.
	// It decides which features are on, too. The oldest one is 1.15; empty is the newest.
	//
	// Where the admission plugin PodSecurityPolicy is enabled its policies are served in
	// every release.
	Release string

	// Features switches features on and off by the names of their gates, and by AllAlpha
	// and AllBeta those of a stage that are not named themselves. What is not set is as
	// features.Gates says. To switch off what is on for good fails Build.
	Features map[string]bool

	// Gates are those of the program's own features, which kinds name in the tag word gate
	// and the program asks for by Enabled.
	Gates []features.Gate

	// Serving is what few programs change.
	Serving Serving

	kinds    []*registry.Kind
	client   objects.Client
	plugins  []*manager.Plugin // the controllers of admission plugins
	resolver *serviceresolver.Resolver
	shown    *metrics.Registry // what /metrics shows
	limits   Limits            // with defaults; by Build
	stored   storage.Backend   // Storage, measured; by Build
	built    bool              // a server was made of it

	features *features.Set // by Build
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

	// ShowHiddenMetricsFor is the minor release before this one, such as "1.36", to have
	// /metrics show what was hidden since: for dashboards that are late. Empty: it is not.
	// Any other release fails Build.
	ShowHiddenMetricsFor string

	// LivezGrace is how long after the start /livez ignores failing checks
	// other than ping. Zero: not at all.
	LivezGrace time.Duration

	// RuntimeConfig says what of the registered kinds is served. A key is a version, such
	// as "apps/v1", or "v1" of the core group; one resource of it, "apps/v1/deployments";
	// "api/ga", "api/beta" or "api/alpha", all versions of that stability; "api/legacy",
	// those of the core group but v1; or "api/all". Names are those on the wire. A value
	// is "true", "false", or empty, which is true. Of several keys the most specific
	// counts; what none speaks of is served. Unknown keys fail Build.
	//
	// A kind of which no version is left is not there for callers, and what works on it does
	// without. Its names stay its own, so that no definition gets them, and so does what is
	// stored of it: that is there when the kind is served again, unless its namespace is
	// deleted meanwhile. Kinds of definitions that the server holds are served as those say.
	RuntimeConfig map[string]string

	// ProxyCertificate returns the client certificate, with its key, that the servers which
	// APIServices name know this one by. It is asked for each request, so that it should keep
	// what it returns; after another one new connections are made, and those of before end
	// with what runs on them. By it they believe the headers X-Remote-User, X-Remote-Uid,
	// X-Remote-Group and X-Remote-Extra-, which tell who calls; access.Publish tells them
	// so. nil: there is none, and they do not know who calls.
	ProxyCertificate func() (*tls.Certificate, error)
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
func (b *Builder) Client() client.Client { return &b.client }

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
	defer func() {
		if err != nil && b.shown != nil {
			b.shown.Close()
		}
	}()
	faults := b.faults()
	var s *Server
	types, unserved := b.served(func(ctx context.Context) ([]*meta.Object, error) { return s.health.Components(ctx) })
	faults = append(faults, unserved...)
	plugs := b.pluginFaults()
	faults = append(faults, plugs...)
	if err := fairqueue.Check(b.flowControl()); err != nil {
		faults = append(faults, fmt.Errorf("Serving.FlowControl: %w", err))
	}
	log := b.Logger
	if log == nil {
		log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if err := b.showMetrics(); err != nil {
		return nil, errors.Join(append(faults, err)...)
	}
	resolver := serviceresolver.New(b.Names, &b.client, b.ServiceResolver)
	b.plugins, b.resolver = nil, resolver
	var chain *admission.Chain
	if len(plugs) == 0 {
		var fault error
		chain, fault = b.admission(log)
		faults = append(faults, fault)
	}
	defer func() {
		if err != nil && chain != nil {
			chain.Close()
		}
	}()
	faults = append(faults, b.checkSelection())
	if err := errors.Join(faults...); err != nil {
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

// showMetrics makes what metrics are registered with.
func (b *Builder) showMetrics() (err error) {
	if b.Metrics == nil {
		b.Metrics = prometheus.NewRegistry()
	}
	r, _ := b.release() // a fault of it fails Build
	show := b.Serving.ShowHiddenMetricsFor
	if err := metrics.CheckShow(r, show); err != nil {
		return fmt.Errorf("Serving.ShowHiddenMetricsFor: %w", err)
	}
	b.shown, err = metrics.NewRegistry(b.Metrics, r, show != "")
	return err
}

// admission makes the chain of the plugins.
func (b *Builder) admission(log *slog.Logger) (*admission.Chain, error) {
	return admission.New(plugins.Table(b.Admission...), b.AdmissionOptions, admission.PluginContext{
		Names: b.Names, Authorizer: b.Authorizer, Features: b.features, Rules: b.rules(), Client: &b.client, Accounting: objects.Admitted{Client: &b.client}, Type: b.client.Type, Schema: b.client.Schema, Convert: b.client.Convert, Log: log,
		Runs: func(name string) bool {
			return manager.Selection(b.RunControllers).Selects(name) && slices.ContainsFunc(b.Controllers, func(c client.Controller) bool { return c.Name == name })
		},
		Control: func(c client.Controller) func(string, time.Duration) {
			p := &manager.Plugin{Controller: c}
			b.plugins = append(b.plugins, p)
			return p.Enqueue
		},
		Services: b.resolver.Resolve, Metrics: b.shown,
	})
}

// newServer makes a server of the parts that need nothing of the store.
func (b *Builder) newServer(log *slog.Logger) (s *Server, err error) {
	b.limits = b.Limits.withDefaults()
	s = &Server{
		names: b.Names, backend: b.Storage, log: log,
		authenticator: auth.Union(b.Authenticators...),
		version:       b.gitVersion(),
	}
	s.errors = &errorlog.Log{Logger: log, Panics: func(part string) { s.metrics.Panicked(part) }}
	s.responder.Names, s.responder.Errors = b.Names, s.errors
	s.responder.Compress.From, s.responder.Compress.Local = cmp.Or(b.Serving.GzipFrom, gzipFrom), b.Serving.GzipFrom > 0
	if !b.features.Enabled(features.APIResponseCompression) {
		s.responder.Compress.From = -1
	}
	if len(b.Authenticators) == 0 {
		s.authenticator = auth.Union(auth.AnonymousAccess)
	}
	if s.backend == nil {
		s.backend = memstore.New(memstore.Options{Retain: b.limits.History})
	}
	set := metrics.For(b.shown)
	s.catalog = definitions.New(definitions.Options{
		Names: s.names, Rules: b.rules(), Features: b.features, Log: log, Webhooks: conversion.New(b.Names, b.resolver.Resolve, set, s.errors.Report),
	})
	s.registry, s.metrics = b.shown, requestmetrics.New(set, s.catalog.Types, func() *aggregator.Table { return s.aggregator.Table() })
	if err := s.authenticator.Measure(b.shown); err != nil {
		return nil, fmt.Errorf("metrics of the authenticators: %w", err)
	}
	b.stored = metered.New(s.backend, set, s.catalog.Known)
	if err := set.Err(); err != nil {
		return nil, err
	}
	s.handlers = maps.Clone(b.Handlers)
	if s.handlers == nil {
		s.handlers = map[string]http.Handler{}
	}
	s.handlers["/metrics"] = telemetry.NewHandler(b.shown, b.Metrics, log)
	s.capacity, err = capacity.New(capacity.Options{
		Names: b.Names, Metrics: b.shown, Config: b.flowControl(), Pinned: b.Serving.FlowControl != nil,
		Seats: b.limits.InFlight, MaxWait: b.limits.RequestTime / 4,
		Requests: b.limits.Requests, Watches: b.limits.Watches, Connections: b.limits.Connections,
		BodyBytes: b.limits.LargeBodies, AnswerBytes: b.limits.LongAnswers,
	})
	return s, err
}

// open loads what the store holds and makes the parts that stand on it.
func (s *Server) open(ctx context.Context, b *Builder, types []*resource.Type, chain *admission.Chain) (*Server, error) {
	s.catalog.Register(types...)
	if err := s.stamp(ctx); err != nil {
		return nil, err
	}
	records, err := s.load(ctx, b, types)
	if err != nil {
		return nil, err
	}
	s.catalog.Open(s.hub)
	figures := s.openAggregation(b)
	s.objects = objects.New(objects.Options{
		Names: s.names, Records: records, Hub: s.hub, Types: s.catalog.Types, Admission: chain, Log: s.log,
		Audit:  b.auditWrites(s.errors),
		Waited: s.metrics.Waited, RequestTime: b.limits.RequestTime, FutureWait: b.limits.FutureWait,
		ObjectBytes: b.limits.ObjectBytes, NamespaceBytes: b.limits.NamespaceBytes, StoreBytes: b.limits.StoreBytes,
	}, types)
	s.client, s.chain = &b.client, chain
	s.client.Open(s.objects)
	s.openRequests(b)
	s.migrator = migration.New(migration.Options{Names: s.names, Catalog: s.catalog, Objects: s.objects, Hub: s.hub, Client: s.client, Log: s.log})
	s.manager, err = manager.New(manager.Options{
		Names: s.names, Backend: s.backend, Hub: s.hub, Objects: s.objects, Client: s.client, Log: s.log,
		Metrics: s.registry, Panicked: s.errors.Panic, Advertise: b.Advertise,
	})
	selection := manager.Selection(b.RunControllers)
	if err := errors.Join(err, figures, s.addMetrics(b), s.manager.Add(selection, append(s.builtinControllers(), b.Controllers...), b.plugins)); err != nil {
		return nil, errors.Join(err, s.Shutdown(ctx))
	}
	b.logFeatures(s.log)
	s.health = s.newHealth(b)
	s.discovery = &discovery.Handler{
		Names: s.names, Version: s.version, Types: s.catalog.Types, Aggregator: s.aggregator, Paths: slices.Collect(maps.Keys(s.handlers)),
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
	if s.registers() && err == nil {
		err = s.aggregator.Register(ctx, s.client)
	}
	for _, prepare := range b.OnStart {
		if err == nil {
			err = prepare(ctx, s.client)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Shutdown(ctx))
	}
	s.tellUnserved()
	return s, nil
}

// addMetrics registers the metrics of the store, the caches and the process.
func (s *Server) addMetrics(b *Builder) error {
	return telemetry.Register(telemetry.Options{
		Names: s.names, Registry: s.registry, Types: s.catalog.Types, Hub: s.hub, Backend: s.backend,
		Features: b.features, Audit: b.Audit, Build: discovery.Version(s.version),
	})
}

// newHealth returns the handler of the health endpoints.
func (s *Server) newHealth(b *Builder) *health.Handler {
	o := health.Options{
		Names: s.names, Backend: s.backend, CatchUp: s.objects.CatchUp, Types: s.catalog.Types, Extensible: s.catalog.Extensible(),
		Audit: b.Audit, Controllers: s.manager.Names(), Checks: b.Checks, LivezGrace: b.Serving.LivezGrace, Report: s.errors.Report,
	}
	if s.aggregator != nil {
		o.Aggregator, o.Registers, o.Observes = s.aggregator, s.registers(), s.manager.Has("apiservice-availability")
	}
	return health.New(o)
}

// load reads what the store holds, and refuses what the types cannot show unless it is
// to be kept.
func (s *Server) load(ctx context.Context, b *Builder, types []*resource.Type) (*objects.Records, error) {
	records, err := objects.OpenRecords(ctx, b.stored, types, s.log)
	if err != nil {
		return nil, err
	}
	if err := records.Begin(ctx); err != nil {
		return nil, fmt.Errorf("beginning the store: %w", err)
	}
	if s.hub, err = objectcache.Open(ctx, records.Store(), objectcache.Options{
		Retain: b.limits.History, MaxBytes: b.limits.HistoryBytes, OnPanic: func(p any) { s.errors.Panic("storage", p) },
		OnCommit: s.catalog.Follow,
	}); err != nil {
		return nil, fmt.Errorf("loading the store: %w", err)
	}
	problems, err := records.Accept(ctx, b.ServeIncompatible)
	if len(problems) > 0 {
		err = newIncompatibleError(problems)
	}
	if err != nil {
		return nil, errors.Join(err, s.hub.Close())
	}
	return records, nil
}

// served returns the types that the server has, and what is wrong with what the Builder says
// of them.
func (b *Builder) served(components func(context.Context) ([]*meta.Object, error)) ([]*resource.Type, []error) {
	serving, faults := b.runtimeConfig()
	release := b.Release
	if _, err := b.release(); err != nil {
		release = "" // that is told
	}
	set, err := features.New(release, b.Features, b.Gates...)
	b.features = set
	faults = append(faults, err)
	types, err := b.compile(components)
	if err != nil {
		return nil, append(faults, err)
	}
	faults = slices.Concat(faults, b.servedFaults(types), serving.faults(b.Names, types))
	for _, t := range types {
		faults = append(faults, t.Enable(set)...)
	}
	serving.withhold(types)
	return types, faults
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
		if seen[t.GroupResource()] || seenKind[t.GroupKind()] {
			faults = append(faults, fmt.Errorf("kind %s (%s) is registered twice", t.GroupKind(), t.GroupResource()))
			continue
		}
		seen[t.GroupResource()], seenKind[t.GroupKind()] = true, true
		faults = append(faults, t.RuleFaults()...)
		types = append(types, t)
	}
	if err := resource.Clashes(types); err != nil {
		faults = append(faults, err)
	}
	return types, errors.Join(faults...)
}

// stamp marks the store with the naming profile, or refuses a store that was
// filled under another, or only in part.
func (s *Server) stamp(ctx context.Context) error {
	if _, err := s.backend.Get(ctx, storage.IncompleteKey, 0); !errors.Is(err, storage.ErrNotFound) {
		if err == nil {
			err = errors.New("a copy into it has not ended, so that it has a part of its data; copy again")
		}
		return fmt.Errorf("looking at the store: %w", err)
	}
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

// NamesError says that a store was filled under other names than the server's.
// What it holds cannot be served under these.
type NamesError struct{ Store, Server string }

// Error implements error.
func (e *NamesError) Error() string {
	return fmt.Sprintf("the store was filled with %q names, this server uses %q", e.Store, e.Server)
}
