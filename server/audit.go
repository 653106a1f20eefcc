package server

import (
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/watch"
)

// beginRecord starts the audit record of a request, when it is known who the user is or that
// there is none.
func (s *Server) beginRecord(r *exchange.Request) {
	if s.audit != nil {
		r.Audit.Trail = s.audit.Begin(r.HTTP, r.ID, r.Action())
	}
}

// endRecord completes the audit record.
func (s *Server) endRecord(w *exchange.Response, r *exchange.Request) {
	if r.Audit.Trail == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.errors.Panic("audit", p)
		}
	}()
	if leftOut := r.Audit.Complete(&r.Notes, w.Code); leftOut > 0 {
		s.log.Warn("an audit event has no room for some annotations of the server", "auditID", r.ID, "leftOut", leftOut)
	}
}

// answeredEntry keeps the entry of the answer.
func (s *Server) answeredEntry(r *exchange.Request, e *watch.Entry) {
	if r.Audit.Trail != nil {
		r.Audit.Outcome.Response = func() []byte {
			body, _ := s.entryBytes(r.HTTP.Context(), e, r.Version, media.Type{})
			return body
		}
	}
}

// answeredList keeps the list of the answer.
func (s *Server) answeredList(r *exchange.Request, entries []*watch.Entry, lm codec.ListMeta) {
	if r.Audit.Trail != nil {
		r.Audit.Outcome.Response = func() []byte {
			body, _ := s.wholeList(r.HTTP.Context(), entries, r.Version, media.Type{}, lm)
			return body
		}
	}
}
