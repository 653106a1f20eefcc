package matcher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/features"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

// object returns the object of a YAML text.
func object(t *testing.T, text string) *meta.Object {
	t.Helper()
	tree := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree))
	return meta.NewObject(tree)
}

// server returns the context of a server with the namespaces prod and test, each with the label env of its name.
func server(t *testing.T) *admission.PluginContext {
	gates, err := features.New("", nil)
	require.NoError(t, err)
	c := &testclient.Client{}
	for _, name := range []string{"prod", "test"} {
		c.Put("namespaces", map[string]any{"metadata": map[string]any{"name": name, "labels": map[string]any{"env": name}}})
	}
	return &admission.PluginContext{
		Names: names.Kubernetes, Client: c, Features: gates,
		Type: func(r meta.GroupResource) *registry.Type {
			if r == (meta.GroupResource{Resource: "namespaces"}) {
				return &registry.Type{}
			}
			return nil
		},
	}
}

// create returns a create of the lamp "desk" in a namespace, by v1. The lamps have the version v2, too.
func create(t *testing.T, namespace string, labels string) *matcher.Request {
	versions := []meta.GroupVersion{{Group: "example.com", Version: "v2"}, {Group: "example.com", Version: "v1"}}
	resource := meta.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"}
	return &matcher.Request{Request: &admission.Request{
		Operation: admission.Create, Resource: resource, RequestResource: resource, Namespace: namespace, Name: "desk", Server: server(t),
		Type:   &registry.Type{AllVersions: versions, ServedVersions: versions},
		Object: object(t, "metadata: {labels: "+labels+"}"),
	}}
}

const rules = "rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [lamps]}]\n"

func TestConstraintsMatch(t *testing.T) {
	clusterScoped := func(r *matcher.Request) { r.Namespace = "" }
	update := func(old string) func(*matcher.Request) {
		return func(r *matcher.Request) {
			r.Operation, r.Old = admission.Update, object(t, "metadata: {labels: "+old+"}")
		}
	}
	everyVersion := "rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]\n"
	for _, c := range []struct {
		name, constraints string
		change            func(*matcher.Request)
		want              bool
	}{
		{"rule", rules, nil, true},
		{"no rules", "matchPolicy: Exact", nil, false},
		{"another operation", rules, update("{}"), false},
		{"another subresource", rules, func(r *matcher.Request) { r.Subresource = "status" }, false},
		{"name", "rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [lamps], resourceNames: [desk]}]", nil, true},
		{"another name", "rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [lamps], resourceNames: [hall]}]", nil, false},
		{"excluded", rules + "excluded: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [lamps]}]", nil, false},
		{"another resource is excluded", rules + "excluded: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v1], resources: [chairs]}]", nil, true},
		{"excluded by another version", rules + "excluded: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [v2], resources: [lamps]}]", nil, false},

		{"namespace selector", rules + "namespaceSelector: {matchLabels: {env: prod}}", nil, true},
		{"another namespace", rules + "namespaceSelector: {matchLabels: {env: test}}", nil, false},
		{"empty namespace selector", rules + "namespaceSelector: {}", nil, true},
		{"namespace selector, cluster-scoped object", rules + "namespaceSelector: {matchLabels: {env: test}}", clusterScoped, true},

		{"object selector", rules + "objectSelector: {matchLabels: {color: red}}", nil, true},
		{"other labels", rules + "objectSelector: {matchLabels: {color: blue}}", nil, false},
		{"empty object selector", rules + "objectSelector: {}", nil, true},
		{"absent label", rules + "objectSelector: {matchExpressions: [{key: size, operator: DoesNotExist}]}", nil, true},
		{"labels before the update", everyVersion + "objectSelector: {matchLabels: {color: blue}}", update("{color: blue}"), true},
		{"labels after the update", everyVersion + "objectSelector: {matchLabels: {color: red}}", update("{color: blue}"), true},
		{"neither labels", everyVersion + "objectSelector: {matchLabels: {color: green}}", update("{color: blue}"), false},
		{"an object without metadata", rules + "objectSelector: {matchExpressions: [{key: size, operator: DoesNotExist}]}",
			func(r *matcher.Request) { r.Object = meta.NewObject(map[string]any{}) }, false},
	} {
		r := create(t, "prod", "{color: red}")
		if c.change != nil {
			c.change(r)
		}
		constraints, err := matcher.New(object(t, c.constraints), "rules", "excluded")
		require.NoError(t, err, c.name)
		_, ok, err := constraints.Match(t.Context(), r)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, ok, c.name)
	}
}

