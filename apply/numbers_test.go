package apply

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// near are pairs of different numbers that are equal as float64.
var near = [][2]string{
	{"9007199254740993", "9007199254740992"},
	{"9007199254740993", "9007199254740992.0"},
	{"9223372036854775807", "9223372036854775806"},
	{"9223372036854775807", "9223372036854775808"},
	{"-9223372036854775808", "-9223372036854775808.0"},
	{"4611686018427387904", "4611686018427387904.0"}, // the latter is stored as 4611686018427388000
}

func numbersKind(t *testing.T) *actor {
	n := &schema.Schema{Type: schema.Number}
	item := object(false, fields{"name": text(), "n": n})
	return listKind(t, object(false, fields{
		"n": n, "any": {Preserve: true}, "atomic": atomic(mapOf(n)), "list": listOf(n), "items": keyedList(item, "name", "name"),
	}))
}

func TestNumbersThatDifferConflict(t *testing.T) {
	for _, pair := range near {
		for field, format := range map[string]string{
			"n": "%s", "any": `{"a":[%s]}`, "atomic": `{"a":%s}`, "list": "[1,%s]", "items": `[{"name":"a","n":%s},{"name":"b"}]`,
		} {
			for i := range pair {
				body := func(number string) string {
					return fmt.Sprintf(`{"spec":{%q:%s}}`, field, fmt.Sprintf(format, number))
				}
				a := numbersKind(t)
				a.apply("m", body(pair[i]))
				assert.Len(t, a.conflict("n", body(pair[1-i])), 1, "%s: %s, then %s", field, pair[i], pair[1-i])
				a.apply("same", body(pair[i]))

				before := a.live.Clone()
				a.merge("u", body(pair[1-i]))
				assert.False(t, meta.Equal(before.Map("spec"), a.live.Map("spec")), "%s: %s, then %s", field, pair[i], pair[1-i])
				assert.Contains(t, fmt.Sprint(a.owners()), "u Update", "%s: %s, then %s", field, pair[i], pair[1-i])
			}
		}
	}
}

func TestItemsWithNearKeysAreDifferentItems(t *testing.T) {
	n := &schema.Schema{Type: schema.Number}
	a := listKind(t, object(false, fields{
		"set":  {Type: schema.Array, Items: n, ListType: "set"},
		"keys": keyedList(object(false, fields{"k": n, "v": text()}), "k", "k"),
	}))
	a.put("u", `{"spec":{"set":[9007199254740993],"keys":[{"k":9007199254740993}]}}`)
	a.put("v", `{"metadata":{"uid":"1"},"spec":{"set":[9007199254740993,9007199254740992.0],"keys":[{"k":9007199254740993},{"k":9007199254740992.0}]}}`)
	a.want("spec.set", `[9007199254740993,9007199254740992]`,
		`u Update x.example.com/v1 {"f:spec":{".":{},"f:keys":{".":{},"k:{\"k\":9007199254740993}":{".":{},"f:k":{}}},"f:set":{".":{},"v:9007199254740993":{}}}}`,
		`v Update x.example.com/v1 {"f:spec":{"f:keys":{"k:{\"k\":9007199254740992}":{".":{},"f:k":{}}},"f:set":{"v:9007199254740992":{}}}}`)
}

func TestClientSideAppliedNumbersAreComparedExactly(t *testing.T) {
	a := newActor(t, Config{Kind: "Widget", LastAppliedAnnotation: lastAppliedName, Versions: []Version{{APIVersion: "x/v1", Schema: nil}}})
	a.put("kubectl-client-side-apply", `{"metadata":{"annotations":{"`+lastAppliedName+`":"{\"apiVersion\":\"x/v1\",\"kind\":\"Widget\",\"spec\":{\"n\":9223372036854775808}}"}},"spec":{"n":9223372036854775807}}`)
	assert.Len(t, a.conflict("kubectl", `{"spec":{"n":1}}`), 1, "the annotation has another number than the object")
}

