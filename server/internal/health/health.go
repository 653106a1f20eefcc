// Package health serves the health endpoints /livez, /readyz and /healthz, and the results of their
// checks as metrics.
package health

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/storage"
)

// Options are the parts of a server that are checked.
type Options struct {
	Names       names.Profile
	Backend     storage.Backend
	CatchUp     func(context.Context) error // waits until the caches show the newest commit
	Types       func() *resource.State
	Extensible  bool         // the kind of CustomResourceDefinitions is registered
	Audit       auth.Auditor // checked if it has a method Check
	Controllers []string     // their names; each has a check that always succeeds

	Aggregator *aggregator.Aggregator // nil if the kind APIService is not registered
	Registers  bool                   // the server creates APIServices for its own versions
	Observes   bool                   // the server checks the servers of APIServices

	Checks     map[string]func(context.Context) error // of the program, by name
	LivezGrace time.Duration                          // time after the start in which /livez ignores failures

	// Report logs a failed check. It may drop messages, because any client can request checks.
	Report func(what, of, message string, about ...any)
}

// Handler serves the health endpoints, single checks below them, and /metrics/slis.
type Handler struct {
	o       Options
	started time.Time
	results *results
	drained atomic.Bool
}

// New returns a Handler. Its grace period begins now.
func New(o Options) *Handler {
	return &Handler{o: o, started: time.Now(), results: newResults(o.Names)}
}

// Drain makes /readyz fail from now on.
func (h *Handler) Drain() { h.drained.Store(true) }

// resultsPath is the path of the metrics of health checks.
const resultsPath = "/metrics/slis"

// Endpoint reports whether a path is a health endpoint or a single check below it.
func Endpoint(path string) bool {
	endpoint, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return endpoint == "livez" || endpoint == "readyz" || endpoint == "healthz"
}

// Serves reports whether a path is served by a Handler.
func Serves(path string) bool { return Endpoint(path) || path == resultsPath }

// ServeHTTP implements http.Handler for paths that Serves reports, with or without a slash at the end.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimSuffix(r.URL.Path, "/")
	if path == resultsPath {
		h.results.handler.ServeHTTP(w, r)
		return
	}
	endpoint, name, single := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	checks := h.checks(endpoint)
	if single {
		i := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
		if i < 0 {
			http.NotFound(w, r)
			return
		}
		checks = checks[i : i+1]
	}
	h.run(w, r, endpoint, checks, single)
}

// run runs checks and answers with their results.
func (h *Handler) run(w http.ResponseWriter, r *http.Request, endpoint string, checks []check, single bool) {
	var lines strings.Builder
	query := r.URL.Query()
	excluded := query["exclude"]
	if slices.Contains(excluded, "etcd") { // the usual name of the store's check
		excluded = append(slices.Clone(excluded), "storage")
	}
	grace := endpoint == "livez" && time.Since(h.started) < h.o.LivezGrace
	failed := false
	for _, c := range checks {
		if slices.Contains(excluded, c.name) || c.base != "" && slices.Contains(excluded, c.base) {
			fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.name)
			continue
		}
		err := c.run(r.Context())
		h.results.record(endpoint, c.name, err)
		switch {
		case err == nil:
			fmt.Fprintf(&lines, "[+]%s ok\n", c.name)
		case c.informative:
			fmt.Fprintf(&lines, "[+]%s degraded: ok\n", c.name)
		case grace:
			fmt.Fprintf(&lines, "[+]%s not yet: ok\n", c.name)
		default:
			// The cause is only logged, because the endpoint is public.
			h.o.Report("health", c.name, "health check failed", "endpoint", endpoint, "check", c.name, "error", err)
			fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.name)
			failed = true
		}
	}
	for _, name := range query["exclude"] {
		if !slices.ContainsFunc(checks, func(c check) bool { return c.name == name }) {
			fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %q\n", name)
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, verbose := query["verbose"]
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

// checkStorage fails if the store does not answer or does not accept writes. /livez reports a store
// that answers and does not accept writes only if it needs a restart.
func (h *Handler) checkStorage(ctx context.Context, endpoint string) error {
	writer, ok := h.o.Backend.(storage.Writer)
	if _, err := h.o.Backend.Revision(ctx); err != nil || !ok {
		return err
	}
	if err := writer.Writable(ctx); endpoint != "livez" || errors.Is(err, storage.ErrStopped) {
		return err
	}
	return nil
}

// checkShutdown fails after Drain.
func (h *Handler) checkShutdown(context.Context) error {
	if h.drained.Load() {
		return errors.New("the server is shutting down")
	}
	return nil
}

// checkRegistered fails until every version that this server serves has an APIService.
func (h *Handler) checkRegistered(context.Context) error {
	if !h.o.Aggregator.Registered() {
		return errors.New("some versions have no APIService yet")
	}
	return nil
}

// checkAggregated fails until the resources of all aggregated API servers were requested.
func (h *Handler) checkAggregated(context.Context) error {
	if !h.o.Aggregator.Settled() {
		return errors.New("some servers of APIServices were not checked yet")
	}
	return nil
}
