package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/exchange"
)

// Forward forwards a request to the extension server of the APIService in r.Remote.
func (p *Proxy) Forward(ctx context.Context, w *exchange.Response, r *exchange.Request) error {
	r.Routed = true
	if r.LongRunning { // without the time limit of ctx
		ctx = p.Objects.With(r.HTTP.Context(), &r.Index)
	}
	if err := r.Usage.AcquireSeat(ctx); err != nil {
		return err
	}
	if err := p.checkForward(w, r); err != nil {
		return err
	}
	if !r.LongRunning {
		leave, ok := r.Remote.Enter()
		if !ok {
			return r.Usage.TooMany("too many requests wait for the server of this API")
		}
		defer leave()
	}
	query := r.HTTP.URL.Query()
	if !r.IsResource {
		query.Del("hash") // the hash of an OpenAPI document, which may have changed
	}
	c := &connection{
		proxy: p, out: w, request: r, style: aggregated, head: w.Header().Clone(),
		to: r.Remote.URL(r.Path, query.Encode()), transport: r.Remote.Transport(),
	}
	c.run(ctx)
	return nil
}

// checkForward returns an error if a request must not be forwarded.
func (p *Proxy) checkForward(w *exchange.Response, r *exchange.Request) error {
	if slices.ContainsFunc(strings.Split(r.Path, "/"), func(part string) bool { return part == "." || part == ".." }) {
		// The extension server would clean the path, and serve a path that was not authorized.
		return meta.BadRequest("the path must not contain . or .. elements: %q", r.Path)
	}
	if p.Aggregator.IsLoop(r.HTTP.Header) {
		return meta.Failure(http.StatusLoopDetected, "", "the APIService %s refers back to this server", r.Remote.Name)
	}
	if !r.Remote.Available {
		p.Aggregator.Failed(r.Remote)
		return meta.Unavailable("the server of %s is currently not available", r.Remote.GroupVersion)
	}
	if err := aggregator.CheckIdentity(r.User); err != nil {
		return err
	}
	if !r.Upgrades() {
		return nil
	}
	// With another protocol, such as HTTP/2, a caller could send requests with the identity of other users.
	if to := r.HTTP.Header.Get("Upgrade"); !strings.EqualFold(to, "websocket") && !strings.HasPrefix(strings.ToUpper(to), "SPDY/") {
		return meta.BadRequest("this connection cannot be upgraded to %q", to)
	}
	return upgradable(w, r)
}

// modifyAggregated checks and changes the head of a response of an extension server.
func (c *connection) modifyAggregated(res *http.Response) error {
	if to := res.Header.Get("Location"); to != "" && res.StatusCode >= 300 && res.StatusCode <= 399 {
		return meta.Failure(http.StatusBadGateway, "", "the backend attempted to redirect this request, which is not permitted")
	}
	removeCORS(res.Header)
	for _, name := range originHeaders {
		res.Header.Del(name)
	}
	for _, name := range c.proxy.FlowHeaders {
		res.Header.Del(name) // they belong to the flow control of the extension server
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		res.Trailer, res.Body = nil, withoutTrailer{res.Body, res}
	}
	return nil
}

// withoutTrailer is the body of a response without its trailer. The trailer could have the headers that
// modifyAggregated removes.
type withoutTrailer struct {
	io.ReadCloser
	res *http.Response
}

// Close implements io.Closer.
func (b withoutTrailer) Close() error {
	err := b.ReadCloser.Close()
	b.res.Trailer = nil
	return err
}

// originHeaders are response headers that apply to the whole origin of this server. With them, the server of one API
// group could change the requests of clients to other API groups, or redirect them.
var originHeaders = []string{
	"Alt-Svc", "Clear-Site-Data", "Nel", "Public-Key-Pins", "Refresh", "Report-To", "Reporting-Endpoints", "Service-Worker-Allowed",
	"Set-Cookie", "Set-Cookie2", "Strict-Transport-Security",
}

// aggregatedFailure returns the error for a request to which the extension server did not respond, and triggers a
// probe of that server.
func (c *connection) aggregatedFailure(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return meta.Timeout("the server of %s did not answer in time", c.request.Remote.GroupVersion)
	}
	if ctx.Err() == nil {
		c.proxy.Aggregator.Failed(c.request.Remote)
	}
	return meta.Unavailable("error trying to reach service: %v", err)
}
