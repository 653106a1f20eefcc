package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/conversion"
	"orch.io/controlplane/server/internal/definitions"
	"orch.io/controlplane/server/internal/discovery"
	"orch.io/controlplane/server/internal/door"
	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/server/internal/health"
	"orch.io/controlplane/server/internal/manager"
	"orch.io/controlplane/server/internal/metered"
	"orch.io/controlplane/server/internal/migration"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestmetrics"
	"orch.io/controlplane/server/internal/telemetry"
	"orch.io/controlplane/server/internal/watch"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// newServer makes a server of the parts that need nothing of the store.
func (b *Builder) newServer(log *slog.Logger) (s *Server, err error) {
	s = &Server{
		backend: b.Storage, limits: b.Limits.withDefaults(),
		authenticator: auth.Union(b.Authenticators...),
	}
	s.responder.Names = b.Names
	s.responder.Errors = &errorlog.Log{Logger: log, Panics: func(part string) { s.metrics.Panicked(part) }}
	s.responder.Compress.From, s.responder.Compress.Local = cmp.Or(b.Serving.GzipFrom, gzipFrom), b.Serving.GzipFrom > 0
	if !b.features.Enabled(features.APIResponseCompression) {
		s.responder.Compress.From = -1
	}
	if len(b.Authenticators) == 0 {
		s.authenticator = auth.Union(auth.AnonymousAccess)
	}
	if s.backend == nil {
		s.backend = memstore.New(memstore.Options{Retain: s.limits.History})
	}
	set := metrics.For(b.shown)
	s.catalog = definitions.New(definitions.Options{
		Names: s.responder.Names, Rules: b.rules(), Features: b.features, Log: log, Webhooks: conversion.New(b.Names, b.resolver.Resolve, set, s.responder.Errors.Report),
	})
	s.registry, s.metrics = b.shown, requestmetrics.New(set, s.catalog.Types, func() *aggregator.Table { return s.aggregator.Table() })
	if err := s.authenticator.Measure(b.shown); err != nil {
		return nil, fmt.Errorf("metrics of the authenticators: %w", err)
	}
	b.measured = metered.New(s.backend, set, s.catalog.Known)
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
		Seats: s.limits.InFlight, MaxWait: s.limits.RequestTime / 4,
		Requests: s.limits.Requests, Watches: s.limits.Watches, Connections: s.limits.Connections,
		BodyBytes: s.limits.LargeBodies, AnswerBytes: s.limits.LongAnswers,
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
	var auditWrites func(*objects.Write) (objects.Notes, func(objects.Audited))
	if b.Audit != nil {
		auditWrites = (&door.WriteAuditor{Names: s.responder.Names, Audit: b.Audit, Errors: s.responder.Errors}).Begin
	}
	s.objects = objects.New(objects.Options{
		Names: s.responder.Names, Records: records, Hub: s.hub, Types: s.catalog.Types, Admission: chain, Log: b.Logger,
		Audit:  auditWrites,
		Waited: s.metrics.Waited, RequestTime: s.limits.RequestTime, FutureWait: s.limits.FutureWait,
		ObjectBytes: s.limits.ObjectBytes, NamespaceBytes: s.limits.NamespaceBytes, StoreBytes: s.limits.StoreBytes,
	}, types)
	s.client, s.chain = &b.client, chain
	s.client.Open(s.objects)
	s.openRequests(b)
	s.migrator = migration.New(migration.Options{Names: s.responder.Names, Catalog: s.catalog, Objects: s.objects, Hub: s.hub, Client: s.client, Log: b.Logger})
	s.manager, err = manager.New(manager.Options{
		Names: s.responder.Names, Backend: s.backend, Hub: s.hub, Objects: s.objects, Client: s.client, Log: b.Logger,
		Metrics: s.registry, Panicked: s.responder.Errors.Panic, Advertise: b.Advertise,
	})
	selection := manager.Selection(b.RunControllers)
	if err := errors.Join(err, figures, s.addMetrics(b), s.manager.Add(selection, append(s.builtinControllers(), b.Controllers...), b.plugins)); err != nil {
		return nil, errors.Join(err, s.Shutdown(ctx))
	}
	b.logFeatures()
	s.health = s.newHealth(b)
	s.discovery = &discovery.Handler{
		Names: s.responder.Names, Version: b.gitVersion(), Types: s.catalog.Types, Aggregator: s.aggregator, Paths: slices.Collect(maps.Keys(s.handlers)),
	}
	if err := s.objects.ReserveHeld(ctx); err != nil {
		b.Logger.Error("what objects hold is not reserved; other servers over the store may give it again", "error", err)
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
	for _, prepare := range b.Prepare {
		if err == nil {
			err = prepare(ctx, s.client)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Shutdown(ctx))
	}
	tellUnserved(s.objects, b.Logger)
	return s, nil
}

// addMetrics registers the metrics of the store, the caches and the process.
func (s *Server) addMetrics(b *Builder) error {
	return telemetry.Register(telemetry.Options{
		Names: s.responder.Names, Registry: s.registry, Types: s.catalog.Types, Hub: s.hub, Backend: s.backend,
		Features: b.features, Audit: b.Audit, Build: discovery.Version(b.gitVersion()),
	})
}

// newHealth returns the handler of the health endpoints.
func (s *Server) newHealth(b *Builder) *health.Handler {
	o := health.Options{
		Names: s.responder.Names, Backend: s.backend, CatchUp: s.objects.CatchUp, Types: s.catalog.Types, Extensible: s.catalog.Extensible(),
		Audit: b.Audit, Controllers: s.manager.Names(), Checks: b.Checks, LivezGrace: b.Serving.LivezGrace, Report: s.responder.Errors.Report,
	}
	if s.aggregator != nil {
		o.Aggregator, o.Registers, o.Observes = s.aggregator, s.registers(), s.manager.Has("apiservice-availability")
	}
	return health.New(o)
}

// load reads what the store holds, and refuses what the types cannot show unless it is
// to be kept.
func (s *Server) load(ctx context.Context, b *Builder, types []*resource.Type) (*objects.Records, error) {
	records, err := objects.OpenRecords(ctx, b.measured, types, b.Logger)
	if err != nil {
		return nil, err
	}
	if err := records.Begin(ctx); err != nil {
		return nil, fmt.Errorf("beginning the store: %w", err)
	}
	if s.hub, err = watch.Open(ctx, records.Store(), watch.Options{
		Retain: s.limits.History, MaxBytes: s.limits.HistoryBytes, Panicked: func(p any) { s.responder.Errors.Panic("storage", p) },
		Followed: s.catalog.Follow,
	}); err != nil {
		return nil, fmt.Errorf("loading the store: %w", err)
	}
	problems, err := records.Accept(ctx, b.KeepUnfit)
	if len(problems) > 0 {
		err = newStoredError(problems)
	}
	if err != nil {
		return nil, errors.Join(err, s.hub.Close())
	}
	return records, nil
}

// stamp marks the store with the naming profile, or refuses a store that was
// filled under another, or only in part.
func (s *Server) stamp(ctx context.Context) error {
	if _, err := s.backend.Get(ctx, storage.UnfinishedKey, 0); !errors.Is(err, storage.ErrNotFound) {
		if err == nil {
			err = errors.New("a copy into it has not ended, so that it has a part of its data; copy again")
		}
		return fmt.Errorf("looking at the store: %w", err)
	}
	st, ok := s.backend.(storage.Stamper)
	if !ok {
		return nil
	}
	found, err := st.Stamp(ctx, "names", s.responder.Names.String())
	if err != nil {
		return fmt.Errorf("stamping the store: %w", err)
	}
	if found != s.responder.Names.String() {
		return &NamesError{Store: found, Server: s.responder.Names.String()}
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
