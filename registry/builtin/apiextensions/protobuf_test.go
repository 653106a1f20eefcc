package apiextensions_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
)

func TestDefinitionsHaveAProtobufForm(t *testing.T) {
	v := compiled(t, names.Orch)
	require.NotNil(t, v.Proto())
	for name, schema := range map[string]string{
		"boolean": `"additionalProperties":true`, "map": `"additionalProperties":{"type":"string","default":"x","enum":["x",{"y":1}]}`,
		"items": `"items":{"type":"string","x-orch-int-or-string":true}`, "list": `"items":[{"type":"string"},{"maxLength":3}]`, "not": `"additionalProperties":false`,
	} {
		o := definition(t, v, nil, `"type":"array"`, `"type":"array",`+schema)
		back, err := v.Proto().Decode(v.Proto().Append(nil, o.Tree()), codec.Limits{})
		require.NoError(t, err)
		want, err := json.Marshal(o.Map("spec"))
		require.NoError(t, err)
		got, err := json.Marshal(back["spec"])
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got), name)
	}
}
