package server

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/requestinfo"
)

// connection hands one request on to another server, and what that answers back.
type connection struct {
	server  *Server
	out     *exchange.Response
	request *exchange.Request
	head    http.Header // of the answer, but for what the target says
	to      *url.URL
	carrier http.RoundTripper
}

// run returns when either side has ended, or the server ends; what then still comes of
// the body has a moment. Nothing but that bounds how long it lasts, if each write is taken
// in time.
func (c *connection) run(ctx context.Context) {
	s, r := c.server, c.request
	r.Usage.Worked()
	if r.Remote == nil || r.LongRunning {
		defer s.runs(r)()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.LongRunning {
		defer context.AfterFunc(s.watching, cancel)()
	}
	r.Deadline.Pause()
	_ = r.Deadline.Control.SetReadDeadline(time.Time{})
	defer context.AfterFunc(ctx, r.Deadline.Cut)()
	defer func() {
		if s.watching.Err() != nil && c.style() == registry.Reads && requestinfo.Truthy(r.Query, "follow") { // it is over as a watch would be
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				panic(p)
			}
		}
	}()
	in, caller := r.HTTP.WithContext(ctx), peer{Response: c.out}
	if in.ContentLength != 0 {
		caller.body = &upload{ReadCloser: in.Body}
		in.Body = caller.body
		defer caller.part()
	}
	proxy := httputil.ReverseProxy{
		Rewrite: c.rewrite, Transport: c.carrier, FlushInterval: -1, ModifyResponse: c.answered,
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			maps.Copy(c.out.Header(), c.head)
			caller.last()
			r.Deadline.Renew()
			c.out.Fail(c.failure(ctx, err))
		},
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	proxy.ServeHTTP(caller, in)
}

// style is that of a sub-resource; what an APIService leads to is none, and is left as it is.
func (c *connection) style() registry.ConnectStyle {
	if c.request.Remote != nil {
		return aggregated
	}
	return c.request.Sub.Connect.Style
}

// aggregated is no style of sub-resources.
const aggregated registry.ConnectStyle = -1

// rewrite makes the request that goes on. Who calls is not told there, but for the
// address.
func (c *connection) rewrite(p *httputil.ProxyRequest) {
	to := *c.to
	p.Out.URL = &to
	if c.style() == registry.Reads {
		p.Out.Header, p.Out.Host = http.Header{"User-Agent": nil}, ""
		p.Out.Body, p.Out.ContentLength = nil, 0
		return
	}
	for name := range p.Out.Header {
		if tellsOfOrigin(name) {
			delete(p.Out.Header, name)
		}
	}
	switch c.style() {
	case registry.Proxies:
		to.RawQuery = c.request.HTTP.URL.RawQuery
		p.Out.Header.Set("X-Forwarded-Uri", (&url.URL{Path: c.prefix() + to.Path}).EscapedPath())
	case aggregated:
		p.Out.Header.Set("X-Forwarded-Uri", to.EscapedPath())
		p.Out.Header.Set(exchange.AuditHeader, c.request.ID) // both servers audit the request under one name
	}
	p.Out.Host = p.In.Host
	p.Out.Header["X-Forwarded-For"] = p.In.Header["X-Forwarded-For"]
	p.SetXForwarded()
	p.Out.Header.Del("Authorization")
	c.server.authenticator.Strip(p.Out.Header)
	c.server.dropSocketTokens(p.Out.Header)
	if c.style() == aggregated {
		p.Out.Host = to.Host
		c.server.aggregation.Identify(p.Out.Header, c.request.User)
	}
}

// tellsOfOrigin reports whether a header tells who sent a request or where to, which only the
// server may tell those behind it. Some servers take an underscore for a hyphen.
func tellsOfOrigin(name string) bool {
	name = http.CanonicalHeaderKey(strings.ReplaceAll(name, "_", "-"))
	return strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") || strings.HasPrefix(name, "X-Forwarded-") ||
		name == "X-Forwarded" || name == "Forwarded"
}

// prefix is the path of the sub-resource.
func (c *connection) prefix() string {
	return strings.TrimSuffix(c.request.Path, c.request.Rest)
}

// answered fits the head of an answer. The error is what the caller is answered with.
func (c *connection) answered(res *http.Response) error {
	if c.style() == aggregated {
		if err := c.answeredFrom(res); err != nil {
			return err
		}
	}
	switched := res.StatusCode == http.StatusSwitchingProtocols
	switch {
	case res.StatusCode < 200 && !switched: // it cannot be told
		_ = res.Body.Close()
		return meta.Failure(http.StatusBadGateway, "", "invalid answer: status code %d", res.StatusCode)
	case c.style() == registry.Reads:
		if res.StatusCode < 200 || res.StatusCode > 206 {
			return refusal(c.request, res)
		}
		res.Header = http.Header{"Content-Type": {"text/plain"}}
	case switched && (!c.request.Upgrades() || !strings.EqualFold(res.Header.Get("Upgrade"), c.request.HTTP.Header.Get("Upgrade"))):
		_ = res.Body.Close()
		return meta.Failure(http.StatusBadGateway, "", "invalid upgrade response: the other side speaks %q", res.Header.Get("Upgrade"))
	case c.request.Upgrades() && !switched && res.StatusCode < 400:
		return meta.Failure(http.StatusInternalServerError, "", "invalid upgrade response: status code %d", res.StatusCode)
	case c.style() == registry.Proxies:
		keepClosed(res.Header)
		if at := res.Header.Get("Location"); at != "" {
			res.Header.Set("Location", c.through(at))
		} else if !switched {
			if err := c.linkBack(res); err != nil {
				return err
			}
		}
	}
	own := c.out.Header()
	maps.Copy(own, c.head) // an answer before this one takes all
	if res.Header.Get("Cache-Control") != "" {
		own.Del("Cache-Control")
	}
	res.Header.Del(exchange.AuditHeader)
	if body, ok := res.Body.(io.ReadWriteCloser); ok && switched {
		res.Body = struct{ io.ReadWriteCloser }{body} // which cannot be half closed: the end of a caller is the end
		c.out.Begin(res.StatusCode)
	}
	c.request.Notes.WriteHeader(own)
	if c.request.LongRunning {
		c.request.Audit.Started(res.StatusCode)
	}
	return nil
}

