package openapi

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

const foreignLamps = `{"swagger":"2.0","paths":{
	"/apis/other.com/v1/lamps":{"get":{"parameters":[{"$ref":"#/parameters/p"}],"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/com.example.v1.Lamp"}}}}},
	"/apis/other.com/v10/lamps":{"get":{"responses":{}}}},
	"parameters":{"p":{"name":"p","in":"query","type":"string"}},
	"definitions":{
		"com.example.v1.Lamp":{"type":"object","properties":{"next":{"$ref":"#/definitions/com.example.v1.Lamp"},"time":{"$ref":"#/definitions/Bulb"}}},
		"Bulb":{"type":"string","x-kubernetes-group-version-kind":[{"group":"other.com","version":"v1","kind":"Bulb"},{"group":"","version":"v1","kind":"Pod"}]},
		"Unused":{"type":7}}}`

var other = meta.GroupVersion{Group: "other.com", Version: "v1"}

func part(text string) (*Foreign, error) {
	d, err := OpenForeign([]byte(text))
	if err != nil {
		return nil, err
	}
	return d.Part(other, names.Kubernetes)
}

// TestForeignPartIsMerged: the part of another server's document for a group version becomes part of the document. A
// definition whose name is taken is renamed, and so are the references to it.
func TestForeignPartIsMerged(t *testing.T) {
	f, err := part(foreignLamps)
	require.NoError(t, err)
	again, err := part(foreignLamps)
	require.NoError(t, err)
	assert.True(t, f.Equal(again))
	lamp, err := resource.Compile(registry.FromCRD([]byte(lampDefinition)), names.Kubernetes)
	require.NoError(t, err)
	doc := V2([]*resource.Type{lamp}, Info{Title: "t", Version: "v", Names: names.Kubernetes, Others: &Others{V2: []*Foreign{f}}})
	var tree map[string]any
	require.NoError(t, json.Unmarshal(doc.JSON().Bytes(), &tree))
	o := meta.NewObject(tree)
	assert.NotNil(t, o.Map("paths", "/apis/example.com/v1/lamps"))
	assert.Nil(t, o.Map("paths", "/apis/other.com/v10/lamps"))
	get := o.Map("paths", "/apis/other.com/v1/lamps", "get")
	assert.Equal(t, []any{map[string]any{"name": "p", "in": "query", "type": "string"}}, get["parameters"])
	const renamed = "#/definitions/com.example.v1.Lamp_v2"
	assert.Equal(t, renamed, meta.NewObject(get).String("responses", "200", "schema", "$ref"))
	assert.Equal(t, renamed, o.String("definitions", "com.example.v1.Lamp_v2", "properties", "next", "$ref"))
	assert.Nil(t, o.Map("definitions", "Unused"))
	bulb := o.Map("definitions", "Bulb")
	assert.Equal(t, []any{map[string]any{"group": "other.com", "version": "v1", "kind": "Bulb"}}, bulb["x-kubernetes-group-version-kind"])
	assert.NotZero(t, doc.Protobuf().Size())
}

// lamps returns a document whose paths refer to a definition A, with more members.
func lamps(definitions, more string) string {
	return `{"swagger":"2.0","paths":{"/apis/other.com/v1/lamps":{"get":{` + more + `"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/A"}}}}}},
		"definitions":{` + definitions + `}}`
}

