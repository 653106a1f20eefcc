package server

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestinfo"
	"orch.io/controlplane/storage"
)

// response remembers what was answered.
type response struct {
	http.ResponseWriter
	server  *Server
	request *request
	code    int
	size    int // bytes of the body so far
}

// begin notes that the answer begins.
func (w *response) begin(code int) {
	if w.code == 0 {
		w.code = code
		w.server.worked(w.request)
	}
}

func (w *response) WriteHeader(code int) {
	w.begin(code)
	w.ResponseWriter.WriteHeader(code)
}

func (w *response) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	n, err := w.ResponseWriter.Write(b)
	w.size += n
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// SetWriteDeadline is how a handler of Builder.Handlers says, by http.ResponseController, how
// long the writes that follow may wait for the peer.
func (w *response) SetWriteDeadline(t time.Time) error { return w.request.deadline.extend(t) }

// negotiate agrees with the client on the form of the answer.
func (s *Server) negotiate(r *request) (err error) {
	list := r.Verb == "list" || r.Verb == "deletecollection" && s.rules.Has(compat.ListsDeleted)
	offer := media.Offer{Views: true, List: list, Watch: r.Verb == "watch", Protobuf: r.bodyVersion().Proto() != nil}
	offer.Metadata = r.version.Act == nil && r.sub == nil
	offer.NoTable = r.version.Act != nil || r.sub != nil && r.sub.Act != nil // what is kept nowhere has no rows
	r.media, err = media.Negotiate(r.http.Header.Get("Accept"), s.names, offer)
	var st *meta.Status
	if errors.As(err, &st) && r.version.DelegatedPaths {
		st.Details = nil // custom kinds do not tell formats and views apart
	}
	r.media.Pretty = r.media.Pretty || pretty(r)
	return err
}

// pretty reports whether people will read the answer.
func pretty(r *request) bool {
	if v, ok := r.Query["pretty"]; ok {
		return len(v) == 0 || v[0] == "" || requestinfo.Truthy(r.Query, "pretty")
	}
	agent := r.http.UserAgent()
	return strings.HasPrefix(agent, "curl/") || strings.HasPrefix(agent, "Mozilla/") || strings.HasPrefix(agent, "Wget/")
}

// send writes an answer whose bytes are ready.
func (s *Server) send(w *response, r *request, m media.Type, code int, body []byte) {
	if m.Pretty && m.Format == codec.JSON {
		body = codec.Indent(nil, body)
	}
	if err := s.reserveAnswer(r, len(body)); err != nil {
		s.fail(w, r, err)
		return
	}
	out := s.begin(w, r, m, code, len(body))
	_, _ = out.Write(body) // a caller who went away needs no answer
	_ = out.Close()
}

// begin sends the head of an answer and returns what takes its body, of so many
// bytes.
func (s *Server) begin(w *response, r *request, m media.Type, code, length int) io.WriteCloser {
	h := w.Header()
	h["Content-Type"] = []string{m.ContentType(s.names, false)}
	r.notes.header(h)
	out := s.encode(w, r, length)
	w.WriteHeader(code)
	return out
}

// respondStatus answers with a Status that is no error.
func (s *Server) respondStatus(w *response, r *request, st *meta.Status) error {
	m := r.media
	m.View = media.Full
	s.sendStatus(w, r, m, http.StatusOK, st)
	return nil
}

func (s *Server) sendStatus(w *response, r *request, m media.Type, code int, st *meta.Status) {
	r.record.answeredStatus(st)
	body, err := codec.EncodeStatus(nil, st, m.Format)
	if err != nil {
		m.Format = codec.JSON
		body, _ = codec.EncodeStatus(nil, st, m.Format) // JSON cannot fail
	}
	if m.Format == codec.JSON {
		body = append(body, '\n')
	}
	s.send(w, r, m, code, body)
}

// fail answers with an error: the one place where errors become HTTP.
func (s *Server) fail(w http.ResponseWriter, r *request, err error) {
	st := bounded(s.status(r, err))
	r.record.outcome.Err = st
	if err == errNoPath {
		http.NotFound(w, r.http)
		return
	}
	out, ok := w.(*response)
	if !ok {
		out = &response{ResponseWriter: w, server: s, request: r}
	}
	if out.code != 0 {
		return // too late: the answer has begun
	}
	if st.Details != nil && st.Details.RetryAfterSeconds > 0 {
		out.Header().Set("Retry-After", strconv.Itoa(st.Details.RetryAfterSeconds))
	}
	if st.Code == http.StatusUnauthorized {
		out.Header().Set("WWW-Authenticate", "Bearer")
	}
	// The Status of a 406 is JSON for a client that accepts only tables or metadata.
	offer := media.Offer{Views: st.Code != http.StatusNotAcceptable, Protobuf: true, List: true}
	m, nerr := media.Negotiate(r.http.Header.Get("Accept"), s.names, offer)
	if nerr != nil {
		m = media.Type{}
	}
	m.View, m.Stream = media.Full, false
	m.Pretty = m.Pretty || pretty(r)
	s.sendStatus(out, r, m, st.Code, st)
}

// Bounds of what a Status tells: who sends thousands of faults need not be told
// of each.
const (
	maxCauses  = 1000
	maxMessage = 64 << 10
)

// bounded leaves out of a Status what is too much.
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

// status maps an error to the Status that the caller sees.
func (s *Server) status(r *request, err error) *meta.Status {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return meta.TooLarge("Request entity too large: limit is %d", tooLong.Limit)
	}
	st := objects.Status(err)
	if st == nil {
		st = meta.Internal(errors.New("the store failed"))
	}
	var trouble *storage.UnavailableError
	if st.Code == http.StatusInternalServerError || errors.As(err, &trouble) {
		s.failed(r, err)
	}
	return st
}