// keepClosed leaves out what would open this server to pages of others.
func keepClosed(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}

// maxRefusal is how much of what a target says to a refused request is told.
const maxRefusal = 10 << 10

// refusals is what clients are told of the codes of targets.
var refusals = map[int]struct {
	reason meta.Reason
	text   string
}{
	http.StatusUnauthorized:       {meta.ReasonUnauthorized, "the server has asked for the client to provide credentials"},
	http.StatusForbidden:          {meta.ReasonForbidden, ""},
	http.StatusNotFound:           {meta.ReasonNotFound, "the server could not find the requested resource"},
	http.StatusConflict:           {meta.ReasonConflict, "the server reported a conflict"},
	http.StatusTooManyRequests:    {meta.ReasonTooManyRequests, "the server has received too many requests and has asked us to try again later"},
	http.StatusServiceUnavailable: {meta.ReasonServiceUnavailable, "the server is currently unable to handle the request"},
}

// refusal is the Status of a request to read that was answered with another code.
func refusal(r *exchange.Request, res *http.Response) *meta.Status {
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	_ = res.Body.Close()
	said := strings.ToValidUTF8(string(text), "")
	if res.StatusCode == http.StatusInternalServerError {
		return meta.Internal(errors.New(said))
	}
	if res.StatusCode == http.StatusBadRequest {
		return meta.BadRequest("%s", said)
	}
	known := refusals[res.StatusCode]
	message := cmp.Or(known.text, fmt.Sprintf("the server responded with the status code %d but did not return more information", res.StatusCode))
	if res.StatusCode == http.StatusForbidden {
		message = said
	}
	kind := r.Resource + "/" + r.Subresource
	st := meta.Failure(res.StatusCode, known.reason, "%s ( %s %s)", message, kind, r.Name)
	st.Details = &meta.Details{Group: r.Group, Kind: kind, Name: r.Name}
	return st
}

// failure is the Status of a request that did not get through.
func (c *connection) failure(ctx context.Context, err error) error {
	var told *meta.Status
	switch {
	case errors.As(err, &told):
		return told
	case c.server.watching.Err() != nil:
		return exchange.ShuttingDown()
	case c.style() == aggregated:
		return c.lostFrom(ctx, err)
	case c.style() == registry.Reads:
		return meta.Failure(http.StatusInternalServerError, "", "%v", &url.Error{Op: "Get", URL: c.to.String(), Err: err})
	case c.request.Upgrades():
		return meta.Failure(http.StatusInternalServerError, "", "error dialing backend: %v", err)
	}
	return meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "error trying to reach service: %v", err)
}

// peer is the caller of a connection. It has the whole time for each write, and none
// runs between them.
type peer struct {
	*exchange.Response
	body *upload // nil: none
}

// upload is what the caller sends.
type upload struct {
	io.ReadCloser
	over atomic.Bool // all of it was read
}

func (u *upload) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if err == io.EOF {
		u.over.Store(true)
	}
	return n, err
}

// part lets the caller take what was written, and gives what still comes of the body a
// moment. A read of it that goes on ends with that.
func (p peer) part() {
	if p.body.over.Load() {
		return
	}
	p.Request.Deadline.AbandonBody()
	if p.Code != 0 {
		_ = p.FlushError()
	}
	_ = p.body.Close()
}

// last makes an answer that comes before the whole body the last one of its connection:
// it would wait for the rest otherwise, and what comes too late would be the next request.
func (p peer) last() {
	if p.body != nil && !p.body.over.Load() && p.Request.HTTP.ProtoMajor == 1 {
		p.Header().Set("Connection", "close")
	}
}

// WriteHeader implements http.ResponseWriter. What comes before the answer is none. That of
// the server of an aggregated version is not handed on: callers of an API need none of it.
func (p peer) WriteHeader(code int) {
	if code < 200 && p.Request.Remote != nil && code != http.StatusSwitchingProtocols {
		return
	}
	if code < 200 {
		p.Request.Deadline.Renew()
		defer p.Request.Deadline.Pause()
		p.ResponseWriter.WriteHeader(code)
		return
	}
	p.last()
	p.Response.WriteHeader(code)
}

func (p peer) Write(b []byte) (int, error) {
	p.Request.Deadline.Renew()
	defer p.Request.Deadline.Pause()
	return p.Response.Write(b)
}

// FlushError sends what is written, for http.ResponseController.
func (p peer) FlushError() error {
	p.Request.Deadline.Renew()
	defer p.Request.Deadline.Pause()
	return p.Request.Deadline.Control.Flush()
}

// Hijack implements http.Hijacker.
func (p peer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := p.TakeOver()
	if err != nil {
		return nil, nil, err
	}
	return conn, buffered, nil
}
