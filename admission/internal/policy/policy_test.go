package policy_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/policy"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
)

// objects is a client whose server has policies, their bindings, and the namespaced kind Limit.
type objects struct{ *testclient.Client }

func (objects) Types() []*registry.Type {
	v1 := []meta.GroupVersion{{Group: "example.com", Version: "v1"}}
	list := []*registry.Type{{Group: "example.com", Kind: "Limit", Plural: "limits", Namespaced: true, AllVersions: v1, ServedVersions: v1}}
	for _, plural := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"} {
		list = append(list, &registry.Type{Group: group, Plural: plural})
	}
	return list
}

// put stores an object, given as YAML.
func (o objects) put(t *testing.T, group, resource, text string) {
	t.Helper()
	tree := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &tree), text)
	_, err := o.Create(t.Context(), meta.GroupResource{Group: group, Resource: resource}, meta.NewObject(tree))
	require.NoError(t, err)
}

// plugin is a policy plugin over stored objects.
type plugin struct {
	admission.Plugin
	objects
	server admission.PluginContext
}

func newPlugin(t *testing.T, p admission.Plugin) *plugin {
	w := &plugin{Plugin: p, objects: objects{&testclient.Client{}}}
	w.server = admission.PluginContext{
		Names: names.Kubernetes, Client: w.objects, Metrics: prometheus.NewRegistry(),
		Type: func(meta.GroupResource) *registry.Type { return nil },
	}
	require.NoError(t, w.Setup(&w.Plugin, w.server))
	t.Cleanup(w.Close)
	return w
}

const group = "admissionregistration.k8s.io"

// validating stores a validating policy for config maps with a binding of the same name.
func (p *plugin) validating(t *testing.T, name, spec, binding string) {
	t.Helper()
	p.put(t, group, "validatingadmissionpolicies", `{metadata: {name: `+name+`}, spec: {matchConstraints: {resourceRules: [{apiGroups: [''],
		apiVersions: ['*'], resources: [configmaps], operations: ['*']}]}, `+spec+`}}`)
	p.put(t, group, "validatingadmissionpolicybindings", `{metadata: {name: `+name+`}, spec: {policyName: `+name+`, `+binding+`}}`)
}

// request returns a create of the config map "a" in the namespace "ns", and the list of its warnings.
func (p *plugin) request() (r *admission.Request, warnings *[]string) {
	warnings = &[]string{}
	resource := meta.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	return &admission.Request{
		Operation: admission.Create, Resource: resource, RequestResource: resource, Namespace: "ns", Name: "a", Server: &p.server,
		Object:   meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a", "namespace": "ns"}}),
		Warn:     func(text string) { *warnings = append(*warnings, text) },
		Annotate: func(string, string) {},
	}, warnings
}

// refusal returns the error of the validation as text, empty if the request is admitted, and the warnings.
func (p *plugin) refusal(t *testing.T) (string, []string) {
	t.Helper()
	r, warnings := p.request()
	err := p.Validate(t.Context(), r)
	if err == nil {
		return "", *warnings
	}
	var st *meta.Status
	require.True(t, errors.As(err, &st), err)
	return st.Message, *warnings
}

// TestBindingActionsDecideViolations checks what each action of a binding does after a validation that is
// false, and after one that fails.
func TestBindingActionsDecideViolations(t *testing.T) {
	const isFalse, fails = `validations: [{expression: "false", message: no}]`, `validations: [{expression: object.spec.nothing == 1}]`
	for _, c := range []struct {
		spec, actions string
		denied, warns bool
	}{
		{isFalse, "[Deny]", true, false},
		{isFalse, "[Warn]", false, true},
		{isFalse, "[Audit]", false, false},
		{isFalse, "[Deny, Audit]", true, false},
		{isFalse, "[Warn, Audit]", false, true},
		{`validations: [{expression: "true"}]`, "[Deny, Warn]", false, false},
		{fails, "[Deny]", true, false},
		{fails, "[Warn]", false, true},
		{"failurePolicy: Fail, " + fails, "[Deny]", true, false},
		{"failurePolicy: Ignore, " + fails, "[Deny]", false, false},
		{"failurePolicy: Ignore, " + isFalse, "[Deny]", true, false},
		{`matchConditions: [{name: n, expression: "false"}], ` + isFalse, "[Deny]", false, false},
		{`matchConditions: [{name: n, expression: object.spec.nothing == 1}], ` + isFalse, "[Deny]", true, false},
		{`failurePolicy: Ignore, matchConditions: [{name: n, expression: object.spec.nothing == 1}], ` + isFalse, "[Deny]", false, false},
	} {
		p := newPlugin(t, policy.Validating())
		p.validating(t, "p", c.spec, "validationActions: "+c.actions)
		denied, warnings := p.refusal(t)
		assert.Equal(t, c.denied, denied != "", "%s %s: %s", c.spec, c.actions, denied)
		assert.Equal(t, c.warns, len(warnings) > 0, "%s %s", c.spec, c.actions)
	}
}

