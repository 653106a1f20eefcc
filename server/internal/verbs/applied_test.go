package verbs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// definedKind creates a definition of a namespaced kind in example.com with the given versions.
func definedKind(a *apitest.Client, kind, versions string) {
	a.T.Helper()
	plural := strings.ToLower(kind) + "s"
	a.Must(201, "POST", apitest.DefinitionsPath, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.example.com"},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":%q,"kind":%q},"versions":[%s]}}`, plural, plural, kind, versions))
	a.AwaitEstablished(plural + ".example.com")
}

const appliedKind = `{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
	"spec":{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"string","nullable":true},"d":{"type":"string","default":"D"},"e":{"type":"string","enum":["x"]},
		"o":{"type":"object","properties":{"x":{"type":"string"}}}}},
	"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"in":{"type":"object","properties":{"x":{"type":"string"}}},
		"list":{"type":"array","items":{"type":"object","properties":{"x":{"type":"string"}}}},"map":{"type":"object","additionalProperties":{"type":"object","properties":{"x":{"type":"string"}}}}}},
	"status":{"type":"object","properties":{"ancestors":{"type":"array","items":{"type":"object"}},"p":{"type":"string","pattern":"^a"},
		"addresses":{"type":"array","items":{"type":"object","properties":{"value":{"type":"string","minLength":2}}}},
		"any":{"type":"object","anyOf":[{"required":["x"]}],"properties":{"x":{"type":"string"}}}}}}}}}`

// TestAppliedNulls: a manager owns the nulls that it applies. A null that is not valid for its field is refused
// together with all other violations. Parts of the object that the endpoint does not write are not checked.
func TestAppliedNulls(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	definedKind(a, "Applied", appliedKind)
	const path = "/apis/example.com/v1/namespaces/default/applieds"
	body := func(rest string) string {
		return `{"apiVersion":"example.com/v1","kind":"Applied","metadata":{"name":"a"}` + rest + `}`
	}
	const null = `Invalid value: "null": `
	for _, c := range []struct {
		endpoint, sends string
		code            int
		want            []string
	}{
		{"", `,"spec":null`, 422, []string{"spec: " + null + `spec in body must be of type object: "null"`}},
		{"", `,"spec":{"a":null,"e":"y"}`, 422, []string{"spec.a: " + null + `spec.a in body must be of type string: "null"`, `spec.e: Unsupported value: "y": supported values: "x"`}},
		{"", `,"spec":{"n":null,"d":null}`, 201, nil},
		{"", `,"spec":{"a":"x"},"status":{"ancestors":null}`, 201, nil},
		{"", `,"spec":{"a":"x"},"status":null`, 201, nil},
		{"/status", `,"status":{"ancestors":null}`, 422, []string{"status.ancestors: " + null + `ancestors in body must be of type array: "null"`}},
		{"/status", `,"spec":{"a":null},"status":{"p":"a"}`, 200, nil},
		{"/status", `,"status":null`, 200, nil},
	} {
		if c.endpoint != "" {
			a.Must(201, "POST", path, body(""))
		}
		got := a.Must(c.code, "PATCH", path+"/a"+c.endpoint+"?fieldManager=m", body(c.sends), "Content-Type", apitest.ApplyPatch)
		assert.ElementsMatch(t, c.want, causesIn(got), "%s %s", c.endpoint, c.sends)
		a.Do("DELETE", path+"/a", nil)
	}
	a.Must(201, "PATCH", path+"/a?fieldManager=one", body(`,"spec":{"o":{"x":"y"}}`), "Content-Type", apitest.ApplyPatch)
	kept := a.Must(200, "PATCH", path+"/a?fieldManager=two", body(`,"spec":{"o":null}`), "Content-Type", apitest.ApplyPatch)
	assert.Equal(t, "y", apitest.Nested(kept.Body, "spec", "o", "x"), "a null does not remove fields of other managers")
}

// causesIn returns the causes of a failure as "field: message".
func causesIn(got apitest.Response) (out []string) {
	causes, _ := apitest.Nested(got.Body, "details", "causes").([]any)
	for _, c := range causes {
		out = append(out, apitest.NestedString(c, "field")+": "+apitest.NestedString(c, "message"))
	}
	return out
}

// TestStatusViolationsHavePathsBelowStatus: violations in a status update have paths relative to the status, as
// clients of definitions expect.
func TestStatusViolationsHavePathsBelowStatus(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	definedKind(a, "Applied", appliedKind)
	const path = "/apis/example.com/v1/namespaces/default/applieds"
	a.Must(201, "POST", path, `{"apiVersion":"example.com/v1","kind":"Applied","metadata":{"name":"a"}}`)
	for status, want := range map[string]string{
		`{"addresses":[{"value":"a"}]}`: `status.addresses[0].value: Invalid value: "a": addresses[0].value in body should be at least 2 chars long`,
		`{"addresses":[{"value":5}]}`:   `status.addresses[0].value: Invalid value: "integer": addresses[0].value in body must be of type string: "integer"`,
		`{"p":"status.p in body"}`:      `status.p: Invalid value: "status.p in body": p in body should match '^a'`,
		`{"ancestors":{}}`:              `status.ancestors: Invalid value: "object": ancestors in body must be of type array: "object"`,
		`5`:                             `status: Invalid value: "integer":  in body must be of type object: "integer"`,
		`{"any":{}}`:                    `status: Invalid value: "": "any" must validate at least one schema (anyOf)`,
	} {
		got := a.Must(422, "PATCH", path+"/a/status", `{"status":`+status+`}`)
		assert.Contains(t, causesIn(got), want, status)
	}
}

// TestApplyBelowAPreservingNode: fields below a node that preserves unknown fields can be applied, whatever deeper
// nodes declare. Fields that deeper schemas prune are pruned.
func TestApplyBelowAPreservingNode(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	definedKind(a, "Applied", appliedKind)
	const path = "/apis/example.com/v1/namespaces/default/applieds/a"
	apply := func(code int, manager, rest string) apitest.Response {
		t.Helper()
		return a.Must(code, "PATCH", path+"?fieldManager="+manager, `{"apiVersion":"example.com/v1","kind":"Applied","metadata":{"name":"a"},`+rest+`}`, "Content-Type", apitest.ApplyPatch)
	}
	const free = `"free":{"any":{"thing":1},"in":{"x":"1","zz":2},"list":[{"x":"1","zz":2}],"map":{"k":{"x":"1","zz":{"deep":2}}}}`
	got := apply(201, "m", free)
	assert.Equal(t, map[string]any{"any": map[string]any{"thing": 1.0}, "in": map[string]any{"x": "1"},
		"list": []any{map[string]any{"x": "1"}}, "map": map[string]any{"k": map[string]any{"x": "1"}}}, got.Body["free"])
	assert.Contains(t, string(got.Raw), `"f:in":{"f:x":{},"f:zz":{}}`)
	apply(200, "m", `"free":{"in":{"x":"2"}}`)

	refused := apply(422, "m", `"spec":{"zz":1}`)
	assert.Contains(t, apitest.NestedString(refused.Body, "message"), ".spec.zz: field not declared in schema")
	details, _ := refused.Body["details"].(map[string]any)
	assert.Equal(t, []any{"a", "example.com", "Applied"}, []any{details["name"], details["group"], details["kind"]})
	apply(422, "m", `"free":{"in":{"x":5}}`)
}

// TestApplyThatCreatesHasName: an apply that creates an object must have its name. An apply with a uid refers to an
// existing object.
func TestApplyThatCreatesHasName(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	definedKind(a, "Applied", appliedKind)
	for path, head := range map[string]string{
		apitest.ConfigMapsPath:                             `"apiVersion":"v1","kind":"ConfigMap"`,
		"/apis/example.com/v1/namespaces/default/applieds": `"apiVersion":"example.com/v1","kind":"Applied"`,
	} {
		apply := func(code int, metadata string) string {
			t.Helper()
			got := a.Must(code, "PATCH", path+"/a?fieldManager=m", "{"+head+metadata+"}", "Content-Type", apitest.ApplyPatch)
			return apitest.NestedString(got.Body, "message")
		}
		const undeterminable = "the name of the object (a based on URL) was undeterminable: name must be provided"
		for _, metadata := range []string{``, `,"metadata":null`, `,"metadata":{}`, `,"metadata":{"name":null}`, `,"metadata":{"name":""}`, `,"metadata":{"labels":{"a":"b"}}`} {
			assert.Equal(t, undeterminable, apply(400, metadata), metadata)
		}
		assert.Contains(t, apply(409, `,"metadata":{"name":"a","uid":"u"}`), "uid mismatch: the provided object specified uid u, and no existing object was found")
		apply(201, `,"metadata":{"name":"a"}`)
		apply(200, ``)
		apply(200, `,"metadata":{"labels":{"a":"b"}}`)
		assert.Equal(t, undeterminable, apply(400, `,"metadata":{"name":null}`))
	}
}

func TestCreateOverATerminatingObjectSaysSo(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","finalizers":["example.com/f"]}}`
	a.Must(201, "POST", apitest.ConfigMapsPath, body)
	assert.Equal(t, `configmaps "a" already exists`, apitest.NestedString(a.Must(409, "POST", apitest.ConfigMapsPath, body).Body, "message"))
	a.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
	assert.Equal(t, `object is being deleted: configmaps "a" already exists`, apitest.NestedString(a.Must(409, "POST", apitest.ConfigMapsPath, body).Body, "message"))
}

