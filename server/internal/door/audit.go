package door

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/internal/errorlog"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/objects"
)

// beginAudit begins the audit record of a request, after its user was looked for.
func (d *Door) beginAudit(r *exchange.Request) {
	if d.o.Audit != nil {
		r.Audit.Trail = d.o.Audit.Begin(r.HTTP, r.ID, r.Action())
	}
}

// completeAudit completes the audit record of a request.
func (d *Door) completeAudit(w *exchange.Response, r *exchange.Request) {
	if r.Audit.Trail == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			d.o.Errors.Panic("audit", p)
		}
	}()
	if leftOut := r.Audit.Complete(&r.Notes, w.Code); leftOut > 0 {
		d.o.Log.Warn("an audit event has no room for some annotations of the server", "auditID", r.ID, "leftOut", leftOut)
	}
}

// WriteAuditor audits writes that the built-in controllers make in the process.
type WriteAuditor struct {
	Names  names.Profile
	Audit  auth.Auditor
	Errors *errorlog.Log
}

// Begin returns the notes of a write, and the function that records the write when it has ended,
// as the request that it stands for.
func (a *WriteAuditor) Begin(w *objects.Write) (objects.Notes, func(objects.Audited)) {
	n := &exchange.Notes{}
	return n, func(end objects.Audited) { a.record(w, n, end) }
}

func (a *WriteAuditor) record(w *objects.Write, n *exchange.Notes, end objects.Audited) {
	defer func() {
		if p := recover(); p != nil {
			a.Errors.Panic("audit", p)
		}
	}()
	action := actionOf(w, end.Verb)
	request := &http.Request{Method: methods[end.Verb], URL: &url.URL{Path: action.Path}, RemoteAddr: "127.0.0.1"}
	r := exchange.Record{Trail: a.Audit.Begin(request, uuid.NewString(), action)}
	r.Decided(a.Names, true, "")
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

var methods = map[string]string{"create": http.MethodPost, "update": http.MethodPut, "delete": http.MethodDelete}

// actionOf returns the attributes of the request that a write stands for.
func actionOf(w *objects.Write, verb string) auth.Attributes {
	r := w.Version.Resource()
	a := auth.Attributes{User: w.User, Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: w.Key.Namespace, Name: w.Key.Name}
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
