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

// Grant is a role or a binding that somebody is about to write.
type Grant struct {
	User        *auth.User
	Resource    string // roles, clusterroles, rolebindings or clusterrolebindings
	Namespace   string // empty for the kinds of cluster scope
	Name        string
	Posted      bool         // the name is in the body alone, not in the path
	Object, Old *meta.Object // Old is nil if it is new
}

// CheckGrant refuses a role or a binding beyond the rights of its writer. Writing a
// role takes all its rights at the same or a wider scope, or the verb escalate on
// it; writing a binding takes all rights of its role, or the verb bind on the role.
// A ClusterRole that is made of others takes every right there is. Members of
// auth.Masters may grant anything. A refusal is a *meta.Status.
//
// authorizer is the one of the server: it is asked for escalate and bind. Whoever
// stores roles calls this for every create and update, however it was sent, when
// nothing changes the object any more.
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
		name = "" // escalate on a name covers a role that is there, or is written by name
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
		return nil // not a valid binding; it goes no further than validation
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

func (g guard) covered(q *Grant, want []rule) error {
	own, _ := g.rbac.rulesFor(q.User, q.Namespace)
	missing, ok := beyond(own, want)
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

// sameGrant reports whether an update touches nothing but what a server keeps
// itself and what garbage collection must be able to change.
func sameGrant(old, new *meta.Object) bool {
	return meta.Equal(withoutUpkeep(old), withoutUpkeep(new))
}

func withoutUpkeep(o *meta.Object) any {
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