func TestDeprecatedVersionsNameTheirSuccessor(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	version := func(name, rest string) string {
		return fmt.Sprintf(`{"name":%q,"schema":{"openAPIV3Schema":{"type":"object"}}%s}`, name, rest)
	}
	const stored, served, deprecated = `,"served":true,"storage":true`, `,"served":true,"storage":false`, `,"deprecated":true`
	for i, c := range []struct {
		versions string
		name     string
		want     string
	}{
		{version("v1", stored) + "," + version("v1beta1", served+deprecated) + "," + version("v2alpha1", served), "v1beta1", "example.com/v1beta1 %s is deprecated; use example.com/v1 %s"},
		{version("v1", stored+deprecated) + "," + version("v2beta1", served), "v1", "example.com/v1 %s is deprecated"},
		{version("v1alpha1", stored+deprecated) + "," + version("v1", `,"served":false,"storage":false`) + "," + version("v1beta1", served+deprecated), "v1alpha1", "example.com/v1alpha1 %s is deprecated"},
		{version("v1", stored+deprecated+`,"deprecationWarning":"own words"`) + "," + version("v2", served), "v1", "own words"},
	} {
		kind := fmt.Sprintf("Old%d", i)
		definedKind(a, kind, c.versions)
		got := a.Must(200, "GET", "/apis/example.com/"+c.name+"/namespaces/default/"+strings.ToLower(kind)+"s", nil)
		warnings := got.Header.Values("Warning")
		require.Len(t, warnings, 1)
		assert.Equal(t, `299 - "`+strings.ReplaceAll(c.want, "%s", kind)+`"`, warnings[0])
	}
}