func TestJSONPatchTestsNumbersExactly(t *testing.T) {
	for _, c := range []struct {
		has, test string
		passes    bool
	}{
		{"1", "1", true}, {"1", "1.0", true}, {"1000", "1e3", true}, {"0", "-0", true}, {"0.1", "0.10", true},
		{"9007199254740993", "9007199254740993", true}, {"9007199254740993", "9007199254740993.0", true},
		{"9007199254740993", "9007199254740992", false}, {"9007199254740993", "9007199254740992.0", false},
		{"9223372036854775807", "9223372036854775808", false}, {"-9223372036854775808", "-9223372036854775808.0", true},
		{"18446744073709552000", "18446744073709552000", true}, {"18446744073709552000", "18446744073709551615", false},
		{"18446744073709552000", "18446744073709551616", false},
		{"0.1", "0.1000000000000000055511151231257827", false},
		{"1", `"1"`, false}, {"1", "true", false},
	} {
		for _, format := range []string{`%s`, `{"a":[%s]}`} {
			obj := tree(t, fmt.Sprintf(`{"v":%s}`, fmt.Sprintf(format, c.has)))
			_, err := JSONPatch(obj, fmt.Appendf(nil, `[{"op":"test","path":"/v","value":%s}]`, fmt.Sprintf(format, c.test)), Limits{})
			if c.passes {
				assert.NoError(t, err, "%s and %s", c.has, c.test)
			} else {
				assert.ErrorIs(t, err, ErrTestFailed, "%s and %s", c.has, c.test)
			}
		}
	}
	_, err := JSONPatch(map[string]any{}, []byte(`[{"op":"test","path":"/v","value":1e400}]`), Limits{})
	assert.Equal(t, 422, statusOf(t, err).Code)
}

func TestJSONPatchTestsWhatItAdded(t *testing.T) {
	const add = `{"op":"add","path":"/v","value":{"n":18446744073709551615}}`
	out, err := JSONPatch(map[string]any{}, []byte(`[`+add+`,{"op":"test","path":"/v/n","value":18446744073709551615},{"op":"test","path":"","value":{"v":{"n":1.8446744073709551615e19}}}]`), Limits{})
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"v": map[string]any{"n": float64(1 << 64)}}, out)
	_, err = JSONPatch(map[string]any{}, []byte(`[`+add+`,{"op":"test","path":"/v/n","value":18446744073709551614}]`), Limits{})
	assert.ErrorIs(t, err, ErrTestFailed)
}

func TestStrategicListsOfNearNumbers(t *testing.T) {
	list := &schema.Schema{Type: schema.Array, Items: &schema.Schema{Type: schema.Number}, PatchStrategy: "merge"}
	keyed := keyedList(object(false, fields{"k": numeric(), "v": text()}), "k")
	s := object(false, fields{"l": list, "keyed": keyed})
	for patch, want := range map[string]string{
		`{"l":[9007199254740992.0]}`:                             `{"l":[9007199254740992,9007199254740993,9223372036854775807],"keyed":[{"k":9007199254740993}]}`,
		`{"$deleteFromPrimitiveList/l":[9007199254740992.0]}`:    `{"l":[9007199254740993,9223372036854775807],"keyed":[{"k":9007199254740993}]}`,
		`{"$deleteFromPrimitiveList/l":[9223372036854775808]}`:   `{"l":[9007199254740993,9223372036854775807],"keyed":[{"k":9007199254740993}]}`,
		`{"$deleteFromPrimitiveList/l":[9007199254740993]}`:      `{"l":[9223372036854775807],"keyed":[{"k":9007199254740993}]}`,
		`{"keyed":[{"$patch":"delete","k":9007199254740992.0}]}`: `{"l":[9007199254740993,9223372036854775807],"keyed":[{"k":9007199254740993}]}`,
		`{"keyed":[{"v":"x","k":9007199254740993}]}`:             `{"l":[9007199254740993,9223372036854775807],"keyed":[{"k":9007199254740993,"v":"x"}]}`,
	} {
		got, err := StrategicMerge(tree(t, `{"l":[9007199254740993,9223372036854775807],"keyed":[{"k":9007199254740993}]}`), tree(t, patch), s)
		require.NoError(t, err, patch)
		assert.True(t, meta.Equal(tree(t, want), got), "%s: %v", patch, got)
	}
}