// TestTheFirstRefusalByNameIsReturned checks several policies, and several validations of one.
func TestTheFirstRefusalByNameIsReturned(t *testing.T) {
	p := newPlugin(t, policy.Validating())
	for _, name := range []string{"b", "a", "c"} {
		p.validating(t, name, `validations: [{expression: "true"}, {expression: "false", message: first of `+name+`}, {expression: "false", message: second}]`, "validationActions: [Deny]")
	}
	denied, _ := p.refusal(t)
	assert.Contains(t, denied, "ValidatingAdmissionPolicy 'a' with binding 'a' denied request: first of a")
}

// TestExpressionsWithoutBudgetRefuse checks that a policy whose expressions cost too much does not admit.
func TestExpressionsWithoutBudgetRefuse(t *testing.T) {
	long := "'" + strings.Repeat("x", 1000) + "'"
	list := "[" + strings.Repeat("1,", 99) + "1]"
	p := newPlugin(t, policy.Validating())
	p.validating(t, "p", `validations: [{expression: "`+list+`.all(a, `+list+`.all(b, `+list+`.all(c, `+long+`.contains('y') == false)))"}]`, "validationActions: [Deny]")
	denied, _ := p.refusal(t)
	assert.Contains(t, denied, "cost limit")
}

// TestBindingFindsParameters checks which parameter objects a binding finds, and what happens if there are none.
func TestBindingFindsParameters(t *testing.T) {
	const kind = `paramKind: {apiVersion: example.com/v1, kind: Limit}, validations: [{expression: "params.ok == true", messageExpression: string(params.metadata.name)}]`
	for _, c := range []struct {
		ref  string
		want string // the end of the refusal; empty: admitted
	}{
		{"{name: here, parameterNotFoundAction: Deny}", "denied request: here"},
		{"{name: fine, parameterNotFoundAction: Deny}", ""},
		{"{name: there, parameterNotFoundAction: Deny}", "no params found for policy binding with `Deny` parameterNotFoundAction"},
		{"{name: there, parameterNotFoundAction: Allow}", ""},
		{"{name: there, namespace: other, parameterNotFoundAction: Deny}", "denied request: there"},
		{"{selector: {matchLabels: {a: b}}, parameterNotFoundAction: Deny}", "denied request: here"},
		{"{selector: {matchLabels: {a: c}}, parameterNotFoundAction: Deny}", "no params found for policy binding with `Deny` parameterNotFoundAction"},
		{"{selector: {matchLabels: {a: c}}, parameterNotFoundAction: Allow}", ""},
	} {
		p := newPlugin(t, policy.Validating())
		p.put(t, "example.com", "limits", `{metadata: {name: here, namespace: ns, labels: {a: b}}, ok: false}`)
		p.put(t, "example.com", "limits", `{metadata: {name: fine, namespace: ns}, ok: true}`)
		p.put(t, "example.com", "limits", `{metadata: {name: there, namespace: other, labels: {a: c}}, ok: false}`)
		p.validating(t, "p", kind, "validationActions: [Deny], paramRef: "+c.ref)
		denied, _ := p.refusal(t)
		if c.want == "" {
			assert.Empty(t, denied, c.ref)
		} else {
			assert.True(t, strings.HasSuffix(denied, c.want), "%s: %s", c.ref, denied)
		}
	}
}

// TestMutatingPolicies checks when a policy changes an object, and when it refuses the request.
func TestMutatingPolicies(t *testing.T) {
	patch := func(expression string) string {
		return `mutations: [{patchType: JSONPatch, jsonPatch: {expression: "` + expression + `"}}]`
	}
	add := patch(`[JSONPatch{op: 'add', path: '/data', value: {'a': 'b'}}]`)
	for _, c := range []struct {
		name, spec string
		operation  admission.Operation
		changed    bool
		refused    string
	}{
		{"create", add, admission.Create, true, ""},
		{"update", add, admission.Update, true, ""},
		{"connect", add, admission.Connect, true, ""},
		{"delete", add, admission.Delete, false, ""},
		{"a failed test changes nothing", patch(`[JSONPatch{op: 'test', path: '/metadata/name', value: 'b'}, JSONPatch{op: 'add', path: '/data', value: {'a': 'b'}}]`), admission.Create, false, ""},
		{"an error", patch(`[JSONPatch{op: 'remove', path: '/nothing'}]`), admission.Create, false, "JSON Patch"},
		{"an ignored error", "failurePolicy: Ignore, " + patch(`[JSONPatch{op: 'remove', path: '/nothing'}]`), admission.Create, false, ""},
		{"a condition that is false", `matchConditions: [{name: n, expression: "false"}], ` + add, admission.Create, false, ""},
	} {
		p := newPlugin(t, policy.Mutating())
		p.put(t, group, "mutatingadmissionpolicies", `{metadata: {name: p}, spec: {matchConstraints: {resourceRules: [{apiGroups: [''],
			apiVersions: ['*'], resources: [configmaps], operations: ['*']}]}, `+c.spec+`}}`)
		p.put(t, group, "mutatingadmissionpolicybindings", `{metadata: {name: p}, spec: {policyName: p}}`)
		r, _ := p.request()
		r.Operation = c.operation
		err := p.Mutate(t.Context(), r)
		if c.refused == "" {
			assert.NoError(t, err, c.name)
		} else {
			assert.ErrorContains(t, err, c.refused, c.name)
		}
		assert.Equal(t, c.changed, r.Object.Map("data") != nil, c.name)
	}
}
