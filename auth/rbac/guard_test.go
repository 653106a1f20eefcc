package rbac_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/rbac"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

func roleObject(rules ...any) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": "x", "namespace": "ns"}, "rules": rules})
}

func bindingObject(kind, role string) *meta.Object {
	return meta.NewObject(map[string]any{"metadata": map[string]any{"name": "x", "namespace": "ns"},
		"roleRef": map[string]any{"apiGroup": group, "kind": kind, "name": role}})
}

func request(u *auth.User, resource, namespace string, obj, old *meta.Object) *admission.Request {
	op := admission.Create
	if old != nil {
		op = admission.Update
	}
	return &admission.Request{Operation: op, User: u, Namespace: namespace, Name: "x", Object: obj, Old: old,
		Resource: meta.GroupVersionResource{Group: group, Version: "v1", Resource: resource}}
}

// TestCheckGrant checks escalation by roles, bindings, aggregation and updates.
func TestCheckGrant(t *testing.T) {
	s := newStore(t)
	cm := rule(words("get", "list"), words(""), words("configmaps"))
	s.role("ns", "own", cm, rule(words("get"), words(""), words("pods"), "p1", "p2"), rule(words("get"), words("*"), words("*/status")))
	s.bind("ns", "own", "Role", "own", user("alice"))
	s.role("ns", "strong", rule(words("get"), words(""), words("secrets")))
	s.role("", "cluster-strong", rule(words("*"), words("*"), words("*")))
	s.role("", "urls", map[string]any{"verbs": words("get"), "nonResourceURLs": words("/a/*")})
	s.bind("", "urls", "ClusterRole", "urls", user("alice"))
	s.role("ns", "esc", rule(words("escalate"), words(group), words("roles"), "x"), rule(words("bind"), words(group), words("roles", "clusterroles"), "strong", "later"))
	s.bind("ns", "esc", "Role", "esc", user("eve"))
	a := rbac.New(s, names.Kubernetes)
	p, err := admission.New([]admission.Plugin{plugins.RBACEscalation(a)}, admission.Options{},
		admission.PluginContext{Names: names.Kubernetes, Authorizer: auth.Chain(auth.Superuser(auth.Masters), a)})
	require.NoError(t, err)
	alice, eve := &auth.User{Name: "alice"}, &auth.User{Name: "eve"}
	root := &auth.User{Name: "root", Groups: []string{auth.Masters}}
	secrets := rule(words("get"), words(""), words("secrets"))
	many := func() []any {
		var out []any
		for i := range 400 {
			out = append(out, fmt.Sprint("x", i))
		}
		return out
	}()
	selector := map[string]any{"clusterRoleSelectors": []any{map[string]any{"matchLabels": map[string]any{}}}}
	made := roleObject()
	made.Tree()["aggregationRule"] = selector
	labelled := roleObject(secrets)
	labelled.Set("b", "metadata", "labels", "a")
	collected := roleObject(secrets)
	collected.Set([]any{"f"}, "metadata", "finalizers")
	put := request(eve, "roles", "ns", roleObject(secrets), nil)
	post := request(eve, "roles", "ns", roleObject(secrets), nil)
	post.Verb = "create"
	tests := []struct {
		name string
		q    *admission.Request
		code int
	}{
		{"own rights", request(alice, "roles", "ns", roleObject(cm), nil), 0},
		{"a part of them", request(alice, "roles", "ns", roleObject(rule(words("list"), words(""), words("configmaps"), "a")), nil), 0},
		{"parts of two rules", request(alice, "roles", "ns", roleObject(rule(words("get"), words(""), words("configmaps", "pods"), "p1")), nil), 0},
		{"no rules", request(alice, "roles", "ns", roleObject(), nil), 0},
		{"empty rule", request(alice, "roles", "ns", roleObject(map[string]any{"verbs": words("get")}), nil), 0},
		{"subresource by */", request(alice, "roles", "ns", roleObject(rule(words("get"), words("apps"), words("deployments/status", "*/status"))), nil), 0},
		{"another resource", request(alice, "roles", "ns", roleObject(secrets), nil), 403},
		{"own and another", request(alice, "roles", "ns", roleObject(cm, secrets), nil), 403},
		{"another verb", request(alice, "roles", "ns", roleObject(rule(words("get", "delete"), words(""), words("configmaps"))), nil), 403},
		{"another group", request(alice, "roles", "ns", roleObject(rule(words("get"), words("apps"), words("configmaps"))), nil), 403},
		{"all verbs", request(alice, "roles", "ns", roleObject(rule(words("*"), words(""), words("configmaps"))), nil), 403},
		{"all groups", request(alice, "roles", "ns", roleObject(rule(words("get"), words("*"), words("configmaps"))), nil), 403},
		{"all resources", request(alice, "roles", "ns", roleObject(rule(words("get"), words(""), words("*"))), nil), 403},
		{"names dropped", request(alice, "roles", "ns", roleObject(rule(words("get"), words(""), words("pods"))), nil), 403},
		{"another name", request(alice, "roles", "ns", roleObject(rule(words("get"), words(""), words("pods"), "p1", "p3")), nil), 403},
		{"the same in a wider scope", request(alice, "clusterroles", "", roleObject(cm), nil), 403},
		{"path below", request(alice, "clusterroles", "", roleObject(map[string]any{"verbs": words("get"), "nonResourceURLs": words("/a/b", "/a/b/*")}), nil), 0},
		{"path above", request(alice, "clusterroles", "", roleObject(map[string]any{"verbs": words("get"), "nonResourceURLs": words("/a*")}), nil), 403},
		{"too many combinations", request(alice, "roles", "ns", roleObject(map[string]any{"verbs": many, "apiGroups": many, "resources": many}), nil), 403},
		{"aggregation", request(alice, "clusterroles", "", made, nil), 403},
		{"aggregation taken away", request(alice, "clusterroles", "", roleObject(), made), 403},
		{"update that adds", request(alice, "roles", "ns", roleObject(cm, secrets), roleObject(cm)), 403},
		{"update that shrinks", request(alice, "roles", "ns", roleObject(cm), roleObject(cm, secrets)), 0},
		{"label on a stronger role", request(alice, "roles", "ns", labelled, roleObject(secrets)), 403},
		{"nothing changed", request(alice, "roles", "ns", roleObject(secrets), roleObject(secrets)), 0},
		{"finalizer alone", request(alice, "roles", "ns", collected, roleObject(secrets)), 0},
		{"anonymous", request(nil, "roles", "ns", roleObject(cm), nil), 403},
		{"master", request(root, "clusterroles", "", made, nil), 0},
		{"bind own", request(alice, "rolebindings", "ns", bindingObject("Role", "own"), nil), 0},
		{"bind stronger", request(alice, "rolebindings", "ns", bindingObject("Role", "strong"), nil), 403},
		{"bind cluster role", request(alice, "rolebindings", "ns", bindingObject("ClusterRole", "cluster-strong"), nil), 403},
		{"bind missing", request(alice, "rolebindings", "ns", bindingObject("Role", "missing"), nil), 404},
		{"bind missing by right", request(eve, "rolebindings", "ns", bindingObject("Role", "later"), nil), 0},
		{"bind by right", request(eve, "rolebindings", "ns", bindingObject("Role", "strong"), nil), 0},
		{"bind another by right", request(eve, "rolebindings", "ns", bindingObject("Role", "own"), nil), 403},
		{"bind cluster-wide", request(eve, "clusterrolebindings", "", bindingObject("ClusterRole", "cluster-strong"), nil), 403},
		{"bind missing as master", request(root, "rolebindings", "ns", bindingObject("Role", "missing"), nil), 0},
		{"escalate by name", put, 0},
		{"escalate by name on POST", post, 403},
		{"escalate elsewhere", request(eve, "roles", "other", roleObject(secrets), nil), 403},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, phase := range []func(context.Context, *admission.Request) error{p.Mutate, p.Validate} {
				err := phase(context.Background(), tt.q)
				if tt.code == 0 {
					require.NoError(t, err)
					continue
				}
				var st *meta.Status
				require.ErrorAs(t, err, &st)
				assert.Equal(t, tt.code, st.Code)
				assert.Equal(t, tt.q.Resource.Resource, st.Details.Kind)
			}
		})
	}
}

