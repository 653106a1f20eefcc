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
	"orch.io/controlplane/internal/release"
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

// Builder configures and builds a Server. Set its fields, Register kinds and call Build. Only
// Authorizer is required; every other field has a default. A Builder is for one server: after Build
// has succeeded, create a new Builder for the next server.
type Builder struct {
	// Names selects the names on the wire, such as the names of API groups and labels. Set
	// names.Kubernetes for kubectl, client-go and other Kubernetes clients. The zero Profile has
	// the product's own names.
	Names names.Profile

	// Storage stores the objects. If it is nil, Build creates a new memory store. Build takes
	// ownership of the store: Shutdown closes it, and Build closes it when it fails.
	Storage storage.Backend

	// ServeIncompatible starts the server although stored objects do not fit their kinds, for example after
	// a field was removed or its type changed. By default Build fails with an *IncompatibleError. Data
	// that does not fit stays in the store, hidden from clients, until the field is written again.
	// An object that cannot be decoded at all can only be deleted.
	ServeIncompatible bool

	// Authenticators identify the user of a request. They are called in order, and the first that
	// recognizes the credentials decides. If none does, the request is refused with 401. Add
	// auth.AnonymousAccess to serve requests without credentials as system:anonymous. If there are
	// no Authenticators, every user is anonymous.
	Authenticators []auth.Authenticator

	// Authorizer decides which requests a user may make. It is required: Build fails if it is nil.
	// Use auth.AllowAll for a server without access control.
	Authorizer auth.Authorizer

	// Admission lists the program's own admission plugins, which change or refuse writes. They run
	// in this order, at the position among the built-in plugins that plugins.Table gives them.
	Admission []admission.Plugin

	// AdmissionOptions enables, disables and configures admission plugins by name, both the
	// built-in plugins and those in Admission.
	AdmissionOptions admission.Options

	// OnStart functions run in order at the end of Build, before the server answers requests, to
	// create objects that must exist from the start. If one of them returns an error, Build fails.
	OnStart []func(context.Context, client.Client) error

	// Controllers run beside the built-in controllers while Run runs. If several servers share the
	// store, each controller runs in one of them at a time, unless its field EveryServer is set.
	Controllers []client.Controller

	// RunControllers selects the built-in controllers that run, by the names that ControllerNames
	// returns. "*" selects all of them, "NAME" selects a single controller, and "-NAME" excludes a
	// controller, wherever it stands in the list. "envtest" selects the controllers that run inside
	// the field's API server; the others run in other processes there, so that with "envtest" alone
	// namespaces are not emptied, no garbage is collected and no service accounts are created. An
	// empty list means "*". The program's own Controllers run unless "-NAME" excludes them.
	RunControllers []string

	// Handlers serve additional paths, such as issuer discovery, behind authentication and
	// authorization. A key is an exact path, or a path prefix if it ends in a slash.
	// meta.UserFrom(r.Context()) returns the user.
	//
	// A response must be written within Limits.RequestTime. A handler that takes longer calls
	// http.ResponseController.SetWriteDeadline before each write, so that the server still
	// disconnects a client that does not read.
	Handlers map[string]http.Handler

	// Connector connects the server to nodes and pods; see nodeagent.Connector. If it is nil,
	// requests that need a connection (log, exec, attach, portforward, proxy) fail with 503.
	Connector Connector

	// ServiceResolver finds the endpoints of services that the server calls, such as webhooks and
	// aggregated API servers. If it is nil or returns an empty Endpoint, the Service object
	// decides: its clusterIP or external name, or a ready endpoint.
	ServiceResolver ServiceResolver

	// Advertise is the address at which other machines reach the server. Package access sets it to
	// the address that it publishes. If several servers may share the store (storage.Shared), the
	// server announces the address by a Lease in the system namespace, from Run until it is drained
	// or shut down. A controller of package access removes the Leases of servers that were killed.
	Advertise netip.AddrPort

	// Limits bounds the cost of requests. Its zero fields have defaults.
	Limits Limits

	// Observability.

	// Logger receives messages for the operator. If it is nil, they are discarded.
	Logger *slog.Logger

	// Audit records requests and their outcomes. If it is nil, nothing is recorded. If it has a
	// method Check, like audit.Log, the health endpoints report when it is degraded. If it is a
	// prometheus.Collector, /metrics includes its metrics.
	Audit auth.Auditor

	// Checks are additional health checks by name.
	Checks map[string]func(context.Context) error

	// Metrics is the registry of the server's metrics; /metrics shows everything in it. If it is
	// nil, the server has a private registry. Use a registry for one server only: a Build that
	// fails unregisters its metrics, but the metrics of a server that was shut down stay.
	Metrics *prometheus.Registry

	// Release selects the Kubernetes release that defines the served API versions, such as "1.22". A
	// version of a kind is served if it was introduced in that release or before, and not removed
	// by then. Release also decides the defaults of feature gates. Objects are stored so that the
	// previous release can read them, and objects that any release has stored can be read. The
	// oldest supported release is 1.15. Empty means the newest.
	//
	// If the admission plugin PodSecurityPolicy is enabled, the kind PodSecurityPolicy is served in
	// every release.
	Release string

	// Features turns features on or off by the names of their gates. The names AllAlpha and AllBeta
	// set all gates of that stage that are not set themselves. Gates that are not set have the
	// default that features.Gates lists. Build fails if a feature is turned off that is always on.
	Features map[string]bool

	// Gates are the feature gates of the program itself. Kinds refer to them in the struct tag word
	// gate, and the program queries them with Enabled.
	Gates []features.Gate

	// Serving has settings that few programs change.
	Serving Serving

	kinds    []*registry.Kind
	client   objects.Client
	plugins  []*manager.Plugin // queues of the controllers that admission plugins have; by Build
	resolver *serviceresolver.Resolver
	shown    *metrics.Registry // the registry behind /metrics; by Build
	limits   Limits            // Limits with its defaults; by Build
	stored   storage.Backend   // Storage with metrics; by Build
	built    bool              // Build has succeeded

	release  release.Release // Release, parsed; by Build
	features *features.Set   // by Build
}

