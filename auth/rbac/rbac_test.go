package rbac_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const group = "rbac.authorization.k8s.io"

func res(name string) meta.GroupResource { return meta.GroupResource{Group: group, Resource: name} }

type store struct {
	*testclient.Client
	t testing.TB
}

func newStore(t testing.TB) store { return store{&testclient.Client{}, t} }

func (s store) role(namespace, name string, rules ...map[string]any) {
	list := make([]any, len(rules))
	for i, r := range rules {
		list[i] = meta.Clone(r)
	}
	o := meta.NewObject(map[string]any{"metadata": map[string]any{"name": name}, "rules": list})
	r := res("clusterroles")
	if namespace != "" {
		r = res("roles")
		o.SetNamespace(namespace)
	}
	_, err := s.Create(context.Background(), r, o)
	require.NoError(s.t, err)
}

func (s store) bind(namespace, name, roleKind, role string, subjects ...map[string]any) {
	list := make([]any, len(subjects))
	for i, x := range subjects {
		list[i] = x
	}
	o := meta.NewObject(map[string]any{"metadata": map[string]any{"name": name}, "subjects": list,
		"roleRef": map[string]any{"apiGroup": group, "kind": roleKind, "name": role}})
	r := res("clusterrolebindings")
	if namespace != "" {
		r = res("rolebindings")
		o.SetNamespace(namespace)
	}
	_, err := s.Create(context.Background(), r, o)
	require.NoError(s.t, err)
}

func words(list ...string) []any {
	out := make([]any, len(list))
	for i, w := range list {
		out[i] = w
	}
	return out
}

func rule(verbs, groups, resources []any, objects ...string) map[string]any {
	r := map[string]any{"verbs": verbs, "apiGroups": groups, "resources": resources}
	if len(objects) > 0 {
		r["resourceNames"] = words(objects...)
	}
	return r
}

func user(name string) map[string]any {
	return map[string]any{"kind": "User", "apiGroup": group, "name": name}
}

func members(name string) map[string]any {
	return map[string]any{"kind": "Group", "apiGroup": group, "name": name}
}

func can(t *testing.T, a auth.Authorizer, action auth.Attributes) bool {
	d, _, err := a.Authorize(context.Background(), action)
	require.NoError(t, err)
	require.NotEqual(t, auth.Deny, d, "RBAC never denies")
	return d == auth.Allow
}

