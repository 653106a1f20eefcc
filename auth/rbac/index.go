package rbac

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/wellknown"
)

// Kinds of roles and subjects.
const (
	kindRole        = "Role"
	kindClusterRole = "ClusterRole"
	kindUser        = "User"
	kindGroup       = "Group"
	kindAccount     = "ServiceAccount"
)

// identity is a user or group name. A service account is represented by its user
// name.
type identity struct {
	group bool
	name  string
}

// grant is a role that an identity has in a namespace or cluster-wide, and the
// bindings that give it. The bindings are sorted by name; Authorize reports the first.
type grant struct {
	role     meta.Key // Namespace is empty for a ClusterRole
	bindings []granted
}

// granted is the name of a binding and the text of its subject.
type granted struct{ binding, subject string }

// binding is the parsed form of a binding. It is kept so that its grants can be
// removed when the binding changes.
type binding struct {
	role     meta.Key
	subjects []subject
}

type subject struct {
	identity
	text string
}

// index holds the rules of roles, and the grants of each identity. It has no
// lock: client.Index serializes apply with reads. Keys of ClusterRoles and
// ClusterRoleBindings have an empty namespace.
type index struct {
	group    string // wire name of the RBAC group
	roles    map[meta.Key][]rule
	bindings map[meta.Key]binding
	grants   map[string]map[identity][]grant // by namespace, "" for cluster-wide grants; each list is sorted by role
}

func newIndex(p names.Profile) *index {
	return &index{
		group: p.Group(wellknown.GroupRBAC), roles: map[meta.Key][]rule{},
		bindings: map[meta.Key]binding{}, grants: map[string]map[identity][]grant{},
	}
}

// apply updates the index for an event; c.Object is nil after a deletion.
func (x *index) apply(c client.Event) {
	switch c.Resource.Resource {
	case roles, clusterRoles:
		x.setRole(c.Key, c.Object)
	case roleBindings, clusterRoleBindings:
		x.setBinding(c.Key, c.Object)
	}
}

func (x *index) setRole(k meta.Key, o *meta.Object) {
	if o == nil {
		delete(x.roles, k)
		return
	}
	x.roles[k] = rulesOf(o)
}

func (x *index) setBinding(k meta.Key, o *meta.Object) {
	if old, ok := x.bindings[k]; ok {
		x.ungrant(k, old)
	}
	b, ok := x.bindingOf(k, o)
	if !ok {
		return
	}
	x.bindings[k] = b
	for _, s := range b.subjects {
		x.grant(k, b.role, s)
	}
}

// bindingOf parses a binding. It returns false if o is nil or the roleRef has an
// unknown group or kind. It skips malformed subjects.
func (x *index) bindingOf(k meta.Key, o *meta.Object) (binding, bool) {
	if o == nil || o.String("roleRef", "apiGroup") != x.group {
		return binding{}, false
	}
	role, ok := roleOf(o, k.Namespace)
	if !ok {
		return binding{}, false
	}
	b := binding{role: role}
	for _, item := range o.List("subjects") {
		m, _ := item.(map[string]any)
		if s, ok := subjectOf(meta.NewObject(m), x.group, k.Namespace); ok && !slices.Contains(b.subjects, s) {
			b.subjects = append(b.subjects, s)
		}
	}
	return b, true
}

// roleOf returns the key of the role that a binding in the namespace refers to, and
// whether the roleRef is valid. A cluster-wide binding cannot refer to a Role.
func roleOf(o *meta.Object, namespace string) (meta.Key, bool) {
	k := meta.Key{Name: o.String("roleRef", "name")}
	switch kind := o.String("roleRef", "kind"); {
	case kind == kindRole && namespace != "":
		k.Namespace = namespace
	case kind != kindClusterRole:
		return k, false
	}
	return k, k.Name != ""
}

// subjectOf parses a subject and reports whether it is valid. A service account
// without a namespace is in the binding's namespace.
func subjectOf(o *meta.Object, group, namespace string) (subject, bool) {
	name := o.String("name")
	if name == "" {
		return subject{}, false
	}
	switch kind := o.String("kind"); kind {
	case kindUser, kindGroup:
		if o.String("apiGroup") != group {
			return subject{}, false
		}
		return subject{identity{kind == kindGroup, name}, kind + ` "` + name + `"`}, true
	case kindAccount:
		if ns := o.String("namespace"); ns != "" {
			namespace = ns
		}
		if namespace == "" || o.String("apiGroup") != "" {
			return subject{}, false
		}
		text := kind + ` "` + name + "/" + namespace + `"`
		return subject{identity{false, auth.ServiceAccountUser(namespace, name)}, text}, true
	}
	return subject{}, false
}

// grant adds the role to the subject's grants, by the binding k.
func (x *index) grant(k, role meta.Key, s subject) {
	in := x.grants[k.Namespace]
	if in == nil {
		in = map[identity][]grant{}
		x.grants[k.Namespace] = in
	}
	list := in[s.identity]
	i, found := findGrant(list, role)
	if !found {
		list = slices.Insert(list, i, grant{role: role})
		in[s.identity] = list
	}
	g := granted{k.Name, s.text}
	at, _ := slices.BinarySearchFunc(list[i].bindings, g, compareGranted)
	list[i].bindings = slices.Insert(list[i].bindings, at, g)
}

// ungrant removes the binding k and its grants.
func (x *index) ungrant(k meta.Key, b binding) {
	delete(x.bindings, k)
	in := x.grants[k.Namespace]
	for _, s := range b.subjects {
		list := in[s.identity]
		i, found := findGrant(list, b.role)
		if !found {
			continue
		}
		left := slices.DeleteFunc(list[i].bindings, func(g granted) bool { return g == granted{k.Name, s.text} })
		list[i].bindings = left
		if len(left) == 0 {
			list = slices.Delete(list, i, i+1)
		}
		if in[s.identity] = list; len(list) == 0 {
			delete(in, s.identity)
		}
	}
	if len(in) == 0 {
		delete(x.grants, k.Namespace)
	}
}

func findGrant(list []grant, role meta.Key) (int, bool) {
	return slices.BinarySearchFunc(list, role, func(g grant, k meta.Key) int {
		if c := strings.Compare(g.role.Namespace, k.Namespace); c != 0 {
			return c
		}
		return strings.Compare(g.role.Name, k.Name)
	})
}

func compareGranted(a, b granted) int {
	if c := strings.Compare(a.binding, b.binding); c != 0 {
		return c
	}
	return strings.Compare(a.subject, b.subject)
}

// visit calls f with each grant of a user and its groups, cluster-wide grants
// first and then those in the namespace, until f returns false. f must not keep g.
func (x *index) visit(u *auth.User, namespace string, f func(namespace string, g *grant) bool) {
	if u == nil {
		return
	}
	for _, ns := range [...]string{"", namespace} {
		if in := x.grants[ns]; in != nil {
			if !visitIn(in, u, ns, f) {
				return
			}
		}
		if namespace == "" {
			return
		}
	}
}

func visitIn(in map[identity][]grant, u *auth.User, ns string, f func(string, *grant) bool) bool {
	for i := -1; i < len(u.Groups); i++ {
		id := identity{name: u.Name}
		if i >= 0 {
			id = identity{true, u.Groups[i]}
		}
		list := in[id]
		for j := range list {
			if !f(ns, &list[j]) {
				return false
			}
		}
	}
	return true
}