// TestUnreadableForeignPartIsRejected: a part that clients could not read is an error. Members that clients ignore
// are dropped.
func TestUnreadableForeignPartIsRejected(t *testing.T) {
	for name, text := range map[string]string{
		"outside":           lamps(`"A":{"$ref":"#/parameters/x"}`, ""),
		"elsewhere":         lamps(`"A":{"properties":{"a":{"$ref":"http://example.com/a.json"}}}`, ""),
		"nothing":           lamps(`"A":{"$ref":"#"}`, ""),
		"dangling":          lamps(`"A":{"items":{"$ref":"#/definitions/B"},"type":"array"}`, ""),
		"dangling deep":     lamps(`"A":{"additionalProperties":{"allOf":[{"$ref":"#/definitions/B"}]}}`, ""),
		"type":              lamps(`"A":{"type":"thing"}`, ""),
		"type deep":         lamps(`"A":{"properties":{"default":{"type":"null"}}}`, ""),
		"file":              lamps(`"A":{"type":"file"}`, ""),
		"types":             lamps(`"A":{"type":["string","integer"]}`, ""),
		"array of nothing":  lamps(`"A":{"type":"array"}`, ""),
		"array of many":     lamps(`"A":{"type":"array","items":[{},{}]}`, ""),
		"response":          `{"swagger":"2.0","paths":{"/apis/other.com/v1/lamps":{"get":{"responses":{"200":{"$ref":"#/responses/a"}}}}}}`,
		"parameter":         lamps(`"A":{}`, `"parameters":[{"$ref":"#/parameters/a"}],`),
		"parameter of none": lamps(`"A":{}`, `"parameters":[{"name":"a"}],`),
		"wide":              lamps(`"A":{"enum":[`+strings.Repeat("[],", 60_000)+`1]}`, ""),
		"many":              `{"swagger":"2.0","definitions":{` + manyDefinitions(foreignEntries+1) + `}}`,
		"no end":            `{"swagger":"2.0"`,
		"version":           `{"swagger":"3.0"}`,
		"deep":              lamps(`"A":{"default":`+strings.Repeat("[", 300)+strings.Repeat("]", 300)+`}`, ""),
	} {
		_, err := part(text)
		assert.Error(t, err, name)
	}
	for name, text := range map[string]string{
		"data":       lamps(`"A":{"default":{"$ref":"x"},"example":{"type":"x"},"x-y":{"$ref":"z"}}`, ""),
		"properties": lamps(`"A":{"properties":{"$ref":{"type":"string"},"type":{"type":"string"},"default":{"$ref":"#/definitions/A"}}}`, ""),
		"unused":     lamps(`"A":{},"B":{"type":"thing"}`, ""),
	} {
		f, err := part(text)
		require.NoError(t, err, name)
		assert.NotZero(t, f.Size(), name)
	}
	f, err := part(`{"swagger":"2.0","paths":{"/apis/other.com/v2/lamps":{}}}`)
	require.NoError(t, err)
	assert.Nil(t, f)
	assert.Zero(t, f.Size())
}

func manyDefinitions(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

// TestForeignMemoryIsBounded: unused members of a large document take no memory, and used members are decoded one at
// a time.
func TestForeignMemoryIsBounded(t *testing.T) {
	const size = 8 << 20
	fill := func(one string) string { return strings.TrimSuffix(strings.Repeat(one+",", size/(len(one)+1)), ",") }
	var used strings.Builder // definitions that all refer to the next
	const definitions = 9000
	for i := range definitions {
		fmt.Fprintf(&used, `"d%d":{"properties":{"a":{"$ref":"#/definitions/d%d"}},"enum":[%s]},`, i, (i+1)%definitions, strings.TrimSuffix(strings.Repeat("[],", 250), ","))
	}
	allocated := func(do func()) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return int(after.TotalAlloc-before.TotalAlloc) >> 20
	}
	for name, c := range map[string]struct {
		text string
		most int // MB, of which garbage is collected meanwhile
	}{
		"unused":   {`{"swagger":"2.0","x":[` + fill("{}") + `],"paths":{}}`, 16},
		"one path": {`{"swagger":"2.0","paths":{"/apis/other.com/v1/lamps":{"x-a":[` + fill("[]") + `]}}}`, 16},
		"names":    {`{"swagger":"2.0","paths":{` + fill(`"/a":{}`) + `}}`, 24},
		"used":     {lamps(`"A":{"$ref":"#/definitions/d0"},`+strings.TrimSuffix(used.String(), ","), ""), 320},
	} {
		var f *Foreign
		read := allocated(func() { f, _ = part(c.text) })
		t.Logf("%s: %d bytes of text, %d MB", name, len(c.text), read)
		assert.LessOrEqual(t, read, c.most, name)
		assert.Equal(t, name == "used", f != nil, name)
		if f == nil {
			continue
		}
		others := &Others{V2: []*Foreign{f, f, f}}
		made := allocated(func() { V2(nil, Info{Title: "t", Version: "v", Names: names.Kubernetes, Others: others}) })
		t.Logf("%s: a document with three of them, %d MB", name, made)
		assert.LessOrEqual(t, made, 160, "texts must not be decoded")
	}
}

