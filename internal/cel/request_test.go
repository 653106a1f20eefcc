package cel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/cel/library"
)

func TestRequestExpressions(t *testing.T) {
	env, err := cel.NewRequestEnv(names.Kubernetes, cel.Sees{Params: true, Namespace: true, Asks: true, Variables: true})
	require.NoError(t, err)
	require.NoError(t, env.Variable("most", "int(params.data.most)"))
	require.NoError(t, env.Variable("fine", "object.spec.replicas <= variables.most"))
	require.Error(t, env.Variable("wrong", "nothing"))
	object := meta.NewObject(parse(t, "{metadata: {name: x, labels: {a: b}}, spec: {replicas: 3}}"))
	object.Map("metadata")["managedFields"] = []any{map[string]any{"manager": "me", "fieldsV1": meta.RawJSON(`{"f:spec":{}}`)}}
	r := &cel.Request{
		Object: object,
		Params: meta.NewObject(parse(t, "{data: {most: '5'}}")), Namespace: meta.NewObject(parse(t, "{metadata: {name: default}}")),
		About:  parse(t, "{operation: CREATE, options: {kind: CreateOptions, fieldManager: me}, userInfo: {username: jane, groups: [devs]}, resource: {group: apps, version: v1, resource: deployments}, dryRun: false}"),
		Action: library.Action{User: &meta.User{Name: "jane"}, Group: "apps", Resource: "deployments", Namespace: "default"},
		Ask: func(a library.Action) (bool, string, error) {
			if a.Verb == "create" && a.Resource == "deployments" {
				return true, "", nil
			}
			return false, "", nil
		},
	}
	for _, test := range []struct{ text, fault string }{
		{`object.spec.replicas <= int(params.data.most) && oldObject == null`, ""},
		{`request.operation == 'CREATE' && 'devs' in request.userInfo.groups && request.resource.resource == 'deployments'`, ""},
		{`namespaceObject.metadata.name == 'default' && object.metadata.labels.a == 'b'`, ""},
		{`authorizer.requestResource.check('create').allowed() && !authorizer.group('').resource('pods').check('get').allowed()`, ""},
		{`request.options.fieldManager == 'me' && request.options.kind == 'CreateOptions' && !has(request.options.dryRun)`, ""},
		{`object == object && object.metadata.managedFields[0].fieldsV1 == {'f:spec': {}}`, ""},
		{`variables.fine && variables.most == 5`, ""},
		{`variables.wrong == 1`, "undeclared reference to 'nothing'"},
		{`variables.other`, "undefined field 'other'"},
		{`request.name`, "must evaluate to bool"},
		{`request.nothing == 1`, "undefined field 'nothing'"},
		{`object.spec.nothing == 1`, "no such key: nothing"},
	} {
		p, err := env.Compile(test.text, cel.Boolean)
		var ok bool
		if left := int64(cel.ConditionsCost); err == nil {
			ok, err = p.True(t.Context(), env.Vars(t.Context(), r, &left), &left)
			assert.Less(t, left, int64(cel.ConditionsCost))
		}
		if test.fault != "" {
			assert.ErrorContains(t, err, test.fault)
			continue
		}
		assert.NoError(t, err, test.text)
		assert.True(t, ok, test.text)
	}
}

func TestRecursiveVariables(t *testing.T) {
	for _, test := range []struct {
		name      string
		variables []string
		want      string
	}{
		{"itself", []string{"dyn(variables).v0"}, "it depends on itself"},
		{"one another", []string{"dyn(variables).v1", "dyn(variables).v0"}, "it depends on itself"},
		{"a short chain", slices.Concat([]string{"true"}, chain(100)), ""},
		{"a long chain", slices.Concat([]string{"true"}, chain(900)), "more than 200 levels deep"},
	} {
		t.Run(test.name, func(t *testing.T) {
			env, err := cel.NewRequestEnv(names.Kubernetes, cel.Sees{Variables: true})
			require.NoError(t, err)
			for i, text := range test.variables {
				require.NoError(t, env.Variable(fmt.Sprintf("v%d", i), text))
			}
			p, err := env.Compile(fmt.Sprintf("dyn(variables).v%d == true", len(test.variables)-1), cel.Boolean)
			require.NoError(t, err)
			left := int64(cel.ObjectCost)
			ok, err := p.True(t.Context(), env.Vars(t.Context(), &cel.Request{}, &left), &left)
			if test.want == "" {
				assert.NoError(t, err)
				assert.True(t, ok)
				return
			}
			assert.ErrorContains(t, err, test.want)
		})
	}
}

// chain returns n variables, each of which uses the one before.
func chain(n int) (texts []string) {
	for i := range n {
		texts = append(texts, fmt.Sprintf("variables.v%d", i))
	}
	return texts
}

// TestConstructedObjectsAreBounded: the size of a constructed object is limited, because an
// expression can use the same value many times.
func TestConstructedObjectsAreBounded(t *testing.T) {
	t.Parallel()
	env, err := cel.NewRequestEnv(names.Kubernetes, cel.Sees{Makes: true})
	require.NoError(t, err)
	many := make([]any, 1000)
	for i := range many {
		many[i] = "item"
	}
	object := meta.NewObject(map[string]any{
		"big": strings.Repeat("x", 10_000), "raw": meta.RawJSON(`["` + strings.Repeat("x", 10_000) + `"]`), "many": many,
		"names": map[string]any{strings.Repeat("x", 10_000): true},
	})
	tree := func(value string) error {
		p, err := env.Compile(`Object{x: `+value+`}`, cel.Configuration)
		require.NoError(t, err)
		left := int64(cel.ObjectCost)
		made, err := p.Make(t.Context(), env.Vars(t.Context(), &cel.Request{Object: object}, &left), &left)
		require.NoError(t, err)
		_, err = made.Tree()
		return err
	}
	for _, once := range []string{"object.big", "object.raw", "object.names", "{object.big: 1}", "bytes(object.big)", "Object.x{y: object.big}", "[object.big]"} {
		assert.NoError(t, tree(once))
		assert.ErrorContains(t, tree("object.many.map(i, "+once+")"), "the value is too large", once)
	}
	assert.ErrorContains(t, tree("object.many.map(i, object.many).map(l, dyn([l, l]))"), "the value is too large")
}