func TestReconcileRestores(t *testing.T) {
	s, ctx := newStore(t), context.Background()
	require.NoError(t, rbac.Reconcile(ctx, s, names.Kubernetes))
	admin, err := s.Get(ctx, res("clusterroles"), meta.Key{Name: "cluster-admin"})
	require.NoError(t, err)
	assert.Equal(t, "rbac-defaults", admin.Labels()["kubernetes.io/bootstrapping"])
	assert.Equal(t, "true", admin.Annotation("rbac.authorization.kubernetes.io/autoupdate"))

	before := s.Writes()
	require.NoError(t, rbac.Reconcile(ctx, s, names.Kubernetes))
	assert.Equal(t, before, s.Writes(), "a second run changes nothing")

	change := func(resource, name string, f func(o *meta.Object)) {
		_, err := s.Update(ctx, res(resource), meta.Key{Name: name}, "", func(o *meta.Object) error { f(o); return nil })
		require.NoError(t, err)
	}
	extra := rule(words("get"), words("x"), words("y"))
	change("clusterroles", "system:basic-user", func(o *meta.Object) { o.Tree()["rules"] = []any{extra} })
	change("clusterroles", "system:discovery", func(o *meta.Object) {
		o.Tree()["rules"] = []any{}
		o.Set("false", "metadata", "annotations", "rbac.authorization.kubernetes.io/autoupdate")
	})
	change("clusterrolebindings", "system:basic-user", func(o *meta.Object) { o.Tree()["subjects"] = []any{user("me")} })
	change("clusterrolebindings", "system:discovery", func(o *meta.Object) { o.Set("view", "roleRef", "name") })
	require.NoError(t, rbac.Reconcile(ctx, s, names.Kubernetes))

	a := rbac.New(s, names.Kubernetes)
	u := &auth.User{Name: "u", Groups: []string{auth.Authenticated}}
	assert.True(t, can(t, a, auth.Attributes{User: u, Verb: "create", Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}))
	assert.True(t, can(t, a, auth.Attributes{User: &auth.User{Name: "me"}, Verb: "get", Group: "x", Resource: "y"}), "additions stay")
	assert.False(t, can(t, a, auth.Attributes{User: u, Verb: "get", Path: "/apis"}), "autoupdate=false is skipped")
	b, err := s.Get(ctx, res("clusterrolebindings"), meta.Key{Name: "system:discovery"})
	require.NoError(t, err)
	assert.Equal(t, "system:discovery", b.String("roleRef", "name"), "a binding to another role is replaced")
}

