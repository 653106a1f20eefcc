// Package door decides whether a request enters the server: it authenticates the user, reserves
// capacity, and authorizes the request.
package door

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/health"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestmetrics"
)

// Options are the parts of a server that a Door needs.
type Options struct {
	Names       names.Profile
	Authorizer  auth.Authorizer
	Audit       auth.Auditor // nil without audit
	Capacity    *capacity.Limiter
	Objects     *objects.Store
	Log         *slog.Logger
	Errors      *errorlog.Log
	Metrics     *requestmetrics.Metrics
	Types       func() *resource.State
	Aggregator  *aggregator.Aggregator // nil if the kind APIService is not registered
	RequestTime time.Duration          // of a request that is not long-running
}

// Door lets requests into a server. Its methods may be called concurrently.
type Door struct{ o Options }

// New returns a Door.
func New(o Options) *Door { return &Door{o} }

// Begin starts the capacity accounting and the deadlines of the request. The caller calls End when
// the request is over, whatever else happens.
func (d *Door) Begin(to http.ResponseWriter, r *exchange.Request) {
	r.Usage.Begin(d.o.Capacity)
	r.Deadline.Begin(to, r.HTTP, d.o.RequestTime)
}

// End releases the capacity that the request holds, and completes its audit record.
func (d *Door) End(w *exchange.Response, r *exchange.Request) {
	w.End()
	d.completeAudit(w, r)
}

// Enter authenticates the user, takes a slot, catches up with the store and authorizes the
// request. It returns the context for the work on the request, which ends when the request's
// time is over. If the request may not enter, Enter answers it, and ok is false. The caller
// calls cancel in any case.
func (d *Door) Enter(w *exchange.Response, r *exchange.Request, who auth.Authenticator) (ctx context.Context, cancel context.CancelFunc, ok bool) {
	d.locate(r)
	err := d.authenticate(w, r, who)
	full := r.Usage.AcquireSlot(slotOf(r))
	ctx, cancel = context.WithTimeout(d.o.Objects.With(r.HTTP.Context(), &r.Index), r.Limit)
	defer func() {
		if !ok { // also after a panic
			cancel()
		}
	}()
	if err == nil && full == nil {
		ctx, full, err = d.impersonate(ctx, w, r)
	}
	if err == nil && full == nil {
		full, err = d.catchUp(ctx, r)
	}
	if full != nil {
		reject(w, r, full)
		return ctx, cancel, false
	}
	if err == nil {
		err = d.authorize(ctx, r)
	}
	if err != nil {
		w.Fail(err)
		return ctx, cancel, false
	}
	return ctx, cancel, true
}

// slotOf returns the kind of slot that a located request takes.
func slotOf(r *exchange.Request) capacity.Kind {
	switch {
	case r.Verb == "watch":
		return capacity.Watch
	case r.Connects:
		return capacity.Connection
	}
	return capacity.Request
}

// reject refuses a request that has no slot. The caller gets a moment to take the response; if
// too many callers wait like that, the connection is cut without a response.
func reject(w *exchange.Response, r *exchange.Request, full error) {
	if !r.Usage.AcquireRefusal() {
		panic(http.ErrAbortHandler)
	}
	r.Deadline.Cut()
	w.Fail(full)
}

// catchUp waits until the caches show every commit that any server over the store acknowledged
// before the request began. The state that decides about the request (rights, definitions,
// admission, aggregated API servers) is then at least as new as the objects that it reads or
// writes. A read at any revision does not wait. Paths that are not resources wait for otherWait at
// most, and health checks, which report on the store, not at all. If the request turns out to be a
// connection, or not to be a connection, it gets another slot; full is the 429 if there is none.
func (d *Door) catchUp(ctx context.Context, r *exchange.Request) (full, err error) {
	switch {
	case d.anyRevision(r), health.Endpoint(r.Path):
		return nil, nil
	case r.IsResource:
		err = d.refresh(ctx, r)
	default:
		ctx, cancel := context.WithTimeout(ctx, otherWait)
		defer cancel()
		_ = d.refresh(ctx, r)
	}
	if kind := slotOf(r); err == nil && kind != r.Usage.Kind() {
		full = r.Usage.AcquireSlot(kind)
	}
	return full, err
}

// otherWait bounds the wait of a request for a path that is not a resource, such as discovery. Then
// it is served from the caches as they are, because clients begin with discovery.
const otherWait = 2 * time.Second

// refresh waits until the caches show the newest commit, and locates the request again.
func (d *Door) refresh(ctx context.Context, r *exchange.Request) error {
	err := d.o.Objects.CatchUp(ctx)
	d.locate(r)
	return err
}

// limitTime sets the time of the request: the parameter timeout, at most the limit of the
// server. It applies to all paths except long-running requests.
func (d *Door) limitTime(r *exchange.Request) error {
	r.Limit = d.o.RequestTime
	text := r.Query.Get("timeout")
	if text == "" || r.LongRunning {
		return nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil {
		return meta.BadRequest("invalid timeout specified in the request URL - %v", err)
	}
	if timeout > 0 {
		r.Limit = min(timeout, r.Limit)
	}
	return nil
}