// TestRulesPermit checks rules, wildcards included.
func TestRulesPermit(t *testing.T) {
	on := func(verb, group, resource string) auth.Attributes {
		res, sub := resource, ""
		for i := range resource {
			if resource[i] == '/' {
				res, sub = resource[:i], resource[i+1:]
			}
		}
		return auth.Attributes{Verb: verb, Group: group, Resource: res, Subresource: sub, Name: "a"}
	}
	path := func(verb, p string) auth.Attributes { return auth.Attributes{Verb: verb, Path: p} }
	urls := func(list ...string) map[string]any {
		return map[string]any{"verbs": words("get"), "nonResourceURLs": words(list...)}
	}
	tests := []struct {
		name string
		rule map[string]any
		a    auth.Attributes
		want bool
	}{
		{"exact", rule(words("get"), words(""), words("pods")), on("get", "", "pods"), true},
		{"other verb", rule(words("get"), words(""), words("pods")), on("list", "", "pods"), false},
		{"other group", rule(words("get"), words(""), words("pods")), on("get", "apps", "pods"), false},
		{"other resource", rule(words("get"), words(""), words("pods")), on("get", "", "podss"), false},
		{"no groups", rule(words("get"), words(), words("pods")), on("get", "", "pods"), false},
		{"no verbs", rule(words(), words(""), words("pods")), on("get", "", "pods"), false},
		{"case counts", rule(words("get"), words(""), words("Pods")), on("get", "", "pods"), false},
		{"subresource is separate", rule(words("get"), words(""), words("pods")), on("get", "", "pods/log"), false},
		{"subresource", rule(words("get"), words(""), words("pods/log")), on("get", "", "pods/log"), true},
		{"subresource does not include resource", rule(words("get"), words(""), words("pods/log")), on("get", "", "pods"), false},
		{"any/sub", rule(words("get"), words("*"), words("*/status")), on("get", "apps", "deployments/status"), true},
		{"any/sub no parent", rule(words("get"), words("*"), words("*/status")), on("get", "apps", "deployments"), false},
		{"res/any is literal", rule(words("get"), words(""), words("pods/*")), on("get", "", "pods/log"), false},
		{"all resources", rule(words("get"), words("apps"), words("*")), on("get", "apps", "deployments/scale"), true},
		{"all groups", rule(words("get"), words("*"), words("secrets")), on("get", "any", "secrets"), true},
		{"all verbs", rule(words("*"), words(""), words("secrets")), on("any", "", "secrets"), true},
		{"verb prefix is literal", rule(words("g*"), words(""), words("secrets")), on("get", "", "secrets"), false},
		{"asked for all", rule(words("get", "list"), words(""), words("secrets")), on("*", "", "secrets"), false},
		{"name", rule(words("get"), words(""), words("pods"), "a"), on("get", "", "pods"), true},
		{"other name", rule(words("get"), words(""), words("pods"), "b"), on("get", "", "pods"), false},
		{"star name is literal", rule(words("get"), words(""), words("pods"), "*"), on("get", "", "pods"), false},
		{"path", urls("/one"), path("get", "/one"), true},
		{"path below", urls("/one"), path("get", "/one/x"), false},
		{"path star", urls("/u/*"), path("get", "/u/a/b"), true},
		{"path star without slash", urls("/u/*"), path("get", "/u"), false},
		{"star in the middle", urls("/u/*/x"), path("get", "/u/a/x"), false},
		{"all paths", urls("*"), path("get", "/"), true},
		{"path verb", urls("*"), path("post", "/"), false},
		{"paths are no resources", urls("*"), on("get", "", "pods"), false},
		{"resources are no paths", rule(words("*"), words("*"), words("*")), path("get", "/healthz"), false},
		{"path tricks", urls("/one"), path("get", "/one/"), false},
		{"path case", urls("/one"), path("get", "/One"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			s.role("", "r", tt.rule)
			s.bind("", "b", "ClusterRole", "r", user("alice"))
			a := rbac.New(s, names.Kubernetes)
			tt.a.User = &auth.User{Name: "alice"}
			assert.Equal(t, tt.want, can(t, a, tt.a))
			tt.a.User = &auth.User{Name: "bob"}
			assert.False(t, can(t, a, tt.a))
			tt.a.User = nil
			assert.False(t, can(t, a, tt.a))
		})
	}
}

