package rbac

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/actor"
	"orch.io/controlplane/internal/wellknown"
)

// Grant is a write of a role or binding.
type Grant struct {
	User        *auth.User
	Resource    string // roles, clusterroles, rolebindings or clusterrolebindings
	Namespace   string // empty for cluster-scoped kinds
	Name        string
	Posted      bool         // a POST: the name is in the body, not in the path
	Object, Old *meta.Object // Old is nil for a create
}

// CheckGrant returns a *meta.Status error if q would grant rights that q.User does
// not have. The writer of a role needs all rights of the role, at the same or a
// wider scope, or the verb escalate on the role. The writer of a binding needs all
// rights of the role that it refers to, or the verb bind on that role. The writer
// of a ClusterRole with an aggregationRule needs all rights on everything. Members
// of auth.Masters may grant anything, and updates that change only metadata such
// as finalizers are allowed.
//
// authorizer is the server's whole authorizer; it decides on escalate and bind.
// Call CheckGrant for each create and update of a role or binding, by whatever
// request, after the last change to the object.
func (r *Authorizer) CheckGrant(ctx context.Context, authorizer auth.Authorizer, q Grant) error {
	if q.User != nil && q.User.InGroup(auth.Masters) || actor.Is(ctx, q.User) || q.Old != nil && sameGrant(q.Old, q.Object) {
		return nil
	}
	g := guard{rbac: r, authorizer: authorizer, group: r.names.Group(wellknown.GroupRBAC)}
	switch q.Resource {
	case roles, clusterRoles:
		return g.role(ctx, &q)
	case roleBindings, clusterRoleBindings:
		return g.binding(ctx, &q)
	}
	return nil
}

type guard struct {
	rbac       *Authorizer
	authorizer auth.Authorizer
	group      string
}

func (g guard) role(ctx context.Context, q *Grant) error {
	name := q.Name
	if q.Posted {
		name = "" // a grant of escalate with resourceNames does not apply to POST
	}
	if g.may(ctx, q.User, "escalate", q.Resource, meta.Key{Namespace: q.Namespace, Name: name}) {
		return nil
	}
	want := rulesOf(q.Object)
	if aggregates(q.Object) || q.Old != nil && aggregates(q.Old) {
		want = append(want, fullAuthority()...)
	}
	return g.covered(q, want)
}

func (g guard) binding(ctx context.Context, q *Grant) error {
	k, ok := roleOf(q.Object, q.Namespace)
	if !ok {
		return nil // an invalid binding, which validation refuses
	}
	resource := roles
	if k.Namespace == "" {
		resource = clusterRoles
	}
	if g.may(ctx, q.User, "bind", resource, meta.Key{Namespace: q.Namespace, Name: k.Name}) {
		return nil
	}
	rules, ok := g.rbac.role(k)
	if !ok {
		s := meta.Failure(http.StatusNotFound, meta.ReasonNotFound, "%s", g.rbac.noRole(k))
		s.Details = &meta.StatusDetails{Group: g.group, Kind: q.Resource, Name: k.Name}
		return s
	}
	return g.covered(q, rules)
}

// covered returns Forbidden unless the user's rules cover want.
func (g guard) covered(q *Grant, want []rule) error {
	own, _ := g.rbac.rulesFor(q.User, q.Namespace)
	missing, ok := uncovered(own, want)
	switch {
	case !ok:
		return g.forbidden(q, "its rules combine to more rights than can be compared with yours")
	case len(missing) > 0:
		return g.forbidden(q, notHeld(q.User, missing))
	}
	return nil
}

func (g guard) forbidden(q *Grant, why string) error {
	return meta.Forbidden(meta.GroupResource{Group: g.group, Resource: q.Resource}, q.Name, why)
}

// notHeld returns the message of a refusal, which lists at most 20 missing rules.
func notHeld(u *auth.User, missing []rule) string {
	const most = 20
	var b strings.Builder
	if u != nil {
		fmt.Fprintf(&b, "user %q (groups=%q) ", u.Name, u.Groups)
	}
	b.WriteString("is attempting to grant RBAC permissions not currently held:")
	for i := range missing {
		if i == most {
			fmt.Fprintf(&b, "\nand %d more", len(missing)-most)
			break
		}
		b.WriteString("\n" + missing[i].text())
	}
	return b.String()
}

// text returns the rule in the format of the message of notHeld.
func (r *rule) text() string {
	var parts []string
	for _, f := range []struct {
		name string
		list []string
	}{
		{"APIGroups", r.Groups}, {"Resources", r.Resources}, {"ResourceNames", r.Names},
		{"NonResourceURLs", r.URLs}, {"Verbs", r.Verbs},
	} {
		if len(f.list) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", f.name, f.list))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// may reports whether the authorizer allows the verb on a role. An error counts
// as a refusal.
func (g guard) may(ctx context.Context, u *auth.User, verb, resource string, k meta.Key) bool {
	d, _, _ := g.authorizer.Authorize(ctx, auth.Attributes{
		User: u, Verb: verb, Group: g.group, Version: all, Resource: resource, Namespace: k.Namespace, Name: k.Name,
	})
	return d == auth.Allow
}

func aggregates(o *meta.Object) bool {
	return len(o.List("aggregationRule", "clusterRoleSelectors")) > 0
}

func fullAuthority() []rule {
	return []rule{
		{Verbs: []string{all}, Groups: []string{all}, Resources: []string{all}},
		{Verbs: []string{all}, URLs: []string{all}},
	}
}

// sameGrant reports whether an update changes only metadata that the server
// maintains or that the garbage collector must be able to change.
func sameGrant(old, new *meta.Object) bool {
	return meta.Equal(withoutServerMetadata(old), withoutServerMetadata(new))
}

func withoutServerMetadata(o *meta.Object) any {
	out, metadata := maps.Clone(o.Tree()), maps.Clone(o.Map("metadata"))
	for _, field := range []string{"ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"} {
		delete(metadata, field)
	}
	out["metadata"] = metadata
	if list, ok := out["rules"]; ok && list == nil {
		delete(out, "rules")
	}
	return out
}