// Serving configures how requests are answered. The comment of each field describes its zero value.
type Serving struct {
	// FlowControl configures how requests share Limits.InFlight. Build fails if it is invalid. If
	// it is nil, the server starts with flowcontrol.Default and, if the kinds of flow control are
	// registered, follows their objects from then on.
	FlowControl *flowcontrol.Config

	// GzipFrom is the size in bytes from which responses are compressed with gzip if the client
	// accepts it. Watches are never compressed. Zero means 128 KiB, and only for clients on other
	// machines: on loopback, compression costs more than it saves. A negative value disables
	// compression.
	GzipFrom int

	// Version is the gitVersion that /version reports. Empty means the version of Builder.Release.
	Version string

	// ShowHiddenMetricsFor makes /metrics show the metrics that were hidden since the previous
	// minor release, for dashboards that still need them. The value is that release, such as
	// "1.36"; Build fails for any other. Empty means that hidden metrics are not shown.
	ShowHiddenMetricsFor string

	// LivezGrace is the time after the start during which /livez ignores failing checks other than
	// ping. Zero means that no failure is ignored.
	LivezGrace time.Duration

	// RuntimeConfig enables and disables versions and resources of the registered kinds. A key is
	// one of the following, with names as they are on the wire:
	//
	//	apps/v1, v1                   a version, here also of the core group
	//	apps/v1/deployments           a resource of a version
	//	api/ga, api/beta, api/alpha   all versions of that stability
	//	api/legacy                    all versions of the core group except v1
	//	api/all                       all versions
	//
	// A value is "true", "false" or empty, which means true. If several keys apply, the most
	// specific key decides. A version to which no key applies is served, unless it is an optional
	// beta version. Unknown keys fail Build.
	//
	// A kind without any enabled version is not served, and controllers that use it do without. Its
	// names stay reserved, so that no CustomResourceDefinition can take them. Its stored objects
	// are kept for when the kind is enabled again, unless their namespace is deleted meanwhile.
	// RuntimeConfig does not apply to kinds that CustomResourceDefinitions define.
	RuntimeConfig map[string]string

	// ProxyCertificate returns the client certificate, with its key, that this server presents to
	// aggregated API servers (the servers of APIServices). They trust the certificate and therefore
	// the headers X-Remote-User, X-Remote-Uid, X-Remote-Group and X-Remote-Extra-, which identify
	// the user; access.Publish publishes the names of these headers and the CA. The function is
	// called for each request and should cache its result. When it returns a different certificate,
	// the server makes new connections; the old connections close when their requests end. If
	// ProxyCertificate is nil, aggregated API servers cannot identify the user.
	ProxyCertificate func() (*tls.Certificate, error)
}

// flowControl returns Serving.FlowControl or its default.
func (b *Builder) flowControl() flowcontrol.Config {
	if b.Serving.FlowControl != nil {
		return *b.Serving.FlowControl
	}
	return flowcontrol.Default(b.Names)
}

// Register adds kinds to the server. It copies them, so that later changes to the arguments have no
// effect; see Kind. Build reports invalid kinds.
func (b *Builder) Register(kinds ...*registry.Kind) {
	for _, k := range kinds {
		if k != nil {
			k = k.Clone()
		}
		b.kinds = append(b.kinds, k)
	}
}