// TestMatchPolicy checks which version of the object a webhook or policy sees.
func TestMatchPolicy(t *testing.T) {
	v1, v2 := meta.GroupVersion{Group: "example.com", Version: "v1"}, meta.GroupVersion{Group: "example.com", Version: "v2"}
	rule := func(versions string) string {
		return "rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: [" + versions + "], resources: [lamps]}]\n"
	}
	for _, c := range []struct {
		constraints string
		want        meta.GroupVersion
		ok          bool
	}{
		{rule("v1"), v1, true},
		{rule("v2"), v2, true},
		{rule("v2, v1"), v1, true}, // the version of the request comes first
		{rule("v3"), v1, false},
		{rule("v1") + "matchPolicy: Exact", v1, true},
		{rule("v2") + "matchPolicy: Exact", v1, false},
	} {
		constraints, err := matcher.New(object(t, c.constraints), "rules", "excluded")
		require.NoError(t, err)
		version, ok, err := constraints.Match(t.Context(), create(t, "prod", "{}"))
		require.NoError(t, err)
		assert.Equal(t, c.ok, ok, c.constraints)
		assert.Equal(t, c.want, version, c.constraints)
	}
}

// TestConstraintsWithoutRules checks that only OrAll makes them match every resource.
func TestConstraintsWithoutRules(t *testing.T) {
	for _, text := range []string{"{}", "namespaceSelector: {matchLabels: {env: test}}"} {
		constraints, err := matcher.New(object(t, text), "rules", "excluded")
		require.NoError(t, err)
		_, ok, err := constraints.Match(t.Context(), create(t, "prod", "{}"))
		require.NoError(t, err)
		assert.False(t, ok)
		constraints.OrAll()
		_, ok, err = constraints.Match(t.Context(), create(t, "prod", "{}"))
		require.NoError(t, err)
		assert.Equal(t, text == "{}", ok, text)
	}
}

// TestSelectorErrors checks that a selector that cannot be read is reported and does not select everything.
func TestSelectorErrors(t *testing.T) {
	for _, field := range []string{"namespaceSelector", "objectSelector"} {
		_, err := matcher.New(object(t, rules+field+": {matchExpressions: [{key: a, operator: Like}]}"), "rules", "excluded")
		assert.ErrorContains(t, err, field)
	}
}

// TestNamespaceErrorsEndTheRequest checks a namespace that cannot be read, and one that does not exist.
func TestNamespaceErrorsEndTheRequest(t *testing.T) {
	constraints, err := matcher.New(object(t, rules+"namespaceSelector: {matchLabels: {env: prod}}"), "rules", "excluded")
	require.NoError(t, err)
	r := create(t, "gone", "{}")
	_, ok, err := constraints.Match(t.Context(), r)
	assert.True(t, meta.IsNotFound(err), err)
	assert.False(t, ok)
	boom := errors.New("boom")
	r.Server.Client.(*testclient.Client).Fail(boom)
	_, ok, err = constraints.Match(t.Context(), r)
	assert.ErrorIs(t, err, boom)
	assert.False(t, ok)
}

// TestNamespaceOfAWrite checks that a namespace is selected by the labels that it gets, and by its stored ones for a
// request to a subresource.
func TestNamespaceOfAWrite(t *testing.T) {
	r := create(t, "", "{}")
	r.Resource = meta.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	r.Name, r.Object = "prod", object(t, "metadata: {name: prod, labels: {env: new}}")
	for sub, want := range map[string]string{"": "new", "finalize": "prod"} {
		r.Subresource = sub
		namespace, err := r.NamespaceObject(t.Context())
		require.NoError(t, err)
		assert.Equal(t, want, namespace.Labels()["env"], sub)
	}
	r.Resource.Resource, r.Name = "nodes", "n1"
	namespace, err := r.NamespaceObject(t.Context())
	require.NoError(t, err)
	assert.Nil(t, namespace)
}

// TestViewsFollowTheObject checks that a view shows the object as it was at the first See or the last Changed.
func TestViewsFollowTheObject(t *testing.T) {
	r, v1 := create(t, "prod", "{}"), meta.GroupVersion{Group: "example.com", Version: "v1"}
	first, err := r.See(t.Context(), v1)
	require.NoError(t, err)
	again, err := r.See(t.Context(), v1)
	require.NoError(t, err)
	assert.Same(t, first, again)
	r.Object = object(t, "spec: {lit: true}")
	r.Changed()
	changed, err := r.See(t.Context(), v1)
	require.NoError(t, err)
	assert.Same(t, r.Object, changed.Object)
}

