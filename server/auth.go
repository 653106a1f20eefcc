package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/internal/exchange"
	"orch.io/controlplane/server/internal/impersonate"
)

// authenticate finds out who calls, and to which flow that belongs.
func (s *Server) authenticate(w *exchange.Response, r *exchange.Request, who auth.Authenticator) error {
	err := s.limitTime(r)
	if err == nil {
		err = s.identifyUser(r, who)
	}
	s.beginRecord(r)
	if err != nil {
		return err
	}
	r.Usage.Classify(r.Action(), w.Header())
	return nil
}

// identifyUser sets the caller. Whom no authenticator knows is 401; who may be
// anonymous is for auth.AnonymousAccess to say.
func (s *Server) identifyUser(r *exchange.Request, who auth.Authenticator) error {
	var user *auth.User
	err := s.readSocketToken(r)
	if err == nil {
		begun := time.Now()
		user, err = who.Authenticate(r.HTTP.WithContext(s.objects.With(r.HTTP.Context(), &r.Index)))
		s.metrics.authenticated(user, err, begun)
	}
	if err != nil || user == nil {
		s.log.Debug("authentication failed", "path", r.Path, "error", err)
		return unauthorized()
	}
	if spaceBeforeBearer(r.HTTP) {
		r.Notes.Warn("the Authorization header is ignored: more than one space before the bearer token")
	}
	r.SetUser(user)
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

// impersonate makes the request a request of the user that its Impersonate headers name, if the
// caller may act as that user. The request then needs a slot of that user; full is the 429 if
// there is none. The context that it returns carries the user.
func (s *Server) impersonate(ctx context.Context, w *exchange.Response, r *exchange.Request) (_ context.Context, full, err error) {
	as, err := impersonate.Parse(r.HTTP.Header, s.names)
	if as == nil || err != nil {
		return ctx, nil, err
	}
	if err := s.catchUpWithin(ctx, r); err != nil {
		return ctx, nil, err
	}
	for _, a := range as.Checks {
		a.User = r.User
		decision, reason, err := s.authorizer.Authorize(ctx, a)
		if err := s.enforce(a, decision, reason, err); err != nil {
			return ctx, nil, err
		}
	}
	r.SetUser(as.User)
	if r.Audit.Trail != nil {
		r.Audit.Trail.Impersonate(as.User)
	}
	r.Usage.Classify(r.Action(), w.Header())
	return meta.WithUser(ctx, as.User), r.Usage.AcquireSlot(slotOf(r)), nil
}

// authorize asks whether the caller may do what the request asks for.
func (s *Server) authorize(ctx context.Context, r *exchange.Request) error {
	a, begun := r.Action(), time.Now()
	decision, reason, err := s.authorizer.Authorize(ctx, a)
	s.metrics.authorized(decision, err, begun)
	r.Audit.Decided(s.names, decision == auth.Allow, reason)
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
func (s *Server) allow(ctx context.Context, r *exchange.Request, verb string) error {
	a := r.Action()
	a.Verb = verb
	decision, reason, err := s.authorizer.Authorize(ctx, a)
	return s.enforce(a, decision, reason, err)
}
