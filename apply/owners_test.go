package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
)

func TestExtractReturnsTheAppliedFields(t *testing.T) {
	a := deployments(t)
	const mine = `{"metadata":{"name":"d","namespace":"n"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"app","image":"i:1"}]}}}}`
	a.apply("m", mine)
	a.apply("n", `{"metadata":{"name":"d"},"spec":{"template":{"spec":{"containers":[{"name":"app","imagePullPolicy":"Always"},{"name":"side"}]}}}}`)
	a.merge("u", `{"spec":{"revisionHistoryLimit":3}}`)

	got, err := a.manager.Extract(a.live, "m", "")
	require.NoError(t, err)
	want := a.body(mine)
	assert.JSONEq(t, encoded(want.Tree()), encoded(got.Tree()))
	require.NoError(t, a.tryApply(a.write("m"), encoded(got.Tree())), "an extracted object can be applied again")

	got, err = a.manager.Extract(a.live, "n", "")
	require.NoError(t, err)
	assert.Equal(t, []any{map[string]any{"name": "app", "imagePullPolicy": "Always"}, map[string]any{"name": "side"}}, got.List("spec", "template", "spec", "containers"))

	for _, none := range []string{"u", "nobody"} { // u owns a field by Update
		got, err = a.manager.Extract(a.live, none, "")
		require.NoError(t, err)
		assert.JSONEq(t, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d","namespace":"n"}}`, encoded(got.Tree()))
	}

	broken := a.live.Clone()
	broken.Set([]any{"broken"}, "metadata", "managedFields")
	_, err = a.manager.Extract(broken, "m", "")
	assert.Error(t, err)

	only := NewFieldManager(Config{Versions: []Version{{APIVersion: "apps/v2"}}})
	_, err = only.Extract(a.live, "m", "")
	assert.ErrorContains(t, err, `extracting the fields of manager "m": unknown apiVersion "apps/v1"`)
}

func TestOwnersListsPaths(t *testing.T) {
	a := deployments(t)
	a.apply("m", `{"metadata":{"name":"d","finalizers":["x/y"]},"spec":{"template":{"spec":{"containers":[{"name":"app","image":"i:1"}]}}}}`)
	a.merge("u", `{"spec":{"replicas":1}}`)
	owners, err := Owners(a.live)
	require.NoError(t, err)
	require.Len(t, owners, 2)
	assert.Equal(t, Owner{Manager: "m", Operation: "Apply", APIVersion: "apps/v1", Time: owners[0].Time, Paths: []string{
		`.metadata.finalizers[="x/y"]`,
		`.spec.template.spec.containers[name="app"]`, `.spec.template.spec.containers[name="app"].image`, `.spec.template.spec.containers[name="app"].name`,
	}}, owners[0])
	assert.Equal(t, []string{".spec.replicas"}, owners[1].Paths)
	assert.Equal(t, a.now, owners[1].Time)

	chain := strings.Repeat(`{"f:`+strings.Repeat("x", 1000)+`":`, 400) + `{` + strings.TrimSuffix(strings.Repeat(`"f:a":{},`, 1), ",")
	for i := range 300 {
		chain += `,"f:` + strings.Repeat("y", i+1) + `":{}`
	}
	chain += strings.Repeat("}", 401)
	_, err = Owners(a.body(`{"metadata":{"managedFields":[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":` + chain + `}]}}`))
	assert.ErrorContains(t, err, "bytes")
}

func TestConflictErrorHasManagersAndPaths(t *testing.T) {
	a := configMaps(t)
	a.apply("m", `{"data":{"a":"1"}}`)
	a.merge("u", `{"data":{"b":"1"}}`)
	err := a.tryApply(a.write("n"), `{"data":{"a":"2","b":"2"}}`)
	var conflict *ConflictError
	require.True(t, errors.As(err, &conflict))
	assert.Equal(t, []Conflict{
		{Manager: "m", Operation: "Apply", APIVersion: "v1", Path: ".data.a"},
		{Manager: "u", Operation: "Update", APIVersion: "v1", Path: ".data.b"},
	}, conflict.Conflicts)
	s := statusOf(t, err)
	assert.Equal(t, 409, s.Code)
	assert.Equal(t, conflict.Error(), s.Message)
	assert.True(t, meta.IsConflict(err))
}

func TestUpgradeManagedFields(t *testing.T) {
	a := configMaps(t)
	const clientSide = "kubectl-client-side-apply"
	body := `{"metadata":{"name":"a","annotations":{"` + lastAppliedName + `":"{}"}},"data":{"a":"1","b":"1"}}`
	a.put(clientSide, body)
	a.merge("u", `{"data":{"c":"1"}}`)
	managers, err := ClientSideManagers(a.live, lastAppliedName)
	require.NoError(t, err)
	require.Equal(t, []string{clientSide}, managers)

	before := a.live.Clone()
	upgraded, err := UpgradeManagedFields(a.live, "kubectl", managers...)
	require.NoError(t, err)
	require.Equal(t, before, a.live)
	a.live = upgraded
	const annotation = `"f:metadata":{"f:annotations":{".":{},"f:` + lastAppliedName + `":{}}}`
	a.want("data", `{"a":"1","b":"1","c":"1"}`,
		`kubectl Apply v1 {"f:data":{".":{},"f:a":{},"f:b":{}},`+annotation+`}`, `u Update v1 {"f:data":{"f:c":{}}}`)

	// The fields that the manager stops applying go: without the upgrade the old entry keeps them.
	a.apply("kubectl", `{"data":{"a":"1"}}`)
	a.want("data", `{"a":"1","c":"1"}`, `kubectl Apply v1 {"f:data":{"f:a":{}}}`, `u Update v1 {"f:data":{"f:c":{}}}`)

	again, err := UpgradeManagedFields(a.live, "kubectl", clientSide)
	require.NoError(t, err)
	assert.True(t, meta.Equal(a.live.Tree(), again.Tree()), "nothing to upgrade")
}
