package openapi

import (
	"encoding/json"
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

// TestForeign: what another server says of a version, and that alone, becomes part of the
// document; a definition whose name is taken gets another one, also where it is meant.
func TestForeign(t *testing.T) {
	gv := meta.GroupVersion{Group: "other.com", Version: "v1"}
	f, err := ReadForeign([]byte(foreignLamps), gv, names.Kubernetes)
	require.NoError(t, err)
	again, err := ReadForeign([]byte(foreignLamps), gv, names.Kubernetes)
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
