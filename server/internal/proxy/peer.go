package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"orch.io/controlplane/server/internal/exchange"
)

// peer is the response to the caller of a connection. The write deadline applies during each write, and not between
// writes.
type peer struct {
	*exchange.Response
	body *upload // nil: the request has no body
}

// upload is the body of a request. It records whether it was read to its end.
type upload struct {
	io.ReadCloser
	read atomic.Bool // the body was read to its end
}

// Read implements io.Reader.
func (u *upload) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if err == io.EOF {
		u.read.Store(true)
	}
	return n, err
}

// finish flushes the response and closes the body, if the body was not read to its end. A concurrent read that waits
// for the caller is interrupted.
func (p peer) finish() {
	if p.body.read.Load() {
		return
	}
	p.Request.Deadline.AbandonBody()
	if p.Code != 0 {
		_ = p.FlushError()
	}
	_ = p.body.Close()
}

// closeIfUnread makes the response the last on its HTTP/1 connection if the body was not read to its end. Otherwise
// net/http would wait for the rest, or read the rest as the next request.
func (p peer) closeIfUnread() {
	if p.body != nil && !p.body.read.Load() && p.Request.HTTP.ProtoMajor == 1 {
		p.Header().Set("Connection", "close")
	}
}

// WriteHeader implements http.ResponseWriter. Informational responses are not recorded. Those of an extension server
// are dropped, because clients of an API do not need them.
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
	p.closeIfUnread()
	p.Response.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (p peer) Write(b []byte) (int, error) {
	p.Request.Deadline.Renew()
	defer p.Request.Deadline.Pause()
	return p.Response.Write(b)
}

// FlushError implements the method that http.ResponseController uses.
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
