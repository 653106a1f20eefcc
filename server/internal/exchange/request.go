// Package exchange represents an HTTP request on its way through the server, and the response to
// it. It negotiates content, writes bytes, Statuses and errors, and collects the warnings and the
// audit record of the request. It knows nothing of the verbs.
package exchange

import (
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/capacity"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/requestinfo"
)

// Request is a request: the attributes from its method and path and, as the server determines them,
// its user and type. It belongs to the goroutine of the request, except for Notes and
// Usage.Outside.
type Request struct {
	requestinfo.Info
	HTTP *http.Request // its context carries the user, and has no deadline
	User *auth.User    // nil until the user is authenticated
	ID   string        // the audit ID, which every response carries

	Notes    Notes
	Audit    Record
	Limit    time.Duration // time for the request, unless it is long-running
	Deadline WriteDeadline
	Usage    capacity.Usage
	Index    consistency.ReadIndex // the newest revision that the request reads

	LongRunning bool // a watch or a connection, which lasts as long as the client wants
	Connects    bool // proxied to another server or an agent of a node

	Remote  *aggregator.Version   // set if another server serves the version
	Version *resource.Version     // type and version in the path; nil until resolved
	Sub     *resource.Subresource // subresource in the path; nil if none
	Media   media.Type            // of the response

	// The attributes that metrics distinguish.
	Routed  bool // the request is authorized, and the server serves its path
	Aborted bool // the server closed the connection before the end of the response
}

// AuditHeader is the header with the audit ID of a request.
const AuditHeader = "Audit-Id"

const maxAuditID = 64 // bytes of an ID in a request

// auditID returns the audit ID in a request header if it is usable, or a new ID. A new ID is
// unique, but not hard to guess.
func auditID(h http.Header) string {
	id := h.Get(AuditHeader)
	if id != "" && len(id) <= maxAuditID && !strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return id
	}
	var u uuid.UUID
	binary.NativeEndian.PutUint64(u[:], rand.Uint64())
	binary.NativeEndian.PutUint64(u[8:], rand.Uint64())
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80 // version 4
	return u.String()
}

// Key returns the key of the object that the path names.
func (r *Request) Key() meta.Key { return meta.Key{Namespace: r.Namespace, Name: r.Name} }

// Action returns the attributes of the request that authorizers decide by.
func (r *Request) Action() auth.Attributes {
	if !r.IsResource {
		return auth.Attributes{User: r.User, Verb: r.Verb, Path: r.Path}
	}
	return auth.Attributes{
		User: r.User, Verb: r.Verb, Path: r.Path,
		Group: r.Group, Version: r.APIVersion, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name + r.Selected, // at most one of them is set
		Fields: r.selector("fieldSelector"), Labels: r.selector("labelSelector"),
	}
}

// selector returns a selector parameter of a request for a collection, as sent.
func (r *Request) selector(name string) string {
	switch r.Verb {
	case "list", "watch", "deletecollection":
		return r.Query.Get(name)
	}
	return ""
}

// SetUser makes the request a request of the user, also in the context of HTTP.
func (r *Request) SetUser(user *auth.User) {
	r.User = user
	r.HTTP = r.HTTP.WithContext(meta.WithUser(r.HTTP.Context(), user))
}

// BodyVersion returns the version of the objects in the bodies of the request: the version of the
// item, or of a subresource with a kind of its own.
func (r *Request) BodyVersion() *resource.Version {
	if r.Sub != nil && r.Sub.Body != nil {
		return r.Sub.Body
	}
	return r.Version
}

// BodyIn is BodyVersion for a body with the given apiVersion.
func (r *Request) BodyIn(apiVersion string) *resource.Version {
	if r.Sub != nil && r.Sub.Body != nil {
		return r.Sub.BodyIn(apiVersion)
	}
	return r.Version
}

// Pretty reports whether the response is indented: if the parameter pretty is set, or for clients
// that show responses to people.
func (r *Request) Pretty() bool {
	if v, ok := r.Query["pretty"]; ok {
		return len(v) == 0 || v[0] == "" || requestinfo.Truthy(r.Query, "pretty")
	}
	agent := r.HTTP.UserAgent()
	return strings.HasPrefix(agent, "curl/") || strings.HasPrefix(agent, "Mozilla/") || strings.HasPrefix(agent, "Wget/")
}

// LogAttrs returns the attributes by which logs identify the request.
func (r *Request) LogAttrs() []any {
	return []any{"method", r.HTTP.Method, "verb", r.Verb, "path", r.Path, "resource", r.Resource, "name", r.Name, "auditID", r.ID}
}
