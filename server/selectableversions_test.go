package server_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSelectableFieldsOfVersions: without a webhook, too, callers select by the fields that
// their version names, and by no other's.
func TestSelectableFieldsOfVersions(t *testing.T) {
	a := inRelease(t, "")
	const one = `"served":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}}`
	a.must(201, "POST", crdPath, `{"metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[
		{"name":"v1","storage":true,`+one+`,"selectableFields":[{"jsonPath":".spec.a"}]},
		{"name":"v2","storage":false,`+one+`,"selectableFields":[{"jsonPath":".spec.a"},{"jsonPath":".spec.b"}]},
		{"name":"v3","storage":false,`+one+`}]}}`)
	a.established("widgets.example.com")
	a.must(201, "POST", definedPath, definedWidget("x", `{"a":"1","b":"1"}`))
	a.must(201, "POST", definedPath, definedWidget("y", `{"a":"1","b":"2"}`))
	for selector, counts := range map[string]map[string]int{
		"spec.a=1":        {"v1": 2, "v2": 2, "v3": -1},
		"spec.b=1":        {"v1": -1, "v2": 1, "v3": -1},
		"metadata.name=x": {"v1": 1, "v2": 1, "v3": 1},
	} {
		for version, n := range counts {
			path := strings.Replace(definedPath, "v1", version, 1) + "?fieldSelector=" + selector
			if n < 0 {
				got := a.must(400, "GET", path, nil)
				assert.Contains(t, string(got.raw), "field label not supported: spec.", path)
				continue
			}
			assert.Len(t, at(a.must(200, "GET", path, nil).body, "items"), n, path)
		}
	}
}