// TestInvalidManagedFieldsAreIgnored: if an entry of managedFields has an invalid apiVersion, the owners do not
// change.
func TestInvalidManagedFieldsAreIgnored(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "PATCH", apitest.ConfigMapsPath+"/a?fieldManager=one", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1"}}`, "Content-Type", apitest.ApplyPatch)
	entry := func(apiVersion string) string {
		return `{"manager":"x","operation":"Update","apiVersion":"` + apiVersion + `","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:k":{}}}}`
	}
	for _, list := range []string{entry("a/b/c"), entry("v1") + "," + entry("a/b/c"), entry("/"), entry("a//c")} {
		got := a.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", `{"metadata":{"managedFields":[`+list+`]}}`)
		assert.Contains(t, string(got.Raw), `"manager":"one"`, list)
		assert.NotContains(t, string(got.Raw), `"manager":"x"`, list)
	}
	got := a.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", `{"metadata":{"managedFields":[`+entry("/v1")+`]}}`)
	assert.Contains(t, string(got.Raw), `"apiVersion":"v1"`)
	assert.Contains(t, string(got.Raw), `"manager":"x"`, "/v1 is v1")
	a.Must(201, "POST", apitest.ConfigMapsPath, `{"metadata":{"name":"b","managedFields":[{"manager":"`+strings.Repeat("m", 200)+`","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{}}}]}}`)
}

