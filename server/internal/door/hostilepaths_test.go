package door_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/server/internal/apitest"
)

// TestLongKeyIsNotRepeatedInErrors sends a map key of 1 MiB with thousands of violations below it:
// the errors, whose paths contain the key, stay small.
func TestLongKeyIsNotRepeatedInErrors(t *testing.T) {
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	widgets := apitest.NewWidgetDefinition(`{"m":{"type":"object","additionalProperties":{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}},"x":{"type":"integer"}}}},"a":{"type":"string"}}`)
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, widgets)
	s.Settle()
	long := strings.Repeat("k", 1<<20)
	times := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	widget := func(below string) string { return apitest.NewWidget("x", `{"m":{"`+long+`":{`+below+`}}}`) }
	property := func(below string) string { return strings.Replace(widgets, `"a":{`, `"`+long+`":{`+below+`},"a":{`, 1) }
	const apply = apitest.WidgetsPath + "/x?fieldManager=m&dryRun=All"
	for name, c := range map[string]struct {
		method, path, body string
		codes              []int
	}{
		"duplicates":             {"POST", apitest.WidgetsPath + "?dryRun=All", widget(times(2000, `"x":1`)), []int{201}},
		"unknown":                {"POST", apitest.WidgetsPath + "?dryRun=All", widget(many(2000, `"y%d":1`)), []int{201}},
		"values":                 {"POST", apitest.WidgetsPath + "?dryRun=All", widget(`"l":[` + times(2000, `"a"`) + `]`), []int{422}},
		"applied values":         {"PATCH", apply, widget(`"l":[` + times(2000, `"a"`) + `]`), []int{413, 422}},
		"some applied values":    {"PATCH", apply, widget(`"l":["a","b"]`), []int{422}},
		"applied unknown":        {"PATCH", apply, widget(many(2000, `"y%d":1`)), []int{413, 422}},
		"fields of a definition": {"POST", apitest.DefinitionsPath + "?dryRun=All", property(times(2000, `"z":1`)), []int{422}},
		"values of a definition": {"POST", apitest.DefinitionsPath + "?dryRun=All", property(`"required":[` + times(2000, `1`) + `]`), []int{400}},
		"types of a definition":  {"POST", apitest.DefinitionsPath + "?dryRun=All", property(`"type":"object","properties":{` + many(2000, `"y%d":{"type":"z"}`) + `}`), []int{422}},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := a.Do(c.method, c.path, c.body, "Content-Type", map[string]string{"POST": "application/json", "PATCH": "application/apply-patch+yaml"}[c.method])
			runtime.ReadMemStats(&after)
			assert.Contains(t, c.codes, got.Code, "%.300s", got.Raw)
			if got.Code >= 400 {
				assert.Less(t, len(got.Raw), 2<<20)
			}
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
		})
	}
}

// TestColumnsAreBounded checks that columns that show the whole object do not make a table row many
// times as large.
func TestColumnsAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := apitest.NewErrorFree(t)
	a := apitest.InProcess(t, s)
	columns := func(n int) string {
		return strings.Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`), `"selectableFields"`,
			`"additionalPrinterColumns":[`+strings.TrimSuffix(strings.Repeat(`{"name":"a","type":"string","jsonPath":".spec"},`, n), ",")+`],"selectableFields"`, 1)
	}
	refused(t, a.Do("POST", apitest.DefinitionsPath, columns(129)), "columns")
	apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, columns(128))
	s.Settle()
	a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("x", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`))
	got := a.Must(200, "GET", apitest.WidgetsPath, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	assert.Less(t, len(got.Raw), 4<<20)
}