func TestSubjectsAndScopesPermit(t *testing.T) {
	s := newStore(t)
	read := rule(words("get"), words(""), words("configmaps", "namespaces"))
	s.role("", "reader", read, map[string]any{"verbs": words("get"), "nonResourceURLs": words("/x")})
	s.role("ns", "reader", read)
	s.bind("ns", "u", "Role", "reader", user("alice"))
	s.bind("ns", "g", "Role", "reader", members("ops"))
	s.bind("ns", "sa", "Role", "reader", map[string]any{"kind": "ServiceAccount", "name": "robot"})
	s.bind("other", "sa", "ClusterRole", "reader", map[string]any{"kind": "ServiceAccount", "name": "robot", "namespace": "ns"})
	s.bind("", "all", "ClusterRole", "reader", user("carol"))
	s.bind("", "norole", "Role", "reader", user("dave"))
	s.bind("", "nons", "ClusterRole", "reader", map[string]any{"kind": "ServiceAccount", "name": "robot"})
	s.bind("ns", "path", "ClusterRole", "reader", user("erin"))
	a := rbac.New(s, names.Kubernetes)
	get := func(u *auth.User, ns string) auth.Attributes {
		return auth.Attributes{User: u, Verb: "get", Resource: "configmaps", Namespace: ns, Name: "a"}
	}
	robot := &auth.User{Name: "system:serviceaccount:ns:robot"}
	tests := []struct {
		name string
		a    auth.Attributes
		want bool
	}{
		{"user", get(&auth.User{Name: "alice"}, "ns"), true},
		{"user elsewhere", get(&auth.User{Name: "alice"}, "other"), false},
		{"user everywhere", get(&auth.User{Name: "alice"}, ""), false},
		{"user names are case-sensitive", get(&auth.User{Name: "Alice"}, "ns"), false},
		{"group", get(&auth.User{Name: "x", Groups: []string{"devs", "ops"}}, "ns"), true},
		{"group named as user", get(&auth.User{Name: "ops"}, "ns"), false},
		{"user named as group", get(&auth.User{Name: "x", Groups: []string{"alice"}}, "ns"), false},
		{"account of the binding's namespace", get(robot, "ns"), true},
		{"account by namespace", get(robot, "other"), true},
		{"account of another namespace", get(&auth.User{Name: "system:serviceaccount:other:robot"}, "ns"), false},
		{"cluster-wide", get(&auth.User{Name: "carol"}, ""), true},
		{"cluster-wide in a namespace", get(&auth.User{Name: "carol"}, "ns"), true},
		{"cluster binding to a Role", get(&auth.User{Name: "dave"}, ""), false},
		{"the namespace itself", auth.Attributes{User: &auth.User{Name: "alice"}, Verb: "get", Resource: "namespaces", Namespace: "ns", Name: "ns"}, true},
		{"paths are not of a namespace", auth.Attributes{User: &auth.User{Name: "erin"}, Verb: "get", Path: "/x", Namespace: "ns"}, false},
		{"paths cluster-wide", auth.Attributes{User: &auth.User{Name: "carol"}, Verb: "get", Path: "/x"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { assert.Equal(t, tt.want, can(t, a, tt.a)) })
	}
}

func TestAuthorizeReason(t *testing.T) {
	s := newStore(t)
	s.role("", "y", rule(words("get"), words(""), words("pods")))
	s.bind("", "x", "ClusterRole", "y", user("z"))
	s.bind("ns", "b", "ClusterRole", "y", map[string]any{"kind": "ServiceAccount", "name": "robot", "namespace": "ns"})
	s.bind("ns", "lost", "Role", "gone", user("lost"))
	a := rbac.New(s, names.Kubernetes)
	ask := func(u, ns string) string {
		_, reason, err := a.Authorize(context.Background(), auth.Attributes{User: &auth.User{Name: u}, Verb: "get", Resource: "pods", Namespace: ns})
		require.NoError(t, err)
		return reason
	}
	assert.Equal(t, `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "y" to User "z"`, ask("z", ""))
	assert.Equal(t, `RBAC: allowed by RoleBinding "b/ns" of ClusterRole "y" to ServiceAccount "robot/ns"`, ask("system:serviceaccount:ns:robot", "ns"))
	assert.Equal(t, `RBAC: role.rbac.authorization.k8s.io "gone" not found`, ask("lost", "ns"))
	assert.Empty(t, ask("nobody", "ns"))
}

func TestChangesAffectNextDecision(t *testing.T) {
	s, ctx := newStore(t), context.Background()
	a := rbac.New(s, names.Kubernetes)
	get := auth.Attributes{User: &auth.User{Name: "alice"}, Verb: "get", Resource: "pods", Namespace: "ns"}
	s.bind("ns", "b", "Role", "r", user("alice"), user("alice"))
	assert.False(t, can(t, a, get))
	s.role("ns", "r", rule(words("get"), words(""), words("pods")))
	assert.True(t, can(t, a, get), "a role created after its binding")
	key := meta.Key{Namespace: "ns", Name: "b"}
	_, err := s.Update(ctx, res("rolebindings"), key, "", func(o *meta.Object) error {
		o.Tree()["subjects"] = []any{user("bob")}
		return nil
	})
	require.NoError(t, err)
	assert.False(t, can(t, a, get), "another subject")
	s.bind("ns", "c", "Role", "r", user("alice"))
	assert.True(t, can(t, a, get))
	require.NoError(t, s.Delete(ctx, res("rolebindings"), meta.Key{Namespace: "ns", Name: "c"}, registry.DeleteOptions{}))
	assert.False(t, can(t, a, get), "a deleted binding")
	s.bind("ns", "d", "Role", "r", user("alice"))
	require.NoError(t, s.Delete(ctx, res("roles"), meta.Key{Namespace: "ns", Name: "r"}, registry.DeleteOptions{}))
	assert.False(t, can(t, a, get), "a deleted role")
}

func TestMalformedObjectsGrantNothing(t *testing.T) {
	s, ctx := newStore(t), context.Background()
	s.role("", "r", rule(words("*"), words("*"), words("*")))
	for i, subjects := range []any{"x", []any{"x", nil, 3}, []any{map[string]any{"kind": "User", "name": "alice"}},
		[]any{map[string]any{"kind": "User", "apiGroup": "x", "name": "alice"}}, []any{map[string]any{"kind": "Robot", "apiGroup": group, "name": "alice"}}} {
		_, err := s.Create(ctx, res("clusterrolebindings"), meta.NewObject(map[string]any{
			"metadata": map[string]any{"name": fmt.Sprint("b", i)}, "subjects": subjects,
			"roleRef": map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": "r"}}))
		require.NoError(t, err)
	}
	_, err := s.Create(ctx, res("clusterroles"), meta.NewObject(map[string]any{"metadata": map[string]any{"name": "bad"}, "rules": []any{"x", map[string]any{"verbs": "get"}}}))
	require.NoError(t, err)
	s.bind("", "bad", "ClusterRole", "bad", user("alice"))
	for name, ref := range map[string]map[string]any{
		"no-group": {"kind": "ClusterRole", "name": "r"}, "other-group": {"apiGroup": "example.com", "kind": "ClusterRole", "name": "r"},
		"no-name": {"apiGroup": group, "kind": "ClusterRole"}, "no-kind": {"apiGroup": group, "name": "r"},
	} {
		_, err := s.Create(ctx, res("clusterrolebindings"), meta.NewObject(map[string]any{
			"metadata": map[string]any{"name": name}, "subjects": []any{user("alice")}, "roleRef": ref}))
		require.NoError(t, err)
	}
	assert.False(t, can(t, rbac.New(s, names.Kubernetes), auth.Attributes{User: &auth.User{Name: "alice"}, Verb: "get", Resource: "pods"}))
}

func TestRulesFor(t *testing.T) {
	s, ctx := newStore(t), context.Background()
	s.role("ns", "r", rule(words("get"), words(""), words("pods"), "a"))
	s.role("", "c", map[string]any{"verbs": words("get"), "nonResourceURLs": words("/x")})
	s.bind("ns", "b", "Role", "r", user("alice"))
	s.bind("", "b", "ClusterRole", "c", user("alice"))
	a := rbac.New(s, names.Kubernetes)
	assert.Equal(t, auth.Rules{
		Resource:    []auth.ResourceRule{{Verbs: []string{"get"}, Groups: []string{""}, Resources: []string{"pods"}, Names: []string{"a"}}},
		NonResource: []auth.NonResourceRule{{Verbs: []string{"get"}, Paths: []string{"/x"}}},
	}, a.RulesFor(ctx, &auth.User{Name: "alice"}, "ns"))
	assert.Equal(t, auth.Rules{}, a.RulesFor(ctx, &auth.User{Name: "bob"}, "ns"))
}

// manyBindings creates n bindings of several thousand users, groups and
// namespaces.
func manyBindings(b testing.TB, n int) store {
	s := newStore(b)
	for i := range 100 {
		var rules []map[string]any
		for j := range 20 {
			rules = append(rules, rule(words("get", "list", "watch"), words(fmt.Sprint("g", j)), words(fmt.Sprint("r", i), "pods")))
		}
		s.role("", fmt.Sprint("role", i), rules...)
	}
	for i := range n {
		ns := fmt.Sprint("ns", i%1000)
		if i%10 == 0 {
			ns = ""
		}
		s.bind(ns, fmt.Sprint("b", i), "ClusterRole", fmt.Sprint("role", i%100), user(fmt.Sprint("u", i%5000)), members(fmt.Sprint("g", i%3000)))
	}
	return s
}

func BenchmarkAuthorizeRBAC10k(b *testing.B) {
	a := rbac.New(manyBindings(b, 10_000), names.Kubernetes)
	u := &auth.User{Name: "u7", Groups: []string{"g7", "g8", "system:authenticated"}}
	for name, action := range map[string]auth.Attributes{
		"allowed": {User: u, Verb: "list", Group: "g19", Resource: "pods", Namespace: "ns7"},
		"denied":  {User: u, Verb: "delete", Group: "g19", Resource: "pods", Namespace: "ns7"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := a.Authorize(context.Background(), action); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
