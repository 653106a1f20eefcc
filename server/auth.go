package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/internal/impersonate"
)

// authenticate finds out who calls, and to which flow that belongs.
func (s *Server) authenticate(w *response, r *request) error {
	err := s.limitTime(r)
	if err == nil {
		err = s.identifyUser(r)
	}
	s.beginRecord(r)
	if err != nil {
		return err
	}
	s.classify(w, r)
	return nil
}

// identifyUser sets the caller. Whom no authenticator knows is 401; who may be
// anonymous is for auth.AnonymousAccess to say.
func (s *Server) identifyUser(r *request) error {
	var user *auth.User
	err := s.readSocketToken(r)
	if err == nil {
		begun := time.Now()
		user, err = r.who.Authenticate(r.http.WithContext(r.store.With(r.http.Context(), &r.newest)))
		s.metrics.authenticated(user, err, begun)
	}
	if err != nil || user == nil {
		s.log.Debug("authentication failed", "path", r.Path, "error", err)
		return unauthorized()
	}
	if spaceBeforeBearer(r.http) {
		r.notes.Warn("the Authorization header is ignored: more than one space before the bearer token")
	}
	r.is(user)
	return nil
}

// spaceBeforeBearer reports whether the Authorization header is one that
// auth.BearerToken takes for none only because of a space too many.
func spaceBeforeBearer(r *http.Request) bool {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	return strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(rest, " ")
}

func unauthorized() *meta.Status {
	return meta.Failure(http.StatusUnauthorized, meta.ReasonUnauthorized, "Unauthorized")
}

// impersonate makes the request one of the user that its Impersonate headers
// name, if the caller may act as that user. It then has a place as that one, or full says why
// there is none.
func (s *Server) impersonate(w *response, r *request) (full, err error) {
	as, err := impersonate.Parse(r.http.Header, s.names)
	if as == nil || err != nil {
		return nil, err
	}
	if err := s.catchUpWithin(r.context(), r); err != nil {
		return nil, err
	}
	for _, a := range as.Checks {
		a.User = r.user
		decision, reason, err := s.authorizer.Authorize(r.context(), a)
		if err := s.enforce(a, decision, reason, err); err != nil {
			return nil, err
		}
	}
	r.is(as.User)
	if r.record.trail != nil {
		r.record.trail.Impersonate(as.User)
	}
	s.classify(w, r)
	return s.acquirePlace(r), nil
}

// authorize asks whether the caller may do what the request asks for.
func (s *Server) authorize(r *request) error {
	a, begun := r.action(), time.Now()
	decision, reason, err := s.authorizer.Authorize(r.context(), a)
	s.metrics.authorized(decision, err, begun)
	r.record.decided(s.names, decision == auth.Allow, reason)
	return s.enforce(a, decision, reason, err)
}

// enforce turns anything but Allow into 403.
func (s *Server) enforce(a auth.Action, decision auth.Decision, reason string, err error) error {
	if decision == auth.Allow {
		return nil
	}
	if err != nil {
		s.log.Warn("authorization failed", "user", a.User.Name, "error", err)
	}
	return forbidden(a, reason)
}

// forbidden is the 403 that clients show: who cannot do what, and where.
func forbidden(a auth.Action, reason string) *meta.Status {
	if a.Resource == "" {
		why := fmt.Sprintf("User %q cannot %s path %q", a.User.Name, a.Verb, a.Path)
		return meta.Forbidden(meta.GroupResource{}, "", join(why, reason))
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	scope := "at the cluster scope"
	if a.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	why := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", a.User.Name, a.Verb, resource, a.Group, scope)
	return meta.Forbidden(meta.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name, join(why, reason))
}

func join(why, reason string) string {
	if reason == "" {
		return why
	}
	return why + ": " + reason
}

// allow asks for the right to a verb on what a request is about, for those that
// turn out to be more than they were allowed as, such as a PUT that creates.
func (s *Server) allow(ctx context.Context, r *request, verb string) error {
	a := r.action()
	a.Verb = verb
	decision, reason, err := s.authorizer.Authorize(ctx, a)
	return s.enforce(a, decision, reason, err)
}
