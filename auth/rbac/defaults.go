package rbac

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/wellknown"
)

// Verbs that default roles combine.
const (
	read       = "get,list,watch"
	write      = "create,update,patch,delete,deletecollection"
	readWrite  = read + "," + write
	readUpdate = read + ",update,patch"
)

// A defaultRole describes a default role. Names and API groups are spec names,
// which object converts to the names of the profile.
type defaultRole struct {
	namespace, name string // a ClusterRole if namespace is empty
	rules           []rule
	from            string   // if set, the role aggregates the roles with the label aggregate-to-<from>
	to              []string // the role has the labels aggregate-to-<to>
}

// A defaultBinding describes a default binding. If role is empty, it binds the role
// of the same name.
type defaultBinding struct {
	namespace, name, role string
	subjects              []defaultSubject
}

type defaultSubject struct{ kind, namespace, name string }

// API groups of kinds that moved between groups, with the former group.
const (
	workloads   = "apps,extensions"
	eventGroups = "," + wellknown.GroupEvents
)

// on returns a rule for resources. verbs and groups are separated by commas. The
// lists of verbs and resources are sorted, as in the reference server.
func on(verbs, groups string, resources ...string) rule {
	return rule{Verbs: sorted(strings.Split(verbs, ",")), Groups: strings.Split(groups, ","), Resources: sorted(resources)}
}

// named is like on for the objects with the given names.
func named(verbs, group, resource string, objects ...string) rule {
	r := on(verbs, group, resource)
	r.Names = sorted(objects)
	return r
}

func urls(verbs string, paths ...string) rule {
	return rule{Verbs: sorted(strings.Split(verbs, ",")), URLs: sorted(paths)}
}

