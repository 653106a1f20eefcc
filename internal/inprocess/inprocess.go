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

// Transport returns a way to a handler for any HTTP client: no encoding of HTTP,
// answers stream as they are written. The host of a request's URL does not matter.
// When the context of a request ends, so does the request. A handler that panics
// aborts its answer: the client finds io.ErrUnexpectedEOF, as of a connection that is cut.
func Transport(h http.Handler) http.RoundTripper { return transport{h, &http.Server{Handler: h}} }

type transport struct {
	handler http.Handler
	mark    *http.Server // in the context: a proxy aborts half an answer in a server only
}

// arrived is the context of a request that has come to the handler: it begins there.
type arrived struct {
	context.Context
	mark *http.Server
}

func (c arrived) Value(k any) any {
	switch {
	case k == http.ServerContextKey:
		return c.mark
	case consistency.IsReadIndex(k):
		return nil
	}
	return c.Context.Value(k)
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(arrived{ctx, t.mark})
	switch {
	case in.Body == nil:
		in.Body = http.NoBody
	case in.Body != http.NoBody && in.ContentLength == 0:
		in.ContentLength = -1 // not known, as a client says it
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
		defer func() { w.finish(ctx.Err()) }() // what a caller gave up has not ended in order
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

// pipeWriter is the server's side of an in-process answer. What is written is
// buffered until it is read, so that the server never waits for the reader;
// a reader who falls behind by maxPipe makes it wait.
type pipeWriter struct {
	header, sent http.Header
	code         int
	headed       chan struct{} // closed when code and sent are set, or there is no answer
	once         sync.Once
	bodiless     bool // the answer to a HEAD: what is written is dropped
	body         pipe
	sending      io.Closer   // what the client sends
	late         *time.Timer // ends that, for the handler's goroutine
}

// SetReadDeadline ends what the client sends, for http.ResponseController.
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

// SetWriteDeadline bounds how long a write waits for the reader, for
// http.ResponseController.
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
		return // the client waits for the answer
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

// Flush implements http.Flusher: the head goes out, the body always does.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// finish ends the answer: with an error it is half of one, or none.
func (w *pipeWriter) finish(err error) {
	if err == nil {
		w.WriteHeader(http.StatusOK)
		err = io.EOF
	}
	w.body.close(err)
	w.once.Do(func() { close(w.headed) })
}

// maxPipe is how far a reader may fall behind, in bytes.
const maxPipe = 1 << 20

// pipe is a bounded buffer between one writer and one reader.
type pipe struct {
	mu   sync.Mutex
	more *sync.Cond // signals any change of the fields below
	data []byte
	err  error // set when nothing follows data

	deadline time.Time // for a write that waits
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

// wait waits for the reader, or gives it up at the deadline. The lock is held.
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

// pipeReader is the body that the client reads.
type pipeReader struct {
	pipe   *pipe
	cancel context.CancelFunc
}

func (r *pipeReader) Read(b []byte) (int, error) { return r.pipe.read(b) }

// Close ends the request.
func (r *pipeReader) Close() error {
	r.pipe.close(http.ErrBodyReadAfterClose) // first: the end of the request closes the pipe, too
	r.cancel()
	return nil
}