// Kind returns the registered kind with the given group, as the specification names it, and kind
// name, or nil. The result belongs to this Builder and may be changed before Build, for example to
// add a subresource to a built-in kind or to replace its Allocator:
//
//	b.Register(builtin.Kinds()...)
//	b.Kind("", "Service").Allocator = core.ServiceNetwork{Addresses: network}.Pool()
func (b *Builder) Kind(group, name string) *registry.Kind {
	i := slices.IndexFunc(b.kinds, func(k *registry.Kind) bool { return k != nil && k.Group == group && k.Kind == name })
	if i < 0 {
		return nil
	}
	return b.kinds[i]
}

// Client returns a client for parts that the server is built from, such as an authorizer that reads
// roles. The client works as soon as Build has loaded the store; until then its methods fail with
// 503.
func (b *Builder) Client() client.Client { return &b.client }

// Build creates the server and loads the store. If the configuration or the kinds are invalid, the
// error joins everything that is wrong with them. If the store was filled with a different names
// profile, the error is a *NamesError. The server answers requests as soon as Build returns; its
// controllers start with Run.
//
// Build owns Storage from the moment it is called: if Build fails for any reason, it closes the
// store. After Build has succeeded, further calls fail.
func (b *Builder) Build(ctx context.Context) (built *Server, err error) {
	if b.built {
		return nil, errors.New("Build called twice: create a new Builder")
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
	types, unserved := b.servedTypes(func(ctx context.Context) ([]*meta.Object, error) { return s.health.Components(ctx) })
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

// showMetrics creates the registry that the server's metrics are registered with.
func (b *Builder) showMetrics() (err error) {
	if b.Metrics == nil {
		b.Metrics = prometheus.NewRegistry()
	}
	show := b.Serving.ShowHiddenMetricsFor
	if err := metrics.CheckShow(b.release, show); err != nil {
		return fmt.Errorf("Serving.ShowHiddenMetricsFor: %w", err)
	}
	b.shown, err = metrics.NewRegistry(b.Metrics, b.release, show != "")
	return err
}

// admission builds the chain of the admission plugins. The controllers of plugins are added to
// b.plugins.
func (b *Builder) admission(log *slog.Logger) (*admission.Chain, error) {
	return admission.New(plugins.Table(b.Admission...), b.AdmissionOptions, admission.PluginContext{
		Names: b.Names, Authorizer: b.Authorizer, Features: b.features, Rules: b.rules(), Client: &b.client, Accounting: objects.AdmittedClient{Client: &b.client}, Type: b.client.Type, Schema: b.client.Schema, Convert: b.client.Convert, Log: log,
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

// newServer creates the server with the parts that do not depend on the content of the store.
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

// open loads the store and creates the parts that depend on its content. If it fails after the
// store was loaded, it shuts the server down.
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
		s.log.Error("unique values could not be reserved; other servers may allocate them again", "error", err)
	}
	err = s.objects.Bootstrap(ctx, s.client)
	if f, ok := s.flowObjects(); ok && err == nil {
		err = f.Start(ctx, s.client)
	}
	if n, ok := s.serviceNetworks(); ok && err == nil {
		err = n.Start(ctx, s.client)
	}
	if s.createsAPIServices() && err == nil {
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
	s.logUnserved()
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
		o.Aggregator, o.Registers, o.Observes = s.aggregator, s.createsAPIServices(), s.manager.Has("apiservice-availability")
	}
	return health.New(o)
}

// load opens the store and loads the caches. It returns an *IncompatibleError if stored objects do not fit
// the types and ServeIncompatible is not set.
func (s *Server) load(ctx context.Context, b *Builder, types []*resource.Type) (*objects.Records, error) {
	records, err := objects.OpenRecords(ctx, b.stored, types, s.log)
	if err != nil {
		return nil, err
	}
	if err := records.Begin(ctx); err != nil {
		return nil, fmt.Errorf("initializing the store: %w", err)
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

// servedTypes returns the types of the registered kinds, with their served versions and features
// applied, and everything that is wrong with the kinds, the features and RuntimeConfig. components
// lists the ComponentStatuses.
func (b *Builder) servedTypes(components func(context.Context) ([]*meta.Object, error)) ([]*resource.Type, []error) {
	serving, faults := b.runtimeConfig()
	set, err := features.New(b.release.String(), b.Features, b.Gates...)
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

// compile compiles the registered kinds. components implements the kind ComponentStatus; it is set
// in a copy of the kind, because it belongs to one server.
func (b *Builder) compile(components func(context.Context) ([]*meta.Object, error)) ([]*resource.Type, error) {
	var types []*resource.Type
	var faults []error
	seen := map[meta.GroupResource]bool{}
	seenKind := map[meta.GroupKind]bool{}
	for i, k := range b.kinds {
		if k == nil {
			faults = append(faults, fmt.Errorf("Register: kind %d is nil", i+1))
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
		faults = append(faults, t.RuleErrors()...)
		types = append(types, t)
	}
	if err := resource.CheckNameConflicts(types); err != nil {
		faults = append(faults, err)
	}
	return types, errors.Join(faults...)
}
