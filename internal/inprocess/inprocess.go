// Package inprocess carries requests of HTTP clients to a handler without a socket.
package inprocess

import (
	"context"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"orch.io/controlplane/internal/consistency"
)

// Transport returns a RoundTripper that passes requests to a handler in this process, without
// encoding HTTP. Responses stream as they are written. The host of the URL is ignored. When the
// context of a request ends, the context of the handler ends, too. If the handler panics, the
// client gets io.ErrUnexpectedEOF, as if the connection had been cut.
func Transport(h http.Handler) http.RoundTripper { return transport{h, &http.Server{Handler: h}} }

type transport struct {
	handler http.Handler
	server  *http.Server // put into the context: httputil.ReverseProxy aborts a partial response only if a server is there
}

// handlerContext is the context of a request in the handler. It hides the ReadIndex of the client,
// because the request is a new request for the handler.
type handlerContext struct {
	context.Context
	server *http.Server
}

func (c handlerContext) Value(k any) any {
	switch {
	case k == http.ServerContextKey:
		return c.server
	case consistency.IsReadIndex(k):
		return nil
	}
	return c.Context.Value(k)
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(handlerContext{ctx, t.server})
	switch {
	case in.Body == nil:
		in.Body = http.NoBody
	case in.Body != http.NoBody && in.ContentLength == 0:
		in.ContentLength = -1 // unknown: a client's 0 with a body means this
	}
	in.RequestURI = in.URL.RequestURI()
	in.RemoteAddr = "in-process"
	if in.Host == "" {
		in.Host = in.URL.Host
	}
	w := &pipeWriter{header: http.Header{}, headed: make(chan struct{}), bodiless: in.Method == http.MethodHead, sending: in.Body}
	w.body.more = sync.NewCond(&w.body.mu)
	stop := context.AfterFunc(ctx, func() {
		w.body.close(ctx.Err())
		_ = in.Body.Close()
	})
	go func() {
		defer cancel()
		defer stop()
		defer in.Body.Close()
		defer func() { _ = w.SetReadDeadline(time.Time{}) }()
		defer func() { w.finish(ctx.Err()) }() // an error if the client gave up the request
		defer func() {
			if p := recover(); p != nil {
				w.finish(io.ErrUnexpectedEOF)
			}
		}()
		t.handler.ServeHTTP(w, in)
	}()
	select {
	case <-w.headed:
	case <-r.Context().Done():
		cancel()
		return nil, r.Context().Err()
	}
	if w.code == 0 {
		_, err := w.body.read(nil)
		return nil, err
	}
	return &http.Response{
		Status: strconv.Itoa(w.code) + " " + http.StatusText(w.code), StatusCode: w.code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: &pipeReader{&w.body, cancel}, ContentLength: -1, Request: r,
	}, nil
}

// pipeWriter is the http.ResponseWriter of an in-process response. It buffers the body, so that the
// handler waits only if the client is more than maxPipe bytes behind.
type pipeWriter struct {
	header, sent http.Header
	code         int
	headed       chan struct{} // closed when code and sent are set, or there is no response
	once         sync.Once     // closes headed
	bodiless     bool          // response to a HEAD: the body is dropped
	body         pipe
	sending      io.Closer   // the request body
	late         *time.Timer // closes sending; used only by the handler's goroutine
}

// SetReadDeadline closes the request body at the given time, for http.ResponseController.
func (w *pipeWriter) SetReadDeadline(at time.Time) error {
	if w.late != nil {
		w.late.Stop()
		w.late = nil
	}
	if !at.IsZero() {
		w.late = time.AfterFunc(time.Until(at), func() { _ = w.sending.Close() })
	}
	return nil
}

// SetWriteDeadline limits how long a write waits for the client, for http.ResponseController.
func (w *pipeWriter) SetWriteDeadline(at time.Time) error {
	w.body.mu.Lock()
	defer w.body.mu.Unlock()
	w.body.deadline = at
	w.body.more.Broadcast()
	return nil
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(code int) {
	if code < 200 {
		return // informational responses are not passed on
	}
	w.once.Do(func() {
		w.code, w.sent = code, w.header.Clone()
		close(w.headed)
	})
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.bodiless {
		return len(b), nil
	}
	return w.body.write(b)
}

// Flush implements http.Flusher. It sends the header; the body needs no flushing.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// finish ends the response. If err is not nil, the response is incomplete or missing.
func (w *pipeWriter) finish(err error) {
	if err == nil {
		w.WriteHeader(http.StatusOK)
		err = io.EOF
	}
	w.body.close(err)
	w.once.Do(func() { close(w.headed) })
}

// maxPipe is the number of unread bytes after which a write waits for the client.
const maxPipe = 1 << 20

// pipe is a bounded buffer between a single writer and a single reader.
type pipe struct {
	mu   sync.Mutex // guards the fields below
	more *sync.Cond // signals any change of them
	data []byte
	err  error // returned after data; set when no more data follows

	deadline time.Time // of a write that waits; zero: none
}

func (p *pipe) write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && len(p.data) > maxPipe {
		p.wait()
	}
	if p.err != nil {
		return 0, p.err
	}
	p.data = append(p.data, b...)
	p.more.Broadcast()
	return len(b), nil
}

// wait waits for any change, or sets err if the deadline has passed. p.mu is held.
func (p *pipe) wait() {
	if p.deadline.IsZero() {
		p.more.Wait()
		return
	}
	left := time.Until(p.deadline)
	if left <= 0 {
		p.err = os.ErrDeadlineExceeded
		p.more.Broadcast()
		return
	}
	wake := time.AfterFunc(left, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.more.Broadcast()
	})
	defer wake.Stop()
	p.more.Wait()
}

func (p *pipe) read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && len(p.data) == 0 {
		p.more.Wait()
	}
	if len(p.data) == 0 {
		return 0, p.err
	}
	n := copy(b, p.data)
	if p.data = p.data[n:]; len(p.data) == 0 {
		p.data = nil
	}
	p.more.Broadcast()
	return n, nil
}

func (p *pipe) close(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.more.Broadcast()
}

// pipeReader is the response body.
type pipeReader struct {
	pipe   *pipe
	cancel context.CancelFunc
}

func (r *pipeReader) Read(b []byte) (int, error) { return r.pipe.read(b) }

// Close ends the request.
func (r *pipeReader) Close() error {
	r.pipe.close(http.ErrBodyReadAfterClose) // before cancel, which closes the pipe with another error
	r.cancel()
	return nil
}
