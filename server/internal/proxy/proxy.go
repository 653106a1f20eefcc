// Package proxy forwards requests to other servers: through subresources such as exec, log and proxy to node agents,
// pods and services, and to the extension servers of APIServices.
package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestmetrics"
)

// Proxy forwards the requests of a server. Its fields must be set before its first request.
type Proxy struct {
	Objects    *objects.Store
	Aggregator *aggregator.Aggregator // nil if the kind APIService is not registered
	Metrics    *requestmetrics.Metrics
	Log        *slog.Logger
	Lifetime   *exchange.Lifetime // ends connections

	// Dial returns the scheme and host of the target of a subresource, and the transport to it. It is nil if the
	// server cannot reach nodes and pods.
	Dial func(context.Context, *registry.Target) (*url.URL, http.RoundTripper, error)

	// Allow checks whether the user may use a further verb on the object of a request.
	Allow func(ctx context.Context, r *exchange.Request, verb string) error

	// StripCredentials removes the credentials of this server's callers from a header.
	StripCredentials func(http.Header)
	FlowHeaders      [2]string // the response headers of flow control
}

// Admit runs admission for a request to connect with options. It returns the call for the function that finds the
// target.
type Admit func(ctx context.Context, r *exchange.Request, options *meta.Object) (*registry.Call, error)

// Connect serves a request to a connecting subresource. Its options are in the query; the body is read only by
// subresources that proxy.
func (p *Proxy) Connect(ctx context.Context, w *exchange.Response, r *exchange.Request, admit Admit) error {
	if err := r.Usage.AcquireSeat(ctx); err != nil {
		return err
	}
	target, err := p.target(ctx, r, admit)
	if err != nil {
		return err
	}
	if target == nil {
		r.Notes.WriteHeader(w.Header())
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if r.Proxied() && r.Rest == "" && !r.Upgrades() && (r.HTTP.Method == http.MethodGet || r.HTTP.Method == http.MethodHead) {
		redirect(w, r)
		return nil
	}
	if p.Dial == nil {
		return meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "this server has no Connector to nodes and pods")
	}
	base, transport, err := p.Dial(ctx, target)
	if err != nil {
		return err
	}
	to := target.URL
	to.Scheme, to.Host = base.Scheme, base.Host
	c := &connection{proxy: p, out: w, request: r, style: r.Sub.Connect.Style, head: w.Header().Clone(), to: &to, transport: transport}
	if c.style == registry.Streams && !r.Upgrades() {
		return meta.BadRequest("Upgrade request required")
	}
	if r.Upgrades() {
		if err := upgradable(w, r); err != nil {
			return err
		}
	}
	c.run(r.HTTP.Context())
	return nil
}

// upgradable returns an error if the connection of a request cannot change its protocol.
func upgradable(w *exchange.Response, r *exchange.Request) error {
	if !w.CanHijack() {
		return meta.BadRequest("this connection cannot be upgraded")
	}
	if r.HTTP.ContentLength != 0 {
		return meta.BadRequest("an upgrade request has no body")
	}
	return nil
}

// target returns the target of a request, or nil if the kind has no target for it. It returns an error if the caller
// may not connect to it.
func (p *Proxy) target(ctx context.Context, r *exchange.Request, admit Admit) (*registry.Target, error) {
	style := r.Sub.Connect.Style
	if style == registry.Streams && r.Verb != "create" {
		if err := p.Allow(ctx, r, "create"); err != nil { // a browser opens a WebSocket with GET, for which the right to get is not sufficient
			return nil, err
		}
	}
	query := r.Query
	if style == registry.Proxies {
		query = url.Values{"path": {cleanPath(r.Rest)}}
	}
	options, err := connectOptions(query, r.Sub.Body)
	if err != nil {
		return nil, err
	}
	call, err := admit(ctx, r, options)
	if err != nil {
		return nil, err
	}
	return r.Sub.Connect.Target(ctx, call)
}

// cleanPath returns a path without "." and ".." elements. The result begins with a slash, and ends with
// a slash if the path does.
func cleanPath(p string) string {
	clean := path.Clean("/" + p)
	if strings.HasSuffix(p, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

// redirect redirects to the path with a slash at the end, so that relative links of a page refer to paths below it.
func redirect(w *exchange.Response, r *exchange.Request) {
	to := url.URL{Path: r.Path + "/", RawQuery: r.HTTP.URL.RawQuery}
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusMovedPermanently)
}

// Forwards reports whether a proxying subresource forwards requests of a method.
func Forwards(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return true
	}
	return false
}
