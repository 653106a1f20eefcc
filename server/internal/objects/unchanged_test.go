package objects

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/apply"
)

func TestWriteWithoutChangeIsDetected(t *testing.T) {
	live := meta.NewObject(parseTree(t, `{"kind":"K","metadata":{"name":"a","resourceVersion":"1","managedFields":[
		{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}},
		{"manager":"b","operation":"Apply","apiVersion":"v1","time":"2026-01-01T00:00:01Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]},"data":{"a":"1"}}`))
	for change, same := range map[string]bool{
		`{}`:                                    true,
		`{"metadata":{"resourceVersion":"2"}}`:  true,
		`{"metadata":{"resourceVersion":null}}`: true,
		`{"metadata":{"labels":{}}}`:            false,
		`{"metadata":{"name":null}}`:            false,
		`{"metadata":{"managedFields":null}}`:   false,
		`{"data":{"a":"2"}}`:                    false,
		`{"data":null}`:                         false,
		`{"spec":{}}`:                           false,
		`{"metadata":{"managedFields":[
		{"manager":"b","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}},
		{"manager":"a","operation":"Apply","apiVersion":"v1","time":"2027-01-01T00:00:01Z","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]}}`: true,
		`{"metadata":{"managedFields":[
		{"manager":"b","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:b":{}}},
		{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]}}`: false,
	} {
		assert.Equal(t, same, unchanged(live, meta.NewObject(apply.MergePatch(live.Tree(), parseTree(t, change)))), change)
	}
	assert.False(t, unchanged(nil, live))
}

func parseTree(t *testing.T, text string) map[string]any {
	t.Helper()
	v, err := meta.ParseJSON([]byte(text))
	require.NoError(t, err)
	return v.(map[string]any)
}
