package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/internal/objects"
)

// ownAudit returns what audits the writes of the built-in controllers, nil if the server has no
// audit. Each is recorded when it has ended, as the request that it stands for.
func (s *Server) ownAudit() func(*objects.Write) (objects.Notes, func(objects.Audited)) {
	if s.audit == nil {
		return nil
	}
	return func(w *objects.Write) (objects.Notes, func(objects.Audited)) {
		n := &notes{}
		return n, func(end objects.Audited) { s.auditOwn(w, n, end) }
	}
}

func (s *Server) auditOwn(w *objects.Write, n *notes, end objects.Audited) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked("audit", p)
		}
	}()
	a := ownAction(w, end.Verb)
	request := &http.Request{Method: ownMethods[end.Verb], URL: &url.URL{Path: a.Path}, RemoteAddr: "127.0.0.1"}
	r := record{trail: s.audit.Begin(request, uuid.NewString(), a)}
	n.mu.Lock()
	for _, list := range [][]annotation{n.annotations.list, n.external.list} {
		for _, note := range list {
			r.trail.Annotate(note.key, note.value)
		}
	}
	n.mu.Unlock()
	r.decided(s.names, true, "")
	if end.Sent != nil && end.Verb == "delete" {
		r.trail.Request(objectJSON(end.Sent))
	} else if end.Sent != nil {
		r.sent(end.Sent)
	}
	r.outcome.Code = http.StatusOK
	if end.Verb == "create" {
		r.outcome.Code = http.StatusCreated
	}
	if end.Entry != nil {
		r.answered(end.Entry.Object())
	}
	if end.Err != nil {
		st := objects.Status(end.Err)
		if st == nil {
			st = meta.Internal(end.Err)
		}
		r.outcome.Code, r.outcome.Err = st.Code, st
		r.answeredStatus(st)
	}
	r.trail.Complete(r.outcome)
}

var ownMethods = map[string]string{"create": http.MethodPost, "update": http.MethodPut, "delete": http.MethodDelete}

// ownAction returns the action of the request that a write stands for.
func ownAction(w *objects.Write, verb string) auth.Action {
	r := w.Version.Resource()
	a := auth.Action{User: w.User, Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: w.Key.Namespace, Name: w.Key.Name}
	if w.Sub != nil {
		a.Subresource = w.Sub.Name
	}
	path := []string{"/apis", r.Group, r.Version}
	if r.Group == "" {
		path = []string{"/api", r.Version}
	}
	if a.Namespace != "" {
		path = append(path, "namespaces", a.Namespace)
	}
	for _, part := range []string{r.Resource, a.Name, a.Subresource} {
		if part != "" {
			path = append(path, part)
		}
	}
	a.Path = strings.Join(path, "/")
	return a
}