// TestDefaultRolesPermit checks rights that the default roles permit and lack.
func TestDefaultRolesPermit(t *testing.T) {
	for _, p := range []names.Profile{names.Kubernetes, names.Orch} {
		t.Run(p.String(), func(t *testing.T) { defaultRoles(t, p) })
	}
}

// TestDefaultObjectsUseNamesOfProfile checks that no default role, binding, subject
// or Lease has a name of the other profile.
func TestDefaultObjectsUseNamesOfProfile(t *testing.T) {
	for p, word := range map[names.Profile]string{names.Orch: "orch", names.Kubernetes: "kube"} {
		s, ctx := newStore(t), context.Background()
		require.NoError(t, rbac.Reconcile(ctx, s, p))
		var found []string
		for _, plural := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
			list, err := s.List(ctx, meta.GroupResource{Group: p.Group(wellknown.GroupRBAC), Resource: plural}, "")
			require.NoError(t, err)
			require.NotEmpty(t, list)
			for _, o := range list {
				found = append(found, o.Name())
				if text := fmt.Sprint(o.Tree()); p == names.Orch {
					assert.NotContains(t, text, "kube-", plural)
					assert.NotContains(t, text, "kubernetes", plural)
				} else {
					assert.NotContains(t, text, "orch", plural)
				}
			}
		}
		for _, name := range []string{"scheduler", "controller-manager", "dns", "aggregator"} {
			assert.Contains(t, found, "system:"+word+"-"+name)
		}
		assert.Contains(t, found, "system::leader-locking-"+word+"-scheduler")
	}
}

