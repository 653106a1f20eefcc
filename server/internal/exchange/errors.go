package exchange

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
)

// ErrNoPath is the error of a path that is not part of the API. Its response is the plain 404
// of package http.
var ErrNoPath error = meta.Failure(http.StatusNotFound, meta.ReasonNotFound, "404 page not found")

// MethodNotAllowed returns the 405 for a verb that a resource does not have.
func MethodNotAllowed() *meta.Status {
	st := meta.Failure(http.StatusMethodNotAllowed, meta.ReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
	st.Details = &meta.StatusDetails{}
	return st
}

// ShuttingDown returns the 503 that makes clients retry, at another server or after the restart.
func ShuttingDown() *meta.Status {
	st := meta.Failure(http.StatusServiceUnavailable, meta.ReasonServiceUnavailable, "the server is shutting down")
	st.Details = &meta.StatusDetails{RetryAfterSeconds: 1}
	return st
}

// Fail writes the response to a request that failed, unless its response has begun. Every error
// becomes HTTP here.
func (w *Response) Fail(err error) {
	r := w.Request
	st := bounded(w.status(err))
	r.Audit.Outcome.Err = st
	if err == ErrNoPath {
		http.NotFound(w, r.HTTP)
		return
	}
	if w.Code != 0 {
		return
	}
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(st.Details.RetryAfterSeconds))
	}
	if st.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	// The Status of a 406 is JSON for a client that accepts only tables or metadata.
	offer := media.Supported{Views: st.Code != http.StatusNotAcceptable, Protobuf: true, List: true}
	m, nerr := media.Negotiate(r.HTTP.Header.Get("Accept"), w.server.Names, offer)
	if nerr != nil {
		m = media.Type{}
	}
	m.View, m.Stream = media.Full, false
	m.Pretty = m.Pretty || r.Pretty()
	w.SendStatus(m, st.Code, st)
}

// Panicked logs a panic that ended the request, and responds with a 500. If the response has begun,
// it aborts the connection instead, so that the client does not take half a response for a whole
// one. The deferred function that recovered the panic calls it.
func (w *Response) Panicked(value any) {
	r := w.Request
	if value == http.ErrAbortHandler {
		r.Aborted = true
		panic(value)
	}
	r.Audit.Outcome.Panicked = true
	w.server.Errors.Panic("request", value, r.LogAttrs()...)
	if w.Code != 0 {
		r.Aborted = true
		panic(http.ErrAbortHandler)
	}
	w.Fail(r.internalError("the server panicked while it handled the request"))
}

// internalError returns a 500 with the audit ID and a cause that clients may see. The log has the
// details under the same ID.
func (r *Request) internalError(cause string) *meta.Status {
	return meta.Internal(fmt.Errorf("%s (audit ID %s)", cause, r.ID))
}

// Bounds of a Status, so that a request with thousands of violations does not get a response
// many times as large.
const (
	maxCauses  = 1000
	maxMessage = 64 << 10
)

// bounded returns the Status, cut to the bounds.
func bounded(st *meta.Status) *meta.Status {
	if len(st.Message) <= maxMessage && (st.Details == nil || len(st.Details.Causes) <= maxCauses) {
		return st
	}
	short := *st
	if len(st.Message) > maxMessage {
		short.Message = strings.ToValidUTF8(st.Message[:maxMessage], "") + "..."
	}
	if st.Details != nil {
		details := *st.Details
		details.Causes = details.Causes[:min(len(details.Causes), maxCauses)]
		short.Details = &details
	}
	return &short
}

// status maps an error to the Status for the client, and logs the error if the server or its store
// is at fault.
func (w *Response) status(err error) *meta.Status {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return meta.TooLarge("Request entity too large: limit is %d", tooLong.Limit)
	}
	st := objects.Status(err)
	if st == nil {
		st = w.Request.internalError(publicCause(err))
	}
	var unavailable *storage.UnavailableError
	if st.Code == http.StatusInternalServerError || errors.As(err, &unavailable) {
		w.log(err)
	}
	return st
}

// publicCause returns a description of an error without a Status that clients may see. The text of
// the error may contain names of files, hosts or other objects.
func publicCause(err error) string {
	var damaged *storage.DamagedError
	switch {
	case errors.As(err, &damaged):
		return "a stored record is damaged"
	case errors.Is(err, storage.ErrStopped):
		return "the store accepts no writes since a write failed"
	case errors.Is(err, storage.ErrCompacted):
		return "the store no longer has the revision that the request needs"
	case errors.Is(err, storage.ErrFuture):
		return "the store does not have the revision that the request needs yet"
	}
	return "the store failed"
}

// log logs the error of the request, except a panic, which was logged where it was recovered.
func (w *Response) log(err error) {
	r := w.Request
	if r.Audit.Outcome.Panicked {
		return
	}
	var conversion *resource.ConversionError
	if errors.As(err, &conversion) && conversion.Stack() != nil {
		w.server.Errors.PanicAt("conversion", conversion, conversion.Stack(), r.LogAttrs()...)
		return
	}
	w.server.Errors.Report(kindOf(err), r.subject(), "request failed", append(r.LogAttrs(), "error", err)...)
}

// subject returns the resource of the request if the server has it. Other parts of the path are
// arbitrary text from the client.
func (r *Request) subject() string {
	if r.Version == nil {
		return "no resource"
	}
	return r.Version.Resource().GroupResource().String()
}

// kindOf returns the kind of an error, as package errorlog counts it.
func kindOf(err error) string {
	var conversion *resource.ConversionError
	var unreadable *client.UnreadableError
	var st *meta.Status
	switch {
	case errors.As(err, &conversion):
		return "a conversion"
	case errors.As(err, &unreadable):
		return "an unreadable object"
	case errors.As(err, &st):
		return "a refusal"
	}
	return "the store"
}