// TestApplyOverOwnersOfAVersionWithoutTheField: under Kubernetes names, an apply fails as long as a
// manager owns fields in a version that does not declare a stored field of the object. Updates pass.
func TestApplyOverOwnersOfAVersionWithoutTheField(t *testing.T) {
	t.Parallel()
	const mayHave = `"properties":{"a":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"key":{"type":"string"}%s}}}}`
	version := func(name string, stored bool, fields string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object",`+mayHave+`},"status":{"type":"object","properties":{"phase":{"type":"string"}}}}}}}`, name, stored, fields)
	}
	const field = `,"policy":{"type":"string","default":"Ignore"}`
	for name, c := range map[string]struct {
		old, new string
		late     int // code of an apply in the new version
	}{
		"stored in the new version": {version("v1beta1", false, ""), version("v1", true, field), 500},
		"stored in the old version": {version("v1beta1", true, ""), version("v1", false, field), 200},
		"declared in both":          {version("v1beta1", false, field), version("v1", true, field), 200},
	} {
		t.Run(name, func(t *testing.T) {
			a := apitest.InProcess(t, servertest.New(t))
			definedKind(a, "Applied", c.old+","+c.new)
			path := func(version string) string { return "/apis/example.com/" + version + "/namespaces/default/applieds/a" }
			apply := func(code int, version, manager, rest string) apitest.Response {
				t.Helper()
				got := a.Do("PATCH", path(version)+"?force=true&fieldManager="+manager,
					`{"apiVersion":"example.com/`+version+`","kind":"Applied","metadata":{"name":"a"}`+rest+`}`, "Content-Type", apitest.ApplyPatch)
				require.Equal(t, code, got.Code, "%s", got.Raw)
				return got
			}
			const spec = `,"spec":{"list":[{"key":"k"}]}`
			apply(201, "v1beta1", "m", spec)
			a.Must(200, "PATCH", path("v1beta1")+"/status?fieldManager=s", `{"status":{"phase":"x"}}`, "Content-Type", "application/merge-patch+json")
			for _, rest := range []string{spec, `,"spec":{"a":"1"}`, ""} {
				got := apply(c.late, "v1", "m", rest)
				if c.late == 500 {
					assert.Equal(t, ".spec.list[0].policy: field not declared in schema", apitest.NestedString(got.Body, "message"))
					assert.NotContains(t, got.Body, "reason")
				}
			}
			a.Must(200, "PATCH", path("v1"), `{"spec":{"a":"2"}}`, "Content-Type", "application/merge-patch+json")
			apply(200, "v1beta1", "m", spec)

			a.Must(200, "PATCH", path("v1"), `{"metadata":{"managedFields":[{}]}}`, "Content-Type", "application/merge-patch+json")
			apply(200, "v1", "m", spec)
			apply(200, "v1", "m", `,"spec":{"a":"3"}`)
		})
	}
}