func defaultRoles(t *testing.T, p names.Profile) {
	s, ctx := newStore(t), context.Background()
	require.NoError(t, rbac.Reconcile(ctx, s, p))
	require.NoError(t, rbac.Aggregate(ctx, s, p))
	g := p.Group(wellknown.GroupRBAC)
	for _, role := range []string{"admin", "edit", "view"} {
		_, err := s.Create(ctx, meta.GroupResource{Group: g, Resource: "rolebindings"}, meta.NewObject(map[string]any{
			"metadata": map[string]any{"name": role, "namespace": "ns"},
			"roleRef":  map[string]any{"apiGroup": g, "kind": "ClusterRole", "name": role},
			"subjects": []any{map[string]any{"kind": "User", "apiGroup": g, "name": role}}}))
		require.NoError(t, err)
	}
	a := rbac.New(s, p)
	tests := []struct {
		verb, group, resource string
		admin, edit, view     bool
	}{
		{"get", "", "pods", true, true, true},
		{"get", "", "namespaces", true, true, true},
		{"create", "", "pods", true, true, false},
		{"get", "", "secrets", true, true, false},
		{"create", "apps", "deployments", true, true, false},
		{"list", p.Group(wellknown.GroupEvents), "events", true, true, true},
		{"create", p.Group(wellknown.GroupEvents), "events", true, true, false},
		{"get", g, "roles", true, false, false},
		{"create", g, "rolebindings", true, false, false},
		{"create", "", "resourcequotas", false, false, false},
		{"update", "", "namespaces", false, false, false},
		{"create", "", "endpoints", false, false, false},
		{"escalate", g, "roles", false, false, false},
		{"impersonate", "", "serviceaccounts", true, true, false},
		{"get", "", "nodes", false, false, false},
	}
	for _, tt := range tests {
		for name, want := range map[string]bool{"admin": tt.admin, "edit": tt.edit, "view": tt.view} {
			action := auth.Attributes{User: &auth.User{Name: name}, Verb: tt.verb, Group: tt.group, Resource: tt.resource, Namespace: "ns"}
			assert.Equal(t, want, can(t, a, action), "%s %s.%s as %s", tt.verb, tt.resource, tt.group, name)
		}
	}
	scheduler := auth.Attributes{User: &auth.User{Name: p.Wire(wellknown.UserScheduler)}, Verb: "create", Group: p.Group(wellknown.GroupCoordination), Resource: "leases"}
	assert.True(t, can(t, a, scheduler))
	scheduler.Verb = "delete"
	assert.False(t, can(t, a, scheduler))
	root := &auth.User{Name: "x", Groups: []string{auth.Masters}}
	assert.True(t, can(t, a, auth.Attributes{User: root, Verb: "any", Group: "any", Resource: "any"}))
	anonymous := &auth.User{Name: auth.Anonymous, Groups: []string{auth.Unauthenticated}}
	for path, want := range map[string]bool{"/healthz": true, "/version": true, "/livez": true, "/metrics": false, "/apis": false, "/": false} {
		assert.Equal(t, want, can(t, a, auth.Attributes{User: anonymous, Verb: "get", Path: path}), path)
	}
}

func TestAggregatorFollowsChanges(t *testing.T) {
	var a *rbac.Authorizer
	w := servertest.New(t, func(b *server.Builder) {
		a = rbac.New(b.Client(), b.Names)
		b.Controllers = append(b.Controllers, rbac.Aggregator(b.Client(), b.Names))
	})
	ctx := context.Background()
	require.NoError(t, rbac.Reconcile(ctx, w.Objects(), names.Kubernetes))
	part := meta.NewObject(map[string]any{"apiVersion": group + "/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "mine",
		"labels": map[string]any{"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
		"rules": []any{rule(words("get"), words("mine.example"), words("things"))}})
	_, err := w.Objects().Create(ctx, res("clusterroles"), part)
	require.NoError(t, err)
	binding := bindingObject("ClusterRole", "admin") // view is part of edit, edit of admin
	binding.SetGVK(meta.GroupVersionKind{Group: group, Version: "v1", Kind: "RoleBinding"})
	binding.SetNamespace("default")
	binding.Tree()["subjects"] = []any{user("boss")}
	_, err = w.Objects().Create(ctx, res("rolebindings"), binding)
	require.NoError(t, err)
	w.Settle()
	get := auth.Attributes{User: &auth.User{Name: "boss"}, Verb: "get", Group: "mine.example", Resource: "things", Namespace: "default"}
	assert.True(t, can(t, a, get))
	require.NoError(t, w.Objects().Delete(ctx, res("clusterroles"), meta.Key{Name: "mine"}, registry.DeleteOptions{}))
	w.Settle()
	assert.False(t, can(t, a, get), "the rules of the deleted role are removed")
}