func TestAllConditionsMustBeTrue(t *testing.T) {
	env := func() (*cel.RequestEnv, error) {
		return cel.NewRequestEnv(names.Kubernetes, cel.Sees{Asks: true})
	}
	r := create(t, "prod", "{color: red}")
	r.User = &auth.User{Name: "alice"}
	view, err := r.See(t.Context(), meta.GroupVersion{Group: "example.com", Version: "v1"})
	require.NoError(t, err)
	isRed, isBlue := "object.metadata.labels.color == 'red'", "object.metadata.labels.color == 'blue'"
	fails, invalid := "object.nothing == 1", "1 +"
	for _, c := range []struct {
		expressions []string
		want        bool
		err         string
	}{
		{nil, true, ""},
		{[]string{isRed}, true, ""},
		{[]string{isRed, isBlue}, false, ""},
		{[]string{fails}, false, "resulted in error"},
		{[]string{isRed, fails}, false, "resulted in error"},
		{[]string{invalid}, false, "compilation error"},
		{[]string{invalid, isRed}, false, "compilation error"},
		{[]string{fails, isBlue}, false, ""}, // a condition that is false decides, whatever the others are
		{[]string{invalid, isBlue}, false, ""},
	} {
		list := []any{}
		for _, text := range c.expressions {
			list = append(list, map[string]any{"name": "n", "expression": text})
		}
		conditions := matcher.NewConditions(env, meta.NewObject(map[string]any{"matchConditions": list}))
		ok, err := conditions.Match(t.Context(), r, view)
		assert.Equal(t, c.want, ok, c.expressions)
		if c.err == "" {
			assert.NoError(t, err, c.expressions)
		} else {
			assert.ErrorContains(t, err, c.err, c.expressions)
		}
		assert.Equal(t, len(list) == 0, conditions.Empty())
	}
}

// TestConditionsAllowOnlyWhatTheAuthorizerAllows checks each decision of the authorizer in an expression.
func TestConditionsAllowOnlyWhatTheAuthorizerAllows(t *testing.T) {
	env := func() (*cel.RequestEnv, error) {
		return cel.NewRequestEnv(names.Kubernetes, cel.Sees{Asks: true})
	}
	conditions := matcher.NewConditions(env, object(t, "matchConditions: [{name: n, expression: \"authorizer.path('/x').check('get').allowed()\"}]"))
	for _, decision := range []auth.Decision{auth.NoOpinion, auth.Allow, auth.Deny} {
		r := create(t, "prod", "{}")
		r.Server.Authorizer = auth.AuthorizerFunc(func(context.Context, auth.Attributes) (auth.Decision, string, error) {
			return decision, "", nil
		})
		view, err := r.See(t.Context(), meta.GroupVersion{Group: "example.com", Version: "v1"})
		require.NoError(t, err)
		ok, err := conditions.Match(t.Context(), r, view)
		require.NoError(t, err)
		assert.Equal(t, decision == auth.Allow, ok, decision)
	}
}

// TestExemptRequestsAreNeverMatched checks the requests that no policy and no webhook can refuse.
func TestExemptRequestsAreNeverMatched(t *testing.T) {
	for _, c := range []struct {
		group, resource    string
		policies, webhooks bool
	}{
		{"admissionregistration.k8s.io", "validatingadmissionpolicies", true, true},
		{"admissionregistration.k8s.io", "validatingadmissionpolicybindings", true, true},
		{"admissionregistration.k8s.io", "mutatingadmissionpolicies", true, true},
		{"admissionregistration.k8s.io", "mutatingadmissionpolicybindings", true, true},
		{"admissionregistration.k8s.io", "validatingwebhookconfigurations", false, true},
		{"admissionregistration.k8s.io", "mutatingwebhookconfigurations", false, true},
		{"authorization.k8s.io", "subjectaccessreviews", true, true},
		{"authentication.k8s.io", "tokenreviews", true, true},
		{"example.com", "validatingadmissionpolicies", false, false},
		{"", "pods", false, false},
	} {
		r := create(t, "", "{}")
		r.Resource = meta.GroupVersionResource{Group: c.group, Version: "v1", Resource: c.resource}
		assert.Equal(t, c.policies, matcher.ExemptFromPolicies(r.Request), c.resource)
		assert.Equal(t, c.webhooks, matcher.ExemptFromWebhooks(r.Request), c.resource)
	}
}
