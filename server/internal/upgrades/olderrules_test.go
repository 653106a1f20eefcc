package upgrades_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
)

// The validation rules of versions that later releases do not serve.

func TestV1beta1DefinitionsRejectConflictingSettings(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	const path = "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions"
	definition := func(spec string) string {
		return `{"metadata":{"name":"as.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"as","kind":"A"},` + spec + `}}`
	}
	version := func(name, more string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t%s}`, name, name == "v1", more)
	}
	const schema, other = `{"openAPIV3Schema":{"type":"object"}}`, `{"openAPIV3Schema":{"type":"object","description":"other"}}`
	const status, columns = `{"status":{}}`, `[{"name":"x","type":"string","JSONPath":".x"}]`
	for name, c := range map[string]struct{ spec, field, message string }{
		"another first version": {`"version":"v2","versions":[` + version("v1", "") + `]`,
			"spec.version", `Invalid value: "v2": must match the first version in spec.versions`},
		"schemas": {`"validation":` + schema + `,"versions":[` + version("v1", `,"schema":`+schema) + `,` + version("v2", "") + `]`,
			"spec.validation", "Forbidden: top-level and per-version schemas are mutually exclusive"},
		"subresources": {`"subresources":` + status + `,"versions":[` + version("v1", `,"subresources":`+status) + `,` + version("v2", "") + `]`,
			"spec.subresources", "Forbidden: top-level and per-version subresources are mutually exclusive"},
		"columns": {`"additionalPrinterColumns":` + columns + `,"versions":[` + version("v1", `,"additionalPrinterColumns":`+columns) + `,` + version("v2", "") + `]`,
			"spec.additionalPrinterColumns", "Forbidden: top-level and per-version additionalPrinterColumns are mutually exclusive"},
		"same schemas": {`"versions":[` + version("v1", `,"schema":`+schema) + `,` + version("v2", `,"schema":`+schema) + `]`,
			"spec.versions", "per-version schemas may not all be set to identical values (top-level validation should be used instead)"},
		"same subresources": {`"versions":[` + version("v1", `,"subresources":`+status) + `]`,
			"spec.versions", "per-version subresources may not all be set to identical values (top-level subresources should be used instead)"},
		"same columns": {`"versions":[` + version("v1", `,"additionalPrinterColumns":`+columns) + `]`,
			"spec.versions", "per-version additionalPrinterColumns may not all be set to identical values (top-level additionalPrinterColumns should be used instead)"},
	} {
		got := a.Must(422, "POST", path, definition(c.spec))
		causes := apitest.Nested(got.Body, "details", "causes").([]any)
		if assert.Len(t, causes, 1, name) {
			assert.Equal(t, c.field, apitest.NestedString(causes[0], "field"), name)
			assert.Contains(t, apitest.NestedString(causes[0], "message"), c.message, name)
		}
	}
	a.Must(201, "POST", path, definition(`"version":"v1","validation":`+schema+`,"versions":[`+version("v1", "")+`,`+version("v2", "")+`]`))
	a.Must(422, "PATCH", path+"/as.example.com", `{"spec":{"version":"v2"}}`)
	a.Must(422, "PATCH", path+"/as.example.com", `{"spec":{"versions":[`+version("v1", `,"schema":`+schema)+`]}}`)
	a.Must(200, "PATCH", path+"/as.example.com", `{"spec":{"validation":null,"versions":[`+version("v1", `,"schema":`+schema)+`,`+version("v2", `,"schema":`+other)+`]}}`)
	a.Must(200, "PATCH", strings.Replace(path, "v1beta1", "v1", 1)+"/as.example.com", `{"metadata":{"labels":{"a":"b"}}}`)
	a.Must(200, "PATCH", path+"/as.example.com", `{"metadata":{"labels":{"a":"c"}}}`)
}

// TestTopologyLimitAppliesToStoredFields: the limit applies to the topology as it is stored, in
// which zone and node are fields.
func TestTopologyLimitAppliesToStoredFields(t *testing.T) {
	t.Parallel()
	a := apitest.NewInRelease(t, "1.21")
	const path = "/apis/discovery.k8s.io/v1beta1/namespaces/default/endpointslices"
	slice := func(name, node string, words int, more ...string) string {
		for i := range words {
			more = append(more, fmt.Sprintf(`"example.com/w%d":"x"`, i))
		}
		return `{"metadata":{"name":"` + name + `"},"addressType":"IPv4","endpoints":[{"addresses":["10.1.2.3"],"topology":{` + strings.Join(more, ",") + `}` + node + `}]}`
	}
	const zone, host, node = `"topology.kubernetes.io/zone":"z"`, `"kubernetes.io/hostname":"n"`, `,"nodeName":"n"`
	a.Must(201, "POST", path, slice("a", node, 16))
	a.Must(201, "POST", path, slice("b", node, 16, zone, host))
	a.Must(201, "POST", path, slice("c", "", 15, zone, host))
	got := a.Must(422, "POST", path, slice("d", "", 16, host))
	assert.Contains(t, string(got.Raw), `endpoints[0].deprecatedTopology: Too many: 17: must have at most 16 items`)
	a.Must(422, "POST", path, slice("d", `,"nodeName":"other"`, 16, host))
	a.Must(422, "POST", path, slice("d", node, 17))

	shown := a.Must(200, "GET", path+"/b", nil)
	assert.Len(t, apitest.Nested(shown.Body, "endpoints").([]any)[0].(map[string]any)["topology"], 18)
	a.Must(200, "PUT", path+"/b", shown.Body)
	a.Must(200, "PATCH", path+"/b", `{"metadata":{"labels":{"a":"b"}}}`)
}
