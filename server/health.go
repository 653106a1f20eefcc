package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/storage"
)

// check is one line of a health endpoint.
type check struct {
	name string
	run  func(context.Context) error
	mild bool // what it finds is shown, and fails nothing
	part bool // it is of something that the server stands on, or that the program named
	// over is the check that this one also fails with, because it is another name
	// of that or builds on it: leaving that out leaves out this, or whoever asks
	// what else is wrong would be told of the same fault again.
	over string
}

// checksOf returns the checks behind a health endpoint, in the order of their
// lines.
func (s *Server) checksOf(endpoint string) []check {
	fine := func(context.Context) error { return nil }
	store := once(soon(func(ctx context.Context) error { return s.checkStorage(ctx, endpoint) }))
	list := []check{
		{name: "ping", run: fine},
		{name: "log", run: fine},
		{name: "storage", run: store, part: true},
		{name: "etcd", run: store, over: "storage"}, // the name that tools ask for
	}
	if a, ok := s.audit.(interface{ Check(context.Context) error }); ok {
		// A server that loses records of what it does goes on with it.
		list = append(list, check{name: "audit", run: a.Check, mild: true, part: true})
	}
	if endpoint == "readyz" {
		caches := soon(s.objects.CatchUp) // reads are served if the caches show what the store has
		synced := func(ctx context.Context) error {
			if err := store(ctx); err != nil {
				return err
			}
			return caches(ctx)
		}
		list = append(list, check{name: "etcd-readiness", run: store, over: "storage"}, check{name: "informer-sync", run: synced, over: "storage"})
	}
	for _, name := range s.startNames() {
		list = append(list, check{name: "poststarthook/" + name, run: fine})
	}
	if s.registers() {
		list = append(list, check{name: "autoregister-completion", run: s.checkRegistered})
	}
	if s.looksAt() {
		c := check{name: "poststarthook/apiservice-discovery-controller", run: fine}
		if endpoint == "readyz" {
			c.run = s.checkAggregated
		}
		list = append(list, c)
	}
	for _, name := range slices.Sorted(maps.Keys(s.checks)) {
		list = append(list, check{name: name, run: s.checks[name], part: !strings.HasPrefix(name, "poststarthook/")})
	}
	if endpoint == "readyz" {
		if c, ok := s.backend.(storage.Checker); ok {
			list = append(list, check{name: "storage-integrity", run: soon(c.Check), part: true})
		}
		list = append(list, check{name: "shutdown", run: s.checkShutdown})
	}
	return list
}

// startNames are the names of what a server does from its start on, and of what is
// done once it is there: its controllers, and the names that tools wait for.
func (s *Server) startNames() (list []string) {
	for _, l := range s.controllers {
		list = append(list, l.Name)
	}
	list = append(list, "storage-readiness", "generic-apiserver-start-informers", "start-system-namespaces-controller",
		"start-apiserver-admission-initializer")
	for _, of := range []struct {
		is   bool
		does []string
	}{
		{s.definitions.cache != nil, []string{"start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced"}},
		{s.has("", "services"), []string{"start-service-ip-repair-controllers"}},
		{s.has(names.GroupScheduling, "priorityclasses"), []string{"scheduling/bootstrap-system-priority-classes"}},
		{s.aggregation != nil, []string{"start-kube-aggregator-informers", "apiservice-status-local-available-controller",
			"apiservice-status-remote-available-controller", "apiservice-openapi-controller"}},
		{s.registers(), []string{"apiservice-registration-controller", s.names.Wire(names.ServerManager) + "-autoregistration"}},
	} {
		if of.is {
			list = append(list, of.does...)
		}
	}
	return list
}

// has reports whether the server has a resource of its library.
func (s *Server) has(group, resource string) bool {
	return s.types().Type(meta.GroupResource{Group: s.names.Group(group), Resource: resource}) != nil
}

// once is a check that several lines show, run for the first of them.
func once(run func(context.Context) error) func(context.Context) error {
	var err error
	ran := false
	return func(ctx context.Context) error {
		if !ran {
			err, ran = run(ctx), true
		}
		return err
	}
}

// soon is a check that fails if it takes long: whoever asks for the health of a server whose
// store is away is to be told.
func soon(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		return run(ctx)
	}
}

// checkStorage fails where the store does not answer or takes no writes. Of a store that answers,
// liveness says only what a new start helps against.
func (s *Server) checkStorage(ctx context.Context, endpoint string) error {
	if _, err := s.backend.Revision(ctx); err != nil || s.writer == nil {
		return err
	}
	if err := s.writer.Writable(ctx); endpoint != "livez" || errors.Is(err, storage.ErrStopped) {
		return err
	}
	return nil
}

func (s *Server) checkShutdown(context.Context) error {
	if s.notReady.Load() {
		return errors.New("the server is shutting down")
	}
	return nil
}

// healthEndpoint reports whether a path is that of a health endpoint or of one of its checks.
func healthEndpoint(path string) bool {
	endpoint, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return endpoint == "livez" || endpoint == "readyz" || endpoint == "healthz"
}

// serveHealth answers /livez, /readyz and /healthz and single checks below them,
// and /metrics/slis.
func (s *Server) serveHealth(w *exchange.Response, r *exchange.Request, path string) bool {
	endpoint, name, single := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !healthEndpoint(path) && path != "/metrics/slis" {
		return false
	}
	if r.HTTP.Method != http.MethodGet && r.HTTP.Method != http.MethodHead {
		w.Fail(exchange.MethodNotAllowed())
		return true
	}
	if path == "/metrics/slis" {
		s.slis.handler.ServeHTTP(w, r.HTTP)
		return true
	}
	checks := s.checksOf(endpoint)
	if single {
		i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
		if i < 0 {
			http.NotFound(w, r.HTTP)
			return true
		}
		checks = checks[i : i+1]
	}
	s.runChecks(w, r, endpoint, checks, single)
	return true
}

func (s *Server) runChecks(w *exchange.Response, r *exchange.Request, endpoint string, checks []check, single bool) {
	var lines strings.Builder
	excluded := r.Query["exclude"]
	if slices.Contains(excluded, "etcd") { // as tools say that the store is not to count
		excluded = append(slices.Clone(excluded), "storage")
	}
	graceful := endpoint == "livez" && time.Since(s.started) < s.livezGrace
	failed := false
	for _, c := range checks {
		if slices.Contains(excluded, c.name) || c.over != "" && slices.Contains(excluded, c.over) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.name)
			continue
		}
		err := c.run(r.HTTP.Context())
		s.slis.record(endpoint, c.name, err)
		switch {
		case err == nil:
			fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
		case c.mild:
			fmt.Fprintf(&lines, "[+]%s degraded: ok\n", c.name)
		case graceful:
			fmt.Fprintf(&lines, "[+]%s not yet: ok\n", c.name)
		default:
			// What failed is in the log; the endpoint is open to everybody.
			s.errors.Report("health", c.name, "health check failed", "endpoint", endpoint, "check", c.name, "error", err)
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.name)
			failed = true
		}
	}
	for _, name := range r.Query["exclude"] {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", name)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, verbose := r.Query["verbose"]
	switch {
	case failed:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(w, "%s%s check failed\n", lines.String(), endpoint)
	case verbose && !single:
		fmt.Fprintf(w, "%s%s check passed\n", lines.String(), endpoint)
	default:
		_, _ = w.Write([]byte("ok"))
	}
}