// events returns the rule for components that report events.
func events() rule {
	return on("create,update,patch", eventGroups, "events")
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func group(name string) defaultSubject { return defaultSubject{kind: kindGroup, name: name} }
func user(name string) defaultSubject  { return defaultSubject{kind: kindUser, name: name} }
func account(name string) defaultSubject {
	return defaultSubject{kind: kindAccount, namespace: "system", name: name}
}

// defaults returns all default roles and bindings.
func defaults(p names.Profile) ([]defaultRole, []defaultBinding) {
	list := slices.Concat(userRoles(), discoveryRoles(), componentRoles(), certificateRoles(p), namespacedRoles())
	bindings := slices.Concat(clusterBindings(), namespacedBindings())
	for _, c := range controllerRoles(p) {
		bindings = append(bindings, defaultBinding{name: c.name,
			subjects: []defaultSubject{account(strings.TrimPrefix(c.name, controllerPrefix))}})
		list = append(list, c)
	}
	return list, bindings
}

func clusterBindings() []defaultBinding {
	return []defaultBinding{
		{name: "cluster-admin", subjects: []defaultSubject{group(auth.Masters)}},
		{name: "system:monitoring", subjects: []defaultSubject{group("system:monitoring")}},
		{name: "system:discovery", subjects: []defaultSubject{group(auth.Authenticated)}},
		{name: "system:basic-user", subjects: []defaultSubject{group(auth.Authenticated)}},
		{name: "system:public-info-viewer", subjects: []defaultSubject{group(auth.Authenticated), group(auth.Unauthenticated)}},
		{name: "system:service-account-issuer-discovery", subjects: []defaultSubject{group(auth.ServiceAccounts)}},
		{name: "system:node-proxier", subjects: []defaultSubject{user(wellknown.UserProxy)}},
		{name: wellknown.UserControllerManager, subjects: []defaultSubject{user(wellknown.UserControllerManager)}},
		{name: wellknown.RoleDNS, subjects: []defaultSubject{account(wellknown.AccountDNS)}},
		{name: wellknown.UserScheduler, subjects: []defaultSubject{user(wellknown.UserScheduler)}},
		{name: "system:volume-scheduler", subjects: []defaultSubject{user(wellknown.UserScheduler)}},
		{name: "system:node"},
	}
}

func namespacedBindings() []defaultBinding {
	return []defaultBinding{
		{namespace: "public", name: controllerPrefix + "bootstrap-signer", subjects: []defaultSubject{account("bootstrap-signer")}},
		{namespace: "system", name: controllerPrefix + "bootstrap-signer", subjects: []defaultSubject{account("bootstrap-signer")}},
		{namespace: "system", name: controllerPrefix + "cloud-provider", subjects: []defaultSubject{account("cloud-provider")}},
		{namespace: "system", name: controllerPrefix + "token-cleaner", subjects: []defaultSubject{account("token-cleaner")}},
		{namespace: "system", name: "system::" + wellknown.ReaderRole, role: wellknown.ReaderRole, subjects: []defaultSubject{
			user(wellknown.UserControllerManager), user(wellknown.UserScheduler)}},
		{namespace: "system", name: wellknown.LeaderRole + wellknown.LeaseControllers, subjects: []defaultSubject{
			user(wellknown.UserControllerManager), account(wellknown.LeaseControllers), account("leader-election-controller")}},
		{namespace: "system", name: wellknown.LeaderRole + wellknown.LeaseScheduler, subjects: []defaultSubject{
			user(wellknown.UserScheduler), account(wellknown.LeaseScheduler)}},
	}
}

// object returns the role as an API object with the names of the profile.
func (d defaultRole) object(p names.Profile) *meta.Object {
	o := bootstrapObject(p, d.namespace, d.name, kindRole)
	for _, word := range d.to {
		o.Set("true", "metadata", "labels", p.Wire(wellknown.RBACAggregate+word))
	}
	if d.from != "" {
		selector := map[string]any{"matchLabels": map[string]any{p.Wire(wellknown.RBACAggregate + d.from): "true"}}
		o.Set([]any{selector}, "aggregationRule", "clusterRoleSelectors")
		return o
	}
	rules := make([]rule, len(d.rules))
	for i, r := range d.rules {
		r.Groups = slices.Clone(r.Groups)
		for j := range r.Groups {
			r.Groups[j] = p.Group(r.Groups[j])
		}
		r.Names = slices.Clone(r.Names)
		for j := range r.Names {
			r.Names[j] = p.Wire(r.Names[j])
		}
		rules[i] = r
	}
	o.Tree()["rules"] = rulesTree(rules)
	return o
}

// object returns the binding as an API object with the names of the profile.
func (d defaultBinding) object(p names.Profile) *meta.Object {
	o := bootstrapObject(p, d.namespace, d.name, kindRole+"Binding")
	g := p.Group(wellknown.GroupRBAC)
	kind := kindClusterRole
	if d.namespace != "" {
		kind = kindRole
	}
	role := d.role
	if role == "" {
		role = d.name
	}
	o.Tree()["roleRef"] = map[string]any{"apiGroup": g, "kind": kind, "name": p.Wire(role)}
	if len(d.subjects) == 0 {
		return o
	}
	list := make([]any, len(d.subjects))
	for i, s := range d.subjects {
		t := map[string]any{"kind": s.kind, "name": p.Wire(s.name)}
		if s.kind == kindAccount {
			t["namespace"] = p.SystemNamespace(s.namespace)
		} else {
			t["apiGroup"] = g
		}
		list[i] = t
	}
	o.Tree()["subjects"] = list
	return o
}

// bootstrapObject returns an object with the metadata of all default objects. kind
// is the namespaced kind; if purpose is empty, the object is cluster-scoped.
func bootstrapObject(p names.Profile, purpose, name, kind string) *meta.Object {
	if purpose == "" {
		kind = "Cluster" + kind
	}
	o := meta.NewObject(map[string]any{
		"apiVersion": p.Group(wellknown.GroupRBAC) + "/v1", "kind": kind,
		"metadata": map[string]any{
			"name":        p.Wire(name),
			"labels":      map[string]any{p.Wire(wellknown.Bootstrapping): wellknown.RBACDefaults},
			"annotations": map[string]any{p.Wire(wellknown.RBACAutoupdate): "true"},
		},
	})
	if purpose != "" {
		o.SetNamespace(p.SystemNamespace(purpose))
	}
	return o
}
