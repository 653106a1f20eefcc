package exchange

import (
	"io"
	"net/http"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/requestinfo"
)

// Responder makes the responses of a server. Its methods may be called concurrently.
type Responder struct {
	Names    names.Profile
	Compress Compressor
	Errors   *errorlog.Log // receives the cause of each response with code 500, and store outages
}

// New returns the Request and Response of an HTTP request. The response has the headers that all
// responses have.
func (s *Responder) New(w http.ResponseWriter, h *http.Request) (*Response, *Request) {
	r := &Request{Info: requestinfo.Parse(h), HTTP: h, ID: auditID(h.Header)}
	head, values := w.Header(), []string{r.ID, "no-cache, private"}
	head[AuditHeader], head["Cache-Control"] = values[:1:1], values[1:]
	return &Response{ResponseWriter: w, Request: r, server: s}, r
}

// Response writes the response to a Request, and records its code and size.
type Response struct {
	http.ResponseWriter
	Code int // zero until the response begins
	Size int // bytes of the body so far

	Request *Request
	server  *Responder
}

// Begin records that the response begins with the code, and releases the capacity that the request
// needs only while the server works on it. WriteHeader and Write call it; handlers that take over
// the connection call it themselves.
func (w *Response) Begin(code int) {
	if w.Code == 0 {
		w.Code = code
		w.Request.Usage.Worked()
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *Response) WriteHeader(code int) {
	w.Begin(code)
	w.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w *Response) Write(b []byte) (int, error) {
	w.Begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(b)
	w.Size += n
	return n, err
}

// Unwrap returns the underlying writer, for http.ResponseController.
func (w *Response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetWriteDeadline bounds the time that following writes may wait for the client. A program's
// handlers call it through http.ResponseController.
func (w *Response) SetWriteDeadline(t time.Time) error { return w.Request.Deadline.Extend(t) }

// End releases everything that the request holds after the response has left. HTTP/2 buffers a
// short response until the handler returns and then waits for its reader without bound, so End
// flushes it first.
func (w *Response) End() {
	r := w.Request
	if r.HTTP.ProtoMajor > 1 && w.Code != 0 {
		_ = r.Deadline.Control.Flush()
	}
	r.Usage.End()
}

// Send writes a response with a complete body.
func (w *Response) Send(m media.Type, code int, body []byte) {
	if m.Pretty && m.Format == codec.JSON {
		body = codec.Indent(nil, body)
	}
	if err := w.Request.Usage.ReserveAnswer(len(body)); err != nil {
		w.Fail(err)
		return
	}
	out := w.Start(m, code, len(body))
	_, _ = out.Write(body) // the client may have gone away
	_ = out.Close()
}

// Start writes the head of a response with a body of length bytes, and returns the writer for the
// body, which the caller closes.
func (w *Response) Start(m media.Type, code, length int) io.WriteCloser {
	h := w.Header()
	h["Content-Type"] = []string{m.ContentType(w.server.Names, false)}
	w.Request.Notes.WriteHeader(h)
	out := w.encode(length)
	w.WriteHeader(code)
	return out
}

// SendSuccess writes the Status of a successful request.
func (w *Response) SendSuccess(code int, st *meta.Status) {
	m := w.Request.Media
	m.View = media.Full
	w.SendStatus(m, code, st)
}

// SendStatus writes a Status in the format of m, or in JSON if it cannot be encoded in that format.
func (w *Response) SendStatus(m media.Type, code int, st *meta.Status) {
	w.Request.Audit.AnsweredStatus(st)
	body, err := codec.EncodeStatus(nil, st, m.Format)
	if err != nil {
		m.Format = codec.JSON
		body, _ = codec.EncodeStatus(nil, st, m.Format) // JSON cannot fail
	}
	if m.Format == codec.JSON {
		body = append(body, '\n')
	}
	w.Send(m, code, body)
}
