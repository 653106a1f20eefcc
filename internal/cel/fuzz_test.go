package cel

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

// FuzzNames: each CEL name stands for one field.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"a", "namespace", "a-b.c/d", "__x__", "___", "__dash__", "-dot-", "__namespace__", "1a", "ä"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		word, ok := escape(name)
		if ok {
			require.Equal(t, name, unescape(word))
			require.Regexp(t, `^[a-zA-Z_][a-zA-Z0-9_]*$`, word)
		}
		unescape(name)
	})
}

// fuzzed is the schema of objects that FuzzRules evaluates a rule for.
const fuzzed = `{"type":"object","properties":{
	"text":{"type":"string"},"number":{"type":"number"},"count":{"type":"integer"},"either":{"x-kubernetes-int-or-string":true},
	"at":{"type":"string","format":"date-time"},"long":{"type":"string","format":"duration"},"raw":{"type":"string","format":"byte"},
	"open":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"words":{"type":"object","additionalProperties":{"type":"string"}},
	"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
	"map":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}},
	"list":{"type":"array","items":{"type":"array","items":{"type":"integer"}}}}}`

// FuzzRules evaluates arbitrary rules for arbitrary objects.
func FuzzRules(f *testing.F) {
	for _, rule := range []string{
		"self == oldSelf", "self.set + self.set == self.set", "self.map + oldSelf.map != self.map", "self.list.all(l, l.distinct() == l)",
		"sets.contains(self.set, oldSelf.set)", "self.text.find('a+') == self.text.replace('', 'b')", "[self.text].join(self.text) != ''",
		"self.at > timestamp('2020-01-01T00:00:00Z')", "self.long < duration('1h')", "self.either == 1 || self.either == 'a'", "self.words.all(k, self.words[k] == k)",
		"url(self.text).getHost() == ''", "quantity(self.text).isGreaterThan(quantity('1'))", "format.dns1123Label().validate(self.text).hasValue()", "'%s %d'.format([self.text, self.count]) == ''",
	} {
		f.Add(rule, []byte(`{"text":"a","count":1,"number":1.5,"either":1,"at":"2021-01-01T00:00:00Z","long":"1d","open":{"x":[null]},"words":{"a":"a"},"set":["a","b"],"map":[{"k":"a"}],"list":[[1,1]]}`), []byte(`{"set":["b","a"],"map":[1,{}],"list":{},"open":{"x":null}}`))
	}
	doc, err := meta.ParseJSON([]byte(fuzzed))
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, rule string, now, old []byte) {
		doc, _ := meta.Clone(doc).(map[string]any)
		doc["x-kubernetes-validations"] = []any{map[string]any{"rule": rule, "message": "broken", "messageExpression": "string(self.count)"}}
		s, faults := schema.OpenAPI(doc, names.Kubernetes, check.At("schema"))
		if len(faults) > 0 {
			return
		}
		tree := func(data []byte) map[string]any {
			v, _ := meta.ParseJSON(data)
			m, _ := v.(map[string]any)
			return m
		}
		rules, _ := Compile(t.Context(), s, names.Kubernetes, check.At("schema"))
		rules.Check(t.Context(), tree(now), tree(old))
	})
}
