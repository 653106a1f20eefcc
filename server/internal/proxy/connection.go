package proxy

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/requestinfo"
)

// connection forwards a request to another server, and the response back.
type connection struct {
	proxy     *Proxy
	out       *exchange.Response
	request   *exchange.Request
	style     registry.ConnectStyle // of the subresource, or aggregated
	head      http.Header           // headers of the response; headers of the target take precedence
	to        *url.URL
	transport http.RoundTripper
}

// aggregated is the style of a request to an extension server.
const aggregated registry.ConnectStyle = -1

// run forwards the request. It returns when either side has ended the connection, or when the server stops. A
// long-running request has no time limit, as long as the caller reads each write within the write deadline.
func (c *connection) run(ctx context.Context) {
	p, r := c.proxy, c.request
	r.Usage.Worked()
	if r.Remote == nil || r.LongRunning {
		defer p.Metrics.Running(r)()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.LongRunning {
		defer p.Lifetime.Bind(cancel)()
	}
	r.Deadline.Pause()
	_ = r.Deadline.Control.SetReadDeadline(time.Time{})
	defer context.AfterFunc(ctx, r.Deadline.Cut)()
	defer func() {
		// When the server stops, a followed log ends like a watch, without an error.
		if p.Lifetime.Ended() && c.style == registry.Reads && requestinfo.Truthy(r.Query, "follow") {
			if value := recover(); value != nil && value != http.ErrAbortHandler {
				panic(value)
			}
		}
	}()
	in, caller := r.HTTP.WithContext(ctx), peer{Response: c.out}
	if in.ContentLength != 0 {
		caller.body = &upload{ReadCloser: in.Body}
		in.Body = caller.body
		defer caller.finish()
	}
	proxy := httputil.ReverseProxy{
		Rewrite: c.rewrite, Transport: c.transport, FlushInterval: -1, ModifyResponse: c.modifyResponse,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			maps.Copy(c.out.Header(), c.head)
			caller.closeIfUnread()
			r.Deadline.Renew()
			c.out.Fail(c.failure(ctx, err))
		},
		ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
	}
	proxy.ServeHTTP(caller, in)
}

// rewrite sets the URL and the headers of the outgoing request. Only an extension server gets the identity of the
// caller. Other targets get the address of the caller.
func (c *connection) rewrite(p *httputil.ProxyRequest) {
	to := *c.to
	p.Out.URL = &to
	if c.style == registry.Reads {
		p.Out.Header, p.Out.Host = http.Header{"User-Agent": nil}, ""
		p.Out.Body, p.Out.ContentLength = nil, 0
		return
	}
	for name := range p.Out.Header {
		if identifiesOrigin(name) {
			delete(p.Out.Header, name)
		}
	}
	switch c.style {
	case registry.Proxies:
		to.RawQuery = c.request.HTTP.URL.RawQuery
		p.Out.Header.Set("X-Forwarded-Uri", (&url.URL{Path: c.prefix() + to.Path}).EscapedPath())
	case aggregated:
		p.Out.Header.Set("X-Forwarded-Uri", to.EscapedPath())
		p.Out.Header.Set(exchange.AuditHeader, c.request.ID) // both servers audit the request under the same ID
	}
	p.Out.Host = p.In.Host
	p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	p.SetXForwarded()
	p.Out.Header.Del("Authorization")
	c.proxy.StripCredentials(p.Out.Header)
	if c.style == aggregated {
		p.Out.Host = to.Host
		c.proxy.Aggregator.Identify(p.Out.Header, c.request.User)
	}
}

// identifiesOrigin reports whether a header identifies the sender of a request, or the address to which it was sent.
// Servers behind this server trust such headers, so callers must not set them. Some servers treat an underscore as a
// hyphen.
func identifiesOrigin(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "X-Forwarded-") ||
		name == "X-Forwarded" || name == "Forwarded"
}

// prefix returns the path of the subresource.
func (c *connection) prefix() string {
	return strings.TrimSuffix(c.request.Path, c.request.Rest)
}

// throughProxy returns the location of a redirect as an address of this server, if it is an address of the target.
// Other locations are returned unchanged.
func (c *connection) throughProxy(location string) string {
	at, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(at.Path, "/") {
		return location
	}
	switch at.Host {
	case "", c.to.Host:
		at.Scheme, at.Host = "", ""
	case c.request.HTTP.Host:
	default:
		return location
	}
	if !strings.HasPrefix(at.Path, c.prefix()+"/") {
		at.Path, at.RawPath = c.prefix()+cleanPath(at.Path), ""
	}
	return at.String()
}

// modifyResponse checks and changes the head of a response. If it returns an error, the error is sent to the caller
// instead of the response.
func (c *connection) modifyResponse(res *http.Response) error {
	if c.style == aggregated {
		if err := c.modifyAggregated(res); err != nil {
			return err
		}
	}
	switched := res.StatusCode == http.StatusSwitchingProtocols
	switch {
	case res.StatusCode < 200 && !switched: // net/http cannot write it as a final response
		_ = res.Body.Close()
		return meta.Failure(http.StatusBadGateway, "", "invalid answer: status code %d", res.StatusCode)
	case c.style == registry.Reads:
		if res.StatusCode < 200 || res.StatusCode > 206 {
			return readError(c.request, res)
		}
		res.Header = http.Header{"Content-Type": {"text/plain"}}
	case switched && (!c.request.Upgrades() || !strings.EqualFold(res.Header.Get("Upgrade"), c.request.HTTP.Header.Get("Upgrade"))):
		_ = res.Body.Close()
		return meta.Failure(http.StatusBadGateway, "", "invalid upgrade response: the target switched to %q", res.Header.Get("Upgrade"))
	case c.request.Upgrades() && !switched && res.StatusCode < 400:
		return meta.Failure(http.StatusInternalServerError, "", "invalid upgrade response: status code %d", res.StatusCode)
	case c.style == registry.Proxies:
		removeCORS(res.Header)
		if at := res.Header.Get("Location"); at != "" {
			res.Header.Set("Location", c.throughProxy(at))
		}
	}
	own := c.out.Header()
	maps.Copy(own, c.head) // again, because informational responses reset them
	if res.Header.Get("Cache-Control") != "" {
		own.Del("Cache-Control")
	}
	res.Header.Del(exchange.AuditHeader)
	if body, ok := res.Body.(io.ReadWriteCloser); ok && switched {
		res.Body = struct{ io.ReadWriteCloser }{body} // hide CloseWrite: when the caller ends, the connection ends
		c.out.Begin(res.StatusCode)
	}
	c.request.Notes.WriteHeader(own)
	if c.request.LongRunning {
		c.request.Audit.Started(res.StatusCode)
	}
	return nil
}

// removeCORS removes the headers that would let pages of other origins read responses of this server.
func removeCORS(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}

// failure returns the error for a request to which the target did not respond.
func (c *connection) failure(ctx context.Context, err error) error {
	var st *meta.Status
	switch {
	case errors.As(err, &st):
		return st
	case c.proxy.Lifetime.Ended():
		return exchange.ShuttingDown()
	case c.style == aggregated:
		return c.aggregatedFailure(ctx, err)
	case c.style == registry.Reads:
		return meta.Failure(http.StatusInternalServerError, "", "%v", &url.Error{Op: "Get", URL: c.to.String(), Err: err})
	case c.request.Upgrades():
		return meta.Failure(http.StatusInternalServerError, "", "error dialing backend: %v", err)
	}
	return meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "error trying to reach service: %v", err)
}
