package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"orch.io/controlplane/server/internal/exchange"
)

// peer is the response to the caller of a connection. The write deadline runs during each write, and
// not between writes.
type peer struct {
	*exchange.Response
	body *upload // nil if the request has none
}

// upload is the body of a request.
type upload struct {
	io.ReadCloser
	read atomic.Bool // to the end
}

// Read implements io.Reader.
func (u *upload) Read(b []byte) (int, error) {
	n, err := u.ReadCloser.Read(b)
	if err == io.EOF {
		u.read.Store(true)
	}
	return n, err
}

// finish flushes the response and closes the body, if the body was not read to its end. A read that is
// still waiting for the caller returns after a moment.
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

// closeIfUnread makes the response the last one of its HTTP/1 connection if the body was not read to
// its end. Otherwise net/http would wait for the rest, or read the rest as the next request.
func (p peer) closeIfUnread() {
	if p.body != nil && !p.body.read.Load() && p.Request.HTTP.ProtoMajor == 1 {
		p.Header().Set("Connection", "close")
	}
}

// WriteHeader implements http.ResponseWriter. Informational responses are not recorded, and those of
// the server of an APIService are dropped because callers of an API do not need them.
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

// FlushError implements the flush of http.ResponseController.
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