// TestV3IsMadeFromForeignV2: a document of version 3 is made for a server that has only version 2.
func TestV3IsMadeFromForeignV2(t *testing.T) {
	f, err := part(`{"swagger":"2.0","paths":{"/apis/other.com/v1/lamps":{
		"parameters":[{"name":"pretty","in":"query","type":"string","uniqueItems":true}],
		"post":{"operationId":"create","consumes":["application/json"],"produces":["application/json","application/yaml"],"x-kubernetes-action":"post",
			"parameters":[{"name":"body","in":"body","required":true,"schema":{"$ref":"#/definitions/Lamp"}}],
			"responses":{"201":{"description":"Created","schema":{"$ref":"#/definitions/Lamp"}}}}}},
		"definitions":{"Lamp":{"type":"object","properties":{"next":{"description":"another","$ref":"#/definitions/Lamp"}},
			"x-kubernetes-group-version-kind":[{"group":"other.com","version":"v1","kind":"Lamp"}]}}}`)
	require.NoError(t, err)
	c := &Cache{}
	state := &resource.State{}
	info := Info{Title: "t", Version: "v", Names: names.Kubernetes, Others: &Others{V2: []*Foreign{f}, V3: map[meta.GroupVersion]*Foreign{other: f}}}
	doc := c.V3(state, other, info)
	require.NotNil(t, doc)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(doc.JSON().Bytes(), &tree))
	o := meta.NewObject(tree)
	const lamp = "#/components/schemas/Lamp"
	path := meta.NewObject(o.Map("paths", "/apis/other.com/v1/lamps"))
	assert.Equal(t, []any{map[string]any{"name": "pretty", "in": "query", "schema": map[string]any{"type": "string", "uniqueItems": true}}}, path.Tree()["parameters"])
	assert.Equal(t, map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": lamp}}}}, path.Map("post", "requestBody"))
	assert.Equal(t, lamp, path.String("post", "responses", "201", "content", "application/yaml", "schema", "$ref"))
	assert.Equal(t, "post", path.String("post", "x-kubernetes-action"))
	assert.Equal(t, map[string]any{"description": "another", "allOf": []any{map[string]any{"$ref": lamp}}}, o.Map("components", "schemas", "Lamp", "properties", "next"))
	assert.NotNil(t, o.Map("components", "schemas", "Lamp")["x-kubernetes-group-version-kind"])
	assert.NotZero(t, doc.Protobuf().Size())
	assert.Contains(t, string(c.Index(state, info).JSON().Bytes()), URL(other, doc.Hash()))
	assert.Same(t, doc, c.V3(state, other, info))
	assert.Nil(t, c.V3(state, other, Info{Names: names.Kubernetes, Others: &Others{}}))
}

// TestForeignBodiesOfPathAreBounded: a short document cannot expand to a long one by repeating a body for many media
// types.
func TestForeignBodiesOfPathAreBounded(t *testing.T) {
	kinds := strings.TrimSuffix(strings.Repeat(`"application/json",`, 2000), ",")
	schema := `{"type":"string","description":"` + strings.Repeat("x", 100_000) + `"}`
	const path = `{"swagger":"2.0","paths":{"/apis/other.com/v1/lamps":{"post":{%s}}}}`
	body := `"parameters":[{"name":"body","in":"body","schema":` + schema + `}],"responses":{}`
	var codes strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&codes, `,"%d":{"description":"","schema":{"type":"string"}}`, i)
	}
	answers := `"responses":{"200":{"description":"OK","schema":` + schema + `}}`
	for name, c := range map[string]struct {
		operation string
		fits      bool
	}{
		"bodies":      {`"consumes":[` + kinds + `],` + body, false},
		"answers":     {`"produces":[` + kinds + `],` + answers, false},
		"many":        {`"produces":[` + kinds + `],"responses":{` + codes.String()[1:] + `}`, false},
		"a few kinds": {`"consumes":["application/json","application/yaml"],"produces":["application/json"],` + body, true},
		"no schema":   {`"produces":[` + kinds + `],"responses":{"200":{"description":"OK"}}`, true},
		"one kind":    {`"produces":["application/json"],"responses":{` + codes.String()[1:] + `}`, true},
	} {
		f, err := part(fmt.Sprintf(path, c.operation))
		assert.Equal(t, c.fits, err == nil, "%s: %v", name, err)
		if err == nil {
			d := foreignV3(f, Info{Title: "t", Version: "v", Names: names.Kubernetes})
			assert.LessOrEqual(t, d.JSON().Size(), maxPath, name)
		}
	}
}

// TestForeignBodiesOfAllPathsAreBounded: the bodies of all paths count together.
func TestForeignBodiesOfAllPathsAreBounded(t *testing.T) {
	many := func(paths int) string {
		var kinds, b strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&kinds, `,"a/%d"`, i)
		}
		for i := range paths {
			fmt.Fprintf(&b, `,"/apis/other.com/v1/lamps%d":{"get":{"produces":[%s],"responses":{"200":{"description":"","schema":{"type":"string","description":"%s"}}}}}`,
				i, kinds.String()[1:], strings.Repeat("x", 900))
		}
		return `{"swagger":"2.0","paths":{` + b.String()[1:] + `}}`
	}
	_, err := part(many(10))
	require.ErrorContains(t, err, "exceed")
	f, err := part(many(5))
	require.NoError(t, err)
	made := foreignV3(f, Info{Title: "t", Version: "v", Names: names.Kubernetes}).JSON().Size()
	assert.Greater(t, made, 4<<20)
	assert.InEpsilon(t, made, f.Size(), 0.05, "the size must be the size of the document of version 3")
}
