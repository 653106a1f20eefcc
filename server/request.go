package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/consistency"
	"orch.io/controlplane/internal/metrics"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/server/internal/aggregator"
	"orch.io/controlplane/server/internal/media"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/server/internal/requestinfo"
)

// request is one HTTP request on its way through the server: what its path and
// method ask for, and, as they become known, who asks and which version of
// which type it is about.
type request struct {
	requestinfo.Info
	http  *http.Request
	who   auth.Authenticator
	user  *auth.User
	notes notes // warnings and audit annotations

	id       string        // names it to the caller and in the audit
	limit    time.Duration // of its time
	deadline writeDeadline // none in the server's own requests
	share    share         // what it holds of what all share; nothing in the server's own requests

	record record
	store  *objects.Store
	newest consistency.ReadIndex // of all that is read for it there
	timed  context.Context       // see context; nil: not yet
	untime context.CancelFunc

	// What metrics tell of it.
	routed     bool            // it may be made, and there is something that serves it
	outside    metrics.Outside // time at webhooks and in queues
	aborted    bool            // its connection was cut
	terminated bool            // it was refused or ended to protect the server

	media   media.Type            // the form of the answer
	remote  *aggregator.Version   // what is served by another server, nil if it is not
	version *resource.Version     // what resource names, nil if nothing
	sub     *resource.Subresource // what subresource names, nil if none
}

// key is the object that the path names.
func (r *request) key() meta.Key { return meta.Key{Namespace: r.Namespace, Name: r.Name} }

// action is what authorizers are asked about.
func (r *request) action() auth.Action {
	if !r.IsResource {
		return auth.Action{User: r.user, Verb: r.Verb, Path: r.Path}
	}
	return auth.Action{
		User: r.user, Verb: r.Verb, Path: r.Path,
		Group: r.Group, Version: r.APIVersion, Resource: r.Resource, Subresource: r.Subresource,
		Namespace: r.Namespace, Name: r.Name + r.Selected, // one of them is empty
		Fields: r.selector("fieldSelector"), Labels: r.selector("labelSelector"),
	}
}

// anyVersion reports whether a request reads whatever state the server has of what it serves.
func (s *Server) anyVersion(r *request) bool {
	return (r.Verb == "get" || r.Verb == "list") && r.Query.Get("resourceVersion") == "0" &&
		r.remote == nil && s.versionOf(r) != nil && !s.connects(r)
}

// versionOf returns the version that the path names, nil if the server has no such resource.
func (s *Server) versionOf(r *request) *resource.Version {
	return s.types().Version(meta.Resource{Group: r.Group, Version: r.APIVersion, Resource: r.Resource})
}

// catchUp waits until the caches show every commit that was acknowledged before the request
// came, by whichever server over the store, as the store says once for each request: so what
// decides about the request, rights, definitions, admission and who serves it, is no older than what it reads or writes. A read
// of any version is decided by the state that it reads. Other paths than those of resources
// wait for a moment, and health checks, which tell of the store, not at all. Where the request
// turns out to be a connection, or none, its place is another one, or full says why there is none.
func (s *Server) catchUp(r *request) (full, err error) {
	places, _ := s.placesFor(r)
	switch {
	case s.anyVersion(r), healthEndpoint(r.Path):
		return nil, nil
	case r.IsResource:
		err = s.catchUpWithin(r.context(), r)
	default:
		ctx, cancel := context.WithTimeout(r.context(), briefly)
		defer cancel()
		_ = s.catchUpWithin(ctx, r)
	}
	if now, _ := s.placesFor(r); err == nil && now != places {
		full = s.acquirePlace(r)
	}
	return full, err
}

func (s *Server) catchUpWithin(ctx context.Context, r *request) error {
	err := s.objects.CatchUp(ctx)
	r.remote = s.remoteOf(r)
	return err
}

// briefly is how long a request for what is no resource, such as discovery, waits for what
// other servers changed. It is answered without that, too: clients begin with it.
const briefly = 2 * time.Second

// context is that of work on the request, which has its time from the first call on until
// the request ends or is another user's.
func (r *request) context() context.Context {
	if r.timed == nil {
		r.timed, r.untime = context.WithTimeout(r.store.With(r.http.Context(), &r.newest), r.limit)
	}
	return r.timed
}

// rest ends what goes by the context of work.
func (r *request) rest() {
	if r.timed != nil {
		r.untime()
		r.timed = nil
	}
}

// is makes the request one of a user.
func (r *request) is(user *auth.User) {
	r.rest()
	r.user = user
	r.http = r.http.WithContext(meta.WithUser(r.http.Context(), user))
}

// selector is one of the selectors of a request for several objects, as sent.
func (r *request) selector(name string) string {
	switch r.Verb {
	case "list", "watch", "deletecollection":
		return r.Query.Get(name)
	}
	return ""
}

// lasts reports whether a request is one that lasts as long as its caller wants.
func (s *Server) lasts(r *request) bool { return r.Verb == "watch" || s.connects(r) }

// connects reports whether a request goes on to another server.
func (s *Server) connects(r *request) bool {
	if r.remote != nil {
		return r.upgrades() || slices.Contains(longSubresources, r.Subresource)
	}
	if r.Subresource == "" {
		return false
	}
	v := s.versionOf(r)
	if v == nil {
		return false
	}
	sub := v.Subresource(r.Subresource)
	return sub != nil && sub.Connect != nil
}
