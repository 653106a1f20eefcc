package door

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

// authenticate finds the user of the request, begins its audit record and classifies it for flow
// control.
func (d *Door) authenticate(w *exchange.Response, r *exchange.Request, who auth.Authenticator) error {
	err := d.limitTime(r)
	if err == nil {
		err = d.findUser(r, who)
	}
	d.beginAudit(r)
	if err != nil {
		return err
	}
	r.Usage.Classify(r.Action(), w.Header())
	return nil
}

// findUser sets the user of the request. A caller that no authenticator knows gets a 401;
// auth.AnonymousAccess is the authenticator that knows anonymous callers.
func (d *Door) findUser(r *exchange.Request, who auth.Authenticator) error {
	var user *auth.User
	err := r.MoveWebSocketToken(d.o.Names)
	if err == nil {
		begun := time.Now()
		user, err = who.Authenticate(r.HTTP.WithContext(d.o.Objects.With(r.HTTP.Context(), &r.Index)))
		d.o.Metrics.Authenticated(user, err, begun)
	}
	if err != nil || user == nil {
		d.o.Log.Debug("authentication failed", "path", r.Path, "error", err)
		return meta.Failure(http.StatusUnauthorized, meta.ReasonUnauthorized, "Unauthorized")
	}
	if spaceBeforeBearer(r.HTTP) {
		r.Notes.Warn("the Authorization header is ignored: more than one space before the bearer token")
	}
	r.SetUser(user)
	return nil
}

// spaceBeforeBearer reports whether auth.BearerToken finds no token in the Authorization header
// only because of a second space before it.
func spaceBeforeBearer(r *http.Request) bool {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	return strings.EqualFold(scheme, "Bearer") && strings.HasPrefix(rest, " ")
}

// impersonate makes the request a request of the user that its Impersonate headers name, if the
// caller may act as that user. The request then needs a slot of that user; full is the 429 if
// there is none. The context that it returns carries the user.
func (d *Door) impersonate(ctx context.Context, w *exchange.Response, r *exchange.Request) (_ context.Context, full, err error) {
	as, err := impersonate.Parse(r.HTTP.Header, d.o.Names)
	if as == nil || err != nil {
		return ctx, nil, err
	}
	if err := d.refresh(ctx, r); err != nil {
		return ctx, nil, err
	}
	for _, a := range as.Checks {
		a.User = r.User
		decision, reason, err := d.o.Authorizer.Authorize(ctx, a)
		if err := d.enforce(a, decision, reason, err); err != nil {
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

// authorize returns a 403 unless the user may make the request.
func (d *Door) authorize(ctx context.Context, r *exchange.Request) error {
	a, begun := r.Action(), time.Now()
	decision, reason, err := d.o.Authorizer.Authorize(ctx, a)
	d.o.Metrics.Authorized(decision, err, begun)
	r.Audit.Decided(d.o.Names, decision == auth.Allow, reason)
	return d.enforce(a, decision, reason, err)
}

// Allow returns a 403 unless the user may use another verb on the resource of the request, such as
// create for a PUT that creates.
func (d *Door) Allow(ctx context.Context, r *exchange.Request, verb string) error {
	a := r.Action()
	a.Verb = verb
	decision, reason, err := d.o.Authorizer.Authorize(ctx, a)
	return d.enforce(a, decision, reason, err)
}

// enforce returns a 403 unless the decision is Allow.
func (d *Door) enforce(a auth.Attributes, decision auth.Decision, reason string, err error) error {
	if decision == auth.Allow {
		return nil
	}
	if err != nil {
		d.o.Log.Warn("authorization failed", "user", a.User.Name, "error", err)
	}
	return forbidden(a, reason)
}

// forbidden returns the 403 that names the user and the refused action.
func forbidden(a auth.Attributes, reason string) *meta.Status {
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
