// Package rbac decides by roles and the bindings that give them to users,
// groups and service accounts, as stored in a server.
//
// An Authorizer keeps an index of all roles and bindings that follows the store
// with every question, so a check costs the grants of one caller, not all of
// them, and a deleted binding stops working at once. CheckGrant keeps callers from
// granting what they do not have themselves; Reconcile makes the default roles
// and bindings; Aggregator fills the roles that are made of others.
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

// Authorizer allows what a role grants that is bound to the caller. It never
// denies. It is an auth.RuleLister, too.
type Authorizer struct {
	names names.Profile
	index *client.Index[*index]
}

// New returns an Authorizer over the roles and bindings of a server. It may be
// made before the server is built; it must not be asked before.
func New(c client.Client, p names.Profile) *Authorizer {
	return &Authorizer{p, client.NewIndex(c, types(p), func() *index { return newIndex(p) }, (*index).apply)}
}

// Close ends following the store.
func (r *Authorizer) Close() { r.index.Close() }

// Authorize allows the action if a rule bound to the caller covers it. The
// reason names the binding, the role and the subject, or the roles that bindings
// of the caller refer to and that do not exist.
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
					reason = because(ns, g)
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
		return auth.NoOpinion, "RBAC: " + faults(missing), nil
	}
	return auth.NoOpinion, "", nil
}

func because(ns string, g *grant) string {
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

// faults says what is missing, each once and not all of many.
func faults(list []string) string {
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
	out := auth.Rules{Incomplete: len(missing) > 0, Fault: faults(missing)}
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

// role returns the rules of a role, and whether it exists.
func (r *Authorizer) role(k meta.Key) (rules []rule, ok bool) {
	r.index.Read(func(x *index) { rules, ok = x.roles[k] })
	return rules, ok
}

func types(p names.Profile) []meta.GroupResource {
	g := p.Group(wellknown.GroupRBAC)
	return []meta.GroupResource{{Group: g, Resource: roles}, {Group: g, Resource: clusterRoles},
		{Group: g, Resource: roleBindings}, {Group: g, Resource: clusterRoleBindings}}
}
