// Package rbac authorizes requests by the roles and role bindings stored in a
// server.
//
// An Authorizer keeps an in-memory index of all roles and bindings. It applies
// the store's changes before each decision, so a deleted binding has no effect on
// the next request, and a decision visits only the grants of the caller.
// CheckGrant prevents privilege escalation: callers cannot grant rights that they
// do not have. Reconcile creates the default roles and bindings. Aggregator
// maintains the rules of ClusterRoles with an aggregationRule.
package rbac

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
)

// Resource types of the package's group.
const (
	roles               = "roles"
	clusterRoles        = "clusterroles"
	roleBindings        = "rolebindings"
	clusterRoleBindings = "clusterrolebindings"
)

// Authorizer allows a request if a role that is bound to the user, a group of the
// user or the service account permits it. It never denies: its other answer is
// NoOpinion. It also implements auth.RuleLister. Its methods are safe for
// concurrent use.
type Authorizer struct {
	names names.Profile
	index *client.Index[*index]
}

// New returns an Authorizer for the roles and bindings of a server. c may be the
// client of a server that is not built yet; its other methods must be called only
// after the build.
func New(c client.Client, p names.Profile) *Authorizer {
	return &Authorizer{p, client.NewIndex(c, types(p), func() *index { return newIndex(p) }, (*index).apply)}
}

// Close stops the watch of the store.
func (r *Authorizer) Close() { r.index.Close() }

// Authorize allows the action if a rule of a role bound to the caller permits it.
// The reason names the binding, the role and the subject. If no rule permits the
// action, the reason lists the roles that the caller's bindings refer to and that do not
// exist. The error is always nil.
func (r *Authorizer) Authorize(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
	namespace := a.Namespace
	if a.Resource == "" {
		namespace = ""
	}
	reason, missing := "", []string(nil)
	r.index.Read(func(x *index) {
		x.visit(a.User, namespace, func(ns string, g *grant) bool {
			rules, ok := x.roles[g.role]
			if !ok {
				missing = append(missing, r.noRole(g.role))
				return true
			}
			for i := range rules {
				if rules[i].allows(&a) {
					reason = allowReason(ns, g)
					return false
				}
			}
			return true
		})
	})
	if reason != "" {
		return auth.Allow, reason, nil
	}
	if len(missing) > 0 {
		return auth.NoOpinion, "RBAC: " + joinMessages(missing), nil
	}
	return auth.NoOpinion, "", nil
}

// allowReason returns the reason of an Allow. It names the first binding of the
// grant; ns is "" for cluster-wide grants.
func allowReason(ns string, g *grant) string {
	kind, name := "ClusterRoleBinding", g.bindings[0].binding
	if ns != "" {
		kind, name = "RoleBinding", name+"/"+ns
	}
	return "RBAC: allowed by " + kind + " " + strconv.Quote(name) + " of " + roleKind(g.role) + " " + strconv.Quote(g.role.Name) +
		" to " + g.bindings[0].subject
}

func roleKind(k meta.Key) string {
	if k.Namespace == "" {
		return kindClusterRole
	}
	return kindRole
}

func (r *Authorizer) noRole(k meta.Key) string {
	return fmt.Sprintf("%s.%s %q not found", strings.ToLower(roleKind(k)), r.names.Group(wellknown.GroupRBAC), k.Name)
}

// joinMessages joins a sorted list of messages without duplicates, at most ten. It
// sorts list in place.
func joinMessages(list []string) string {
	slices.Sort(list)
	list = slices.Compact(list)
	const most = 10
	if len(list) > most {
		list = append(list[:most:most], fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, ", ")
}

// RulesFor returns the rules bound to a user in a namespace and cluster-wide.
func (r *Authorizer) RulesFor(_ context.Context, u *auth.User, namespace string) auth.Rules {
	rules, missing := r.rulesFor(u, namespace)
	out := auth.Rules{Incomplete: len(missing) > 0, Fault: joinMessages(missing)}
	for _, rule := range rules {
		if len(rule.URLs) > 0 {
			out.NonResource = append(out.NonResource, auth.NonResourceRule{Verbs: rule.Verbs, Paths: rule.URLs})
		}
		if len(rule.Resources) > 0 {
			out.Resource = append(out.Resource, auth.ResourceRule{
				Verbs: rule.Verbs, Groups: rule.Groups, Resources: rule.Resources, Names: rule.Names,
			})
		}
	}
	return out
}

// rulesFor returns the rules of the roles bound to a user in a namespace and
// cluster-wide, and messages for the roles that do not exist. The rules share
// slices with the index and must not be modified.
func (r *Authorizer) rulesFor(u *auth.User, namespace string) (rules []rule, missing []string) {
	seen := map[meta.Key]bool{}
	r.index.Read(func(x *index) {
		x.visit(u, namespace, func(_ string, g *grant) bool {
			if seen[g.role] {
				return true
			}
			seen[g.role] = true
			own, ok := x.roles[g.role]
			if !ok {
				missing = append(missing, r.noRole(g.role))
			}
			rules = append(rules, own...)
			return true
		})
	})
	return rules, missing
}

// role returns the rules of a role, which must not be modified, and whether the
// role exists.
func (r *Authorizer) role(k meta.Key) (rules []rule, ok bool) {
	r.index.Read(func(x *index) { rules, ok = x.roles[k] })
	return rules, ok
}

func types(p names.Profile) []meta.GroupResource {
	g := p.Group(wellknown.GroupRBAC)
	return []meta.GroupResource{{Group: g, Resource: roles}, {Group: g, Resource: clusterRoles},
		{Group: g, Resource: roleBindings}, {Group: g, Resource: clusterRoleBindings}}
}
