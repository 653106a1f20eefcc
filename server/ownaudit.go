package server

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
)

// ownAudit returns what audits the writes of the built-in controllers, nil if the server has no
// audit. Each is recorded when it has ended, as the request that it stands for.
func (s *Server) ownAudit() func(*objects.Write) (objects.Notes, func(objects.Audited)) {
	if s.audit == nil {
		return nil
	}
	return func(w *objects.Write) (objects.Notes, func(objects.Audited)) {
		n := &exchange.Notes{}
		return n, func(end objects.Audited) { s.auditOwn(w, n, end) }
	}
}

func (s *Server) auditOwn(w *objects.Write, n *exchange.Notes, end objects.Audited) {
	defer func() {
		if p := recover(); p != nil {
			s.errors.Panic("audit", p)
		}
	}()
	a := ownAction(w, end.Verb)
	request := &http.Request{Method: ownMethods[end.Verb], URL: &url.URL{Path: a.Path}, RemoteAddr: "127.0.0.1"}
	r := exchange.Record{Trail: s.audit.Begin(request, uuid.NewString(), a)}
	r.Decided(s.names, true, "")
	if end.Sent != nil && end.Verb == "delete" {
		r.SentOptions(end.Sent)
	} else if end.Sent != nil {
		r.Sent(end.Sent)
	}
	code := http.StatusOK
	if end.Verb == "create" {
		code = http.StatusCreated
	}
	if end.Entry != nil {
		r.Answered(end.Entry.Object())
	}
	if end.Err != nil {
		st := objects.Status(end.Err)
		if st == nil {
			st = meta.Internal(end.Err)
		}
		code, r.Outcome.Err = st.Code, st
		r.AnsweredStatus(st)
	}
	r.Complete(n, code)
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
