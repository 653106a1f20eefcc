package rbac_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin/rbac"
	"orch.io/controlplane/registry/internal/kindtest"
)

const group = "rbac.authorization.k8s.io"

func kind(t *testing.T, name string) kindtest.Kind {
	return kindtest.Of(t, names.Kubernetes, rbac.Kinds(), name)
}

func ExampleKinds() {
	for _, k := range rbac.Kinds() {
		t, _ := resource.Compile(k, names.Orch)
		fmt.Println(t.GroupResource(), t.Namespaced)
	}
	// Output:
	// roles.rbac.authorization.orch.io true
	// clusterroles.rbac.authorization.orch.io false
	// rolebindings.rbac.authorization.orch.io true
	// clusterrolebindings.rbac.authorization.orch.io false
}

func TestRoles(t *testing.T) {
	for _, c := range []struct {
		kind, body string
		want       []string
	}{
		{"Role", `{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":[]}]}`, []string{"Required:rules[0].verbs"}},
		{"Role", `{"rules":[{"apiGroups":[""],"verbs":["get"]}]}`, []string{"Required:rules[0].resources"}},
		{"Role", `{"rules":[{"resources":["pods"],"verbs":["get"]}]}`, []string{"Required:rules[0].apiGroups"}},
		{"Role", `{"rules":[{"nonResourceURLs":["/healthz"],"verbs":["get"]}]}`, []string{"Invalid:rules[0].nonResourceURLs"}},
		{"Role", `{"rules":[{"nonResourceURLs":["/x"],"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`, []string{"Invalid:rules[0].nonResourceURLs", "Invalid:rules[0].nonResourceURLs"}},
		{"Role", `{"rules":[{},{"apiGroups":[""],"verbs":[""]}]}`, []string{"Required:rules[0].verbs", "Required:rules[0].apiGroups", "Required:rules[0].resources", "Required:rules[1].resources"}},
		{"Role", `{"metadata":{"name":"a/b"}}`, []string{"Invalid:metadata.name"}},
		{"Role", `{"metadata":{"name":"a%b"}}`, []string{"Invalid:metadata.name"}},
		{"Role", `{"metadata":{"name":"Team A:Readers"},"rules":[]}`, []string{}},
		{"ClusterRole", `{"rules":[{"nonResourceURLs":["/healthz"],"verbs":["get"]}]}`, []string{}},
		{"ClusterRole", `{"aggregationRule":{}}`, []string{"Required:aggregationRule.clusterRoleSelectors"}},
		{"ClusterRole", `{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a b":"c"}}]}}`, []string{"Invalid:aggregationRule.clusterRoleSelectors[0].matchLabels", "Invalid:aggregationRule.clusterRoleSelectors[0]"}},
	} {
		_, got := kind(t, c.kind).Create(t, c.body)
		require.Equal(t, c.want, got, c.body)
	}
	obj, _ := kind(t, "Role").Create(t, `{"rules":[]}`)
	require.Contains(t, obj.Tree(), "rules")
	require.Nil(t, obj.Tree()["rules"])
}

func TestBindings(t *testing.T) {
	const ref = `"roleRef":{"apiGroup":"` + group + `","kind":"Role","name":"r"}`
	k := kind(t, "RoleBinding")
	for body, want := range map[string][]string{
		`{"roleRef":{"apiGroup":"` + group + `","kind":"Pod","name":"r"}}`: {"NotSupported:roleRef.kind"},
		`{"roleRef":{"apiGroup":"apps","kind":"Role","name":"r"}}`:         {"NotSupported:roleRef.apiGroup"},
		`{"roleRef":{"kind":"Role","name":""}}`:                            {"Required:roleRef.name"},
		`{"roleRef":{"kind":"Role","name":"a/b"}}`:                         {"Invalid:roleRef.name"},
		`{}`: {"NotSupported:roleRef.kind", "Required:roleRef.name"},
		`{` + ref + `,"subjects":[{"kind":"Robot","name":"x"}]}`:                                     {"NotSupported:subjects[0].kind"},
		`{` + ref + `,"subjects":[{"kind":"User","apiGroup":"v1","name":"x"}]}`:                      {"NotSupported:subjects[0].apiGroup"},
		`{` + ref + `,"subjects":[{"kind":"Group","name":""}]}`:                                      {"Required:subjects[0].name"},
		`{` + ref + `,"subjects":[{"kind":"ServiceAccount","apiGroup":"` + group + `","name":"x"}]}`: {"NotSupported:subjects[0].apiGroup"},
		`{` + ref + `,"subjects":[{"kind":"ServiceAccount","name":"Bad_Name"}]}`:                     {"Invalid:subjects[0].name"},
		`{` + ref + `,"subjects":[{"kind":"ServiceAccount","name":"x"}]}`:                            {},
	} {
		_, got := k.Create(t, body)
		require.Equal(t, want, got, body)
	}
	obj, faults := k.Create(t, `{"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"User","name":"u"},{"kind":"ServiceAccount","name":"s"}]}`)
	require.Empty(t, faults)
	require.Equal(t, group, obj.String("roleRef", "apiGroup"))
	require.Equal(t, []any{map[string]any{"kind": "User", "apiGroup": group, "name": "u"}, map[string]any{"kind": "ServiceAccount", "name": "s"}}, obj.List("subjects"))
	_, faults = k.Update(t, obj, `{"roleRef":{"name":"r2"}}`, "")
	require.Equal(t, []string{"Invalid:roleRef"}, faults)
	_, faults = k.Update(t, obj, `{"subjects":null}`, "")
	require.Empty(t, faults)

	cluster := kind(t, "ClusterRoleBinding")
	_, faults = cluster.Create(t, `{"roleRef":{"kind":"Role","name":"r"},"subjects":[{"kind":"ServiceAccount","name":"x"}]}`)
	require.Equal(t, []string{"NotSupported:roleRef.kind", "Required:subjects[0].namespace"}, faults)
}
