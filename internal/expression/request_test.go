package expression_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/expression"
	"orch.io/controlplane/internal/expression/library"
)

func TestRequests(t *testing.T) {
	env, err := expression.NewRequestEnv(names.Kubernetes, expression.Sees{Params: true, Namespace: true, Asks: true, Variables: true})
	require.NoError(t, err)
	require.NoError(t, env.Variable("most", "int(params.data.most)"))
	require.NoError(t, env.Variable("fine", "object.spec.replicas <= variables.most"))
	require.Error(t, env.Variable("wrong", "nothing"))
	r := &expression.Request{
		Object: meta.NewObject(parse(t, "{metadata: {name: x, labels: {a: b}}, spec: {replicas: 3}}")),
		Params: meta.NewObject(parse(t, "{data: {most: '5'}}")), Namespace: meta.NewObject(parse(t, "{metadata: {name: default}}")),
		About:  parse(t, "{operation: CREATE, userInfo: {username: jane, groups: [devs]}, resource: {group: apps, version: v1, resource: deployments}, dryRun: false}"),
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
		{`variables.fine && variables.most == 5`, ""},
		{`variables.wrong == 1`, "undeclared reference to 'nothing'"},
		{`variables.other`, "undefined field 'other'"},
		{`request.name`, "must evaluate to bool"},
		{`request.nothing == 1`, "undefined field 'nothing'"},
		{`object.spec.nothing == 1`, "no such key: nothing"},
	} {
		p, err := env.Compile(test.text, expression.Boolean)
		var ok bool
		if left := int64(expression.ConditionsCost); err == nil {
			ok, err = p.True(t.Context(), env.Vars(t.Context(), r, &left), &left)
			assert.Less(t, left, int64(expression.ConditionsCost))
		}
		if test.fault != "" {
			assert.ErrorContains(t, err, test.fault)
			continue
		}
		assert.NoError(t, err, test.text)
		assert.True(t, ok, test.text)
	}
}
