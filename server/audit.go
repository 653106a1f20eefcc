package server

import (
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"orch.io/controlplane/server/internal/media"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/objectcache"
)

// Every answer names its request in a header, as do the audit's records.
const (
	auditID    = "Audit-Id"
	maxAuditID = 64 // bytes of a name that a caller chose
)

// requestID is the name that the caller gave the request if it is a sensible
// one, else a new one. It need not be hard to guess.
func requestID(h http.Header) string {
	id := h.Get(auditID)
	if id != "" && len(id) <= maxAuditID && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return id
	}
	var u uuid.UUID
	binary.NativeEndian.PutUint64(u[:], rand.Uint64())
	binary.NativeEndian.PutUint64(u[8:], rand.Uint64())
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80 // version 4
	return u.String()
}

// record is what a request leaves for the audit: nothing in a server without
// one, whose trail is nil.
type record struct {
	trail   auth.Trail
	outcome auth.Outcome
}

// beginRecord starts the record of a request whose caller, or that it has none,
// is known.
func (s *Server) beginRecord(r *request) {
	if s.audit == nil {
		return
	}
	r.record.trail = s.audit.Begin(r.http, r.id, r.action())
}

// endRecord completes the record with how the request ended.
func (s *Server) endRecord(w *response, r *request) {
	t := r.record.trail
	if t == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.panicked("audit", p)
		}
	}()
	r.notes.mu.Lock()
	annotations, leftOut := slices.Concat(r.notes.annotations.list, r.notes.external.list), r.notes.leftOut // of one key the first one counts
	r.notes.mu.Unlock()
	for _, a := range annotations {
		t.Annotate(a.key, a.value)
	}
	if leftOut > 0 {
		s.log.Warn("an audit event has no room for some annotations of the server", "auditID", r.id, "leftOut", leftOut)
	}
	r.record.outcome.Code = w.code
	t.Complete(r.record.outcome)
}

// decided records what the authorizer said.
func (c *record) decided(p names.Profile, allowed bool, reason string) {
	if c.trail == nil {
		return
	}
	decision := "forbid"
	if allowed {
		decision = "allow"
	}
	c.trail.Annotate(p.Wire(names.AuditDecision), decision)
	c.trail.Annotate(p.Wire(names.AuditReason), reason)
}

// sent records the object of the request.
func (c *record) sent(obj *meta.Object) {
	if c.trail != nil {
		c.trail.Concerns(obj.Name(), obj.UID(), obj.ResourceVersion())
		c.trail.Request(objectJSON(obj))
	}
}

// sentBytes records a body that is no object, such as a patch.
func (c *record) sentBytes(body []byte) {
	if c.trail != nil {
		c.trail.Request(func() []byte { return body })
	}
}

// answered keeps the object of the answer.
func (c *record) answered(obj *meta.Object) {
	if c.trail != nil {
		c.outcome.Response = objectJSON(obj)
	}
}

// answeredStatus keeps the Status of the answer.
func (c *record) answeredStatus(st *meta.Status) {
	if c.trail != nil {
		c.outcome.Response = objectJSON(st.Object())
	}
}

// answeredEntry keeps the entry of the answer.
func (s *Server) answeredEntry(r *request, e *objectcache.Entry) {
	if r.record.trail != nil {
		r.record.outcome.Response = func() []byte {
			body, _ := s.entryBytes(r.http.Context(), e, r.version, media.Type{})
			return body
		}
	}
}

// answeredList keeps the list of the answer.
func (s *Server) answeredList(r *request, entries []*objectcache.Entry, lm codec.ListMeta) {
	if r.record.trail != nil {
		r.record.outcome.Response = func() []byte {
			body, _ := s.wholeList(r.http.Context(), entries, r.version, media.Type{}, lm)
			return body
		}
	}
}

// started records that a watch has begun.
func (c *record) started(code int) {
	if c.trail != nil {
		c.trail.Started(code)
	}
}

// objectJSON returns what gives the JSON of an object as it is now.
func objectJSON(obj *meta.Object) func() []byte {
	return func() []byte { return codec.EncodeJSON(nil, obj.Tree()) }
}
