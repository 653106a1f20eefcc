package server_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestLongKeys: a key as long as a body may hold stands in the path of all below
// it, and is told with none of their faults.
func TestLongKeys(t *testing.T) {
	s, _ := newTough(t)
	a := inProcess(t, s)
	widgets := widgetDefinition(`{"m":{"type":"object","additionalProperties":{"type":"object","properties":{"l":{"type":"array","items":{"type":"integer"}},"x":{"type":"integer"}}}},"a":{"type":"string"}}`)
	must(t, s, 201, "POST", crdPath, widgets)
	s.Settle()
	long := strings.Repeat("k", 1<<20)
	times := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	widget := func(below string) string { return definedWidget("x", `{"m":{"`+long+`":{`+below+`}}}`) }
	property := func(below string) string { return strings.Replace(widgets, `"a":{`, `"`+long+`":{`+below+`},"a":{`, 1) }
	const apply = definedPath + "/x?fieldManager=m&dryRun=All"
	for name, c := range map[string]struct {
		method, path, body string
		codes              []int
	}{
		"duplicates":             {"POST", definedPath + "?dryRun=All", widget(times(2000, `"x":1`)), []int{201}},
		"unknown":                {"POST", definedPath + "?dryRun=All", widget(many(2000, `"y%d":1`)), []int{201}},
		"values":                 {"POST", definedPath + "?dryRun=All", widget(`"l":[` + times(2000, `"a"`) + `]`), []int{422}},
		"applied values":         {"PATCH", apply, widget(`"l":[` + times(2000, `"a"`) + `]`), []int{413, 422}},
		"some applied values":    {"PATCH", apply, widget(`"l":["a","b"]`), []int{422}},
		"applied unknown":        {"PATCH", apply, widget(many(2000, `"y%d":1`)), []int{413, 422}},
		"fields of a definition": {"POST", crdPath + "?dryRun=All", property(times(2000, `"z":1`)), []int{422}},
		"values of a definition": {"POST", crdPath + "?dryRun=All", property(`"required":[` + times(2000, `1`) + `]`), []int{400}},
		"types of a definition":  {"POST", crdPath + "?dryRun=All", property(`"type":"object","properties":{` + many(2000, `"y%d":{"type":"z"}`) + `}`), []int{422}},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := a.do(c.method, c.path, c.body, "Content-Type", map[string]string{"POST": "application/json", "PATCH": "application/apply-patch+yaml"}[c.method])
			runtime.ReadMemStats(&after)
			assert.Contains(t, c.codes, got.code, "%.300s", got.raw)
			if got.code >= 400 {
				assert.Less(t, len(got.raw), 2<<20)
			}
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200<<20))
		})
	}
}

// TestColumnsAreBounded: columns that show the whole object make no row many
// times as large.
func TestColumnsAreBounded(t *testing.T) {
	s, _ := newTough(t)
	a := inProcess(t, s)
	columns := func(n int) string {
		return strings.Replace(widgetDefinition(`{"a":{"type":"string"}}`), `"selectableFields"`,
			`"additionalPrinterColumns":[`+strings.TrimSuffix(strings.Repeat(`{"name":"a","type":"string","jsonPath":".spec"},`, n), ",")+`],"selectableFields"`, 1)
	}
	refused(t, a.do("POST", crdPath, columns(129)), "columns")
	must(t, s, 201, "POST", crdPath, columns(128))
	s.Settle()
	a.must(201, "POST", definedPath, definedWidget("x", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`))
	got := a.must(200, "GET", definedPath, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	assert.Less(t, len(got.raw), 4<<20)
}
