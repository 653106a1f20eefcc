package cel_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/cel"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	tree, err := meta.ParseJSON(data)
	require.NoError(t, err)
	m, _ := tree.(map[string]any)
	return m
}

func compile(t *testing.T, text string) (*cel.Rules, []meta.StatusCause) {
	t.Helper()
	s, faults := schema.OpenAPI(parse(t, text), names.Kubernetes, check.At("schema"))
	require.Empty(t, faults)
	return cel.Compile(t.Context(), s, names.Kubernetes, check.At("schema"))
}

// spec is the schema of a kind whose spec has rules and fields.
func spec(rest string) string {
	return "{type: object, properties: {spec: {type: object, " + rest + "}}}"
}

func TestRulesReportViolations(t *testing.T) {
	for _, test := range []struct{ name, schema, old, object, want string }{
		{"true", `x-kubernetes-validations: [{rule: self.a < self.b}], properties: {a: {type: integer}, b: {type: integer}}`, "", `{a: 1, b: 2}`, ""},
		{"false", `x-kubernetes-validations: [{rule: self.a < self.b}], properties: {a: {type: integer}, b: {type: integer}}`, "", `{a: 2, b: 1}`, "spec: Invalid value: failed rule: self.a < self.b"},
		{"message", `x-kubernetes-validations: [{rule: self.a < 1, message: too much}], properties: {a: {type: integer}}`, "", `{a: 2}`, "spec: Invalid value: too much"},
		{"expression of a message", `x-kubernetes-validations: [{rule: self.a < 1, messageExpression: "'a is ' + self.b"}], properties: {a: {type: integer}, b: {type: string, maxLength: 10}}`, "", `{a: 2, b: two}`, "spec: Invalid value: a is two"},
		{"reason", `x-kubernetes-validations: [{rule: self.a < 1, reason: FieldValueForbidden, fieldPath: .a}], properties: {a: {type: integer}}`, "", `{a: 2}`, "spec.a: Forbidden: failed rule: self.a < 1"},
		{"of a number", `properties: {a: {type: integer, x-kubernetes-validations: [{rule: self < 1}]}}`, "", `{a: 2}`, "spec.a: Invalid value: 2: failed rule: self < 1"},
		{"transition", `properties: {a: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}}`, `{a: 3}`, `{a: 2}`, "spec.a: Invalid value: 2: failed rule: self >= oldSelf"},
		{"transition of what is new", `properties: {a: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}}`, `{}`, `{a: 2}`, ""},
		{"optional", `properties: {a: {type: integer, x-kubernetes-validations: [{rule: "oldSelf.hasValue() || self == 1", optionalOldSelf: true}]}}`, `{}`, `{a: 2}`, "spec.a: Invalid value: 2: failed rule: oldSelf.hasValue() || self == 1"},
		{"dates", `properties: {a: {type: string, format: date-time}, d: {type: string, format: duration}}, x-kubernetes-validations: [{rule: "self.a > timestamp('2020-01-01T00:00:00Z') && self.d < duration('1h')"}]`, "", `{a: "2021-01-01T00:00:00Z", d: 5m}`, ""},
		{"sets", `properties: {a: {type: array, maxItems: 10, x-kubernetes-list-type: set, items: {type: string, maxLength: 10}}}, x-kubernetes-validations: [{rule: "self.a == ['b', 'a']"}]`, "", `{a: [a, b]}`, ""},
		{"lists by keys", `properties: {a: {type: array, maxItems: 10, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, v: {type: integer, x-kubernetes-validations: [{rule: self >= oldSelf}]}}}}}`, `{a: [{k: x, v: 2}]}`, `{a: [{k: y, v: 1}, {k: x, v: 1}]}`, "spec.a[1].v: Invalid value: 1: failed rule: self >= oldSelf"},
		{"names", `properties: {"a-b": {type: integer}, namespace: {type: integer}, "x.y/z": {type: integer}}, x-kubernetes-validations: [{rule: "self.a__dash__b == self.__namespace__ && self.x__dot__y__slash__z == 1"}]`, "", `{"a-b": 1, namespace: 1, x.y/z: 1}`, ""},
		{"int or string", `properties: {p: {x-kubernetes-int-or-string: true}}, x-kubernetes-validations: [{rule: "type(self.p) == int ? self.p > 1 : self.p.endsWith('%')"}]`, "", `{p: 5%}`, ""},
		{"ratchets", `properties: {a: {type: integer, x-kubernetes-validations: [{rule: self < 1}]}, b: {type: integer}}`, `{a: 2}`, `{a: 2, b: 1}`, "warning spec.a: Invalid value: 2: failed rule: self < 1"},
		{"metadata", `x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-validations: [{rule: "self.metadata.name == 'x'"}]`, "", `{apiVersion: v1, kind: X, metadata: {name: y}}`, "spec: Invalid value: failed rule: self.metadata.name == 'x'"},
		{"no such key", `properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: self.a > 1}]`, "", `{}`, `spec: Invalid value: "object": no such key: a evaluating rule: self.a > 1`},
		{"has", `properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: "!has(self.a) || self.a > 1"}]`, "", `{}`, ""},
		{"maps", `properties: {m: {type: object, maxProperties: 5, additionalProperties: {type: string, maxLength: 5}}}, x-kubernetes-validations: [{rule: "self.m.all(k, self.m[k] == k)"}]`, "", `{m: {a: a, b: c}}`, `spec: Invalid value: failed rule: self.m.all(k, self.m[k] == k)`},
		{"objects that stay as they were", `x-kubernetes-validations: [{rule: self == oldSelf}], properties: {a: {type: object, properties: {b: {type: string}}, x-kubernetes-validations: [{rule: "self == oldSelf"}]}}`, `{a: {b: x}}`, `{a: {b: x}}`, ""},
		{"objects that are there once", `properties: {a: {type: array, maxItems: 20, items: {type: object, properties: {b: {type: string}}}, x-kubernetes-validations: [{rule: "self.all(x, self.exists_one(y, x == y))", message: twice}]}}`, "", `{a: [{b: x}, {b: x}]}`, "spec.a: Invalid value: twice"},
		{"a list of two", `properties: {a: {type: array, maxItems: 20, items: {type: object, properties: {b: {type: string}}}}}, x-kubernetes-validations: [{rule: "(self.a.size() > 1 ? self.a : []).all(x, self.a.exists(y, x == y))"}]`, "", `{a: [{b: x}, {b: y}]}`, ""},
		{"names that expressions cannot say count when objects are compared", `properties: {a: {type: object, properties: {x: {type: integer}, "1y": {type: integer}}, x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]}}`, `{a: {x: 1, "1y": 1}}`, `{a: {x: 1, "1y": 2}}`, "spec.a: Invalid value: immutable"},
		{"unknown fields that stayed", `properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: integer}}, x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]}}`, `{a: {x: 1, u: {v: 1}}}`, `{a: {x: 1, u: {v: 1}}}`, ""},
		{"unknown fields that changed", `properties: {a: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {x: {type: integer}}, x-kubernetes-validations: [{rule: self == oldSelf, message: immutable}]}}`, `{a: {x: 1, u: {v: 1}}}`, `{a: {x: 1, u: {v: 2}}}`, "spec.a: Invalid value: immutable"},
		{"sets that hold others", `properties: {a: {type: array, maxItems: 10, items: {type: object, properties: {k: {type: string}, at: {type: string, format: date-time}}}}}, x-kubernetes-validations: [{rule: "sets.contains(self.a, [self.a[1]]) && sets.equivalent(self.a, self.a) && self.a.distinct().size() == 2 && !sets.intersects(self.a.map(x, x.k), ['z'])"}]`, "", `{a: [{k: a, at: "2020-01-01T00:00:00Z"}, {k: b}, {at: "2020-01-01T01:00:00+01:00", k: a}]}`, ""},
		{"sums of sets", `properties: {a: {type: array, maxItems: 10, x-kubernetes-list-type: set, items: {type: string}}, b: {type: array, maxItems: 10, x-kubernetes-list-type: set, items: {type: string}}}, x-kubernetes-validations: [{rule: "self.a + self.b == ['w', 'v', 'u'] && (self.a + self.b).size() == 3 && self.a != self.b"}]`, "", `{a: [u, v], b: [v, w]}`, ""},
		{"sums of lists by keys", `properties: {a: {type: array, maxItems: 10, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}, v: {type: integer}}}}}, x-kubernetes-validations: [{rule: "(self.a + [self.a[1]]).size() == 2 && self.a + self.a == self.a"}]`, "", `{a: [{k: u, v: 1}, {k: w, v: 2}]}`, ""},
		{"patterns", `properties: {a: {type: string, maxLength: 100}}, x-kubernetes-validations: [{rule: "self.a.find('[0-9]+') == '12' && self.a.findAll('[0-9]+') == ['12', '34'] && self.a.findAll('[0-9]+', 1) == ['12'] && self.a.find(self.a) == self.a"}]`, "", `{a: a12b34}`, ""},
		{"texts that grow", `properties: {a: {type: string, maxLength: 100}}, x-kubernetes-validations: [{rule: "self.a.replace('', '-') == '-a-b-' && self.a.replace('', '-', 1) == '-ab' && [self.a, self.a].join() == 'abab' && [self.a, 'c'].join(', ') == 'ab, c'"}]`, "", `{a: ab}`, ""},
		{"long durations", `properties: {a: {type: array, maxItems: 5, items: {type: string, format: duration}}}, x-kubernetes-validations: [{rule: "self.a.all(x, x == duration('48h'))"}]`, "", `{a: [2d, 2 days, 48h, 1 day 24 hours]}`, ""},
		{"a fragment", `properties: {a: {type: string, maxLength: 100}}, x-kubernetes-validations: [{rule: "url(self.a).getEscapedPath() == '/b'"}]`, "", `{a: "https://a/b#c"}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			rules, faults := compile(t, spec(test.schema))
			require.Empty(t, faults)
			var old map[string]any
			if test.old != "" {
				old = parse(t, "spec: "+test.old)
			}
			got, warnings := rules.Check(t.Context(), parse(t, "spec: "+test.object), old)
			text := ""
			for _, f := range got {
				text += f.Field + ": " + f.Message
			}
			for _, w := range warnings {
				text += "warning " + w
			}
			assert.Equal(t, test.want, text)
		})
	}
}

func TestInvalidRules(t *testing.T) {
	for _, test := range []struct{ name, schema, want string }{
		{"syntax", `x-kubernetes-validations: [{rule: "self.a <"}], properties: {a: {type: integer}}`, "Syntax error"},
		{"unknown field", `x-kubernetes-validations: [{rule: "self.b"}], properties: {a: {type: integer}}`, "undefined field 'b'"},
		{"no boolean", `x-kubernetes-validations: [{rule: "self.a"}], properties: {a: {type: integer}}`, "cel expression must evaluate to a bool"},
		{"too dear", `x-kubernetes-validations: [{rule: "self.a.all(x, self.a.all(y, x == y))"}], properties: {a: {type: array, items: {type: string}}}`, "estimated rule cost exceeds budget by factor of more than 100x"},
		{"too dear for its separator", `x-kubernetes-validations: [{rule: "self.a.join(self.b) == self.b"}], properties: {a: {type: array, maxItems: 1000, items: {type: string, maxLength: 100}}, b: {type: string}}`, "estimated rule cost exceeds budget by factor of 31."},
		{"find", `x-kubernetes-validations: [{rule: "self.a.find('a(') == ''"}], properties: {a: {type: string, maxLength: 10}}`, "program instantiation failed: error parsing regexp: missing closing ): "},
		{"findAll", `x-kubernetes-validations: [{rule: "self.a.findAll('a(', 2) == []"}], properties: {a: {type: string, maxLength: 10}}`, "program instantiation failed: error parsing regexp"},
		{"no transition", `x-kubernetes-validations: [{rule: "self.a > 1", optionalOldSelf: true}], properties: {a: {type: integer}}`, "may not be set if oldSelf is not used in rule"},
		{"items that are not known", `properties: {a: {type: array, maxItems: 3, items: {type: integer, x-kubernetes-validations: [{rule: self > oldSelf}]}}}`, "oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[spec].properties[a]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, faults := compile(t, spec(test.schema))
			require.NotEmpty(t, faults)
			assert.Contains(t, faults[0].Message, test.want)
		})
	}
}

func TestAllRulesAreEvaluated(t *testing.T) {
	s, faults := schema.OpenAPI(parse(t, `{type: object, properties: {z: {type: integer, x-kubernetes-validations: [{rule: "false"}]}}}`), names.Kubernetes, nil)
	require.Empty(t, faults)
	for i := range 19_000 {
		s.Struct.Add(&schema.Field{Name: fmt.Sprintf("f%06d", i), Schema: &schema.Schema{Type: schema.String}})
	}
	rules, faults := cel.Compile(t.Context(), s, names.Kubernetes, nil)
	require.Empty(t, faults)
	broken, _ := rules.Check(t.Context(), map[string]any{"z": int64(1)}, nil)
	assert.Len(t, broken, 1)

	for i := range 40_000 {
		s.Struct.Add(&schema.Field{Name: fmt.Sprintf("g%06d", i), Schema: &schema.Schema{Type: schema.String}})
	}
	rules, faults = cel.Compile(t.Context(), s, names.Kubernetes, nil)
	require.Len(t, faults, 1)
	assert.Contains(t, faults[0].Message, "a schema with rules may have at most 50000 values")
	broken, _ = rules.Check(t.Context(), map[string]any{"z": int64(1)}, nil)
	assert.Len(t, broken, 1, "a schema that was accepted once lets nothing pass")
}

func TestRulesAreBounded(t *testing.T) {
	var list []string
	for range cel.MaxRules + 1 {
		list = append(list, "{rule: 'true'}")
	}
	_, faults := compile(t, spec(`x-kubernetes-validations: [`+strings.Join(list, ", ")+`]`))
	require.Len(t, faults, 1)
	assert.Contains(t, faults[0].Message, "a schema may have at most 1000 rules")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, faults := schema.OpenAPI(parse(t, spec(`x-kubernetes-validations: [{rule: "true"}]`)), names.Kubernetes, nil)
	require.Empty(t, faults)
	_, faults = cel.Compile(ctx, s, names.Kubernetes, nil)
	require.Len(t, faults, 1)
	assert.Contains(t, faults[0].Message, "context canceled")
	rules, faults := cel.Compile(t.Context(), s, names.Kubernetes, nil)
	require.Empty(t, faults)
	assert.Equal(t, 1, rules.Count())
	broken, _ := rules.Check(ctx, parse(t, "spec: {}"), nil)
	require.Len(t, broken, 1)
	assert.Contains(t, broken[0].Message, "context canceled")
}

// TestRulesOfRecursiveTypes: a recursive type has the same rules at each depth.
func TestRulesOfRecursiveTypes(t *testing.T) {
	type node struct {
		Next  *node  `json:"next,omitempty"`
		Nodes []node `json:"nodes,omitempty"`
		Most  int64  `json:"most,omitempty" schema:"rule=self < 5"`
	}
	type thing struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata,omitempty"`
		Spec            node `json:"spec"`
	}
	s, err := schema.Go(reflect.TypeFor[thing](), names.Kubernetes)
	require.NoError(t, err)
	rules, faults := cel.Compile(t.Context(), s, names.Kubernetes, nil)
	require.Empty(t, faults)
	broken, _ := rules.Check(t.Context(), parse(t, "spec: {next: {next: {next: {most: 7}}, nodes: [{most: 1}, {nodes: [{most: 9}]}]}}"), nil)
	fields := []string{}
	for _, f := range broken {
		fields = append(fields, f.Field)
	}
	assert.Equal(t, []string{"spec.next.next.next.most", "spec.next.nodes[1].nodes[0].most"}, fields)
}

// TestExpensiveMessageIsACause: if the message of a violated rule exhausts the budget, a cause is
// reported even if the value did not change, because the remaining rules are not evaluated.
func TestExpensiveMessageIsACause(t *testing.T) {
	rules, faults := compile(t, spec(`properties: {a: {type: integer, x-kubernetes-validations: [{rule: self > 5, messageExpression: "lists.range(900).all(i, lists.range(900).all(j, i+j >= 0)) ? 'x' : 'y'"}]}, b: {type: integer, x-kubernetes-validations: [{rule: self > 5}]}}`))
	require.Empty(t, faults)
	broken, warnings := rules.Check(t.Context(), parse(t, `{spec: {a: 1, b: 1}}`), parse(t, `{spec: {a: 1, b: 9}}`))
	assert.Empty(t, warnings)
	require.Len(t, broken, 1)
	assert.Contains(t, broken[0].Message, "no further validation rules will be run")
}

func TestWarningsAreBounded(t *testing.T) {
	rules, faults := compile(t, spec(`properties: {a: {type: array, maxItems: 1000, items: {type: integer, x-kubernetes-validations: [{rule: self > 5}]}}}`))
	require.Empty(t, faults)
	list := make([]any, 500)
	for i := range list {
		list[i] = int64(1)
	}
	object := map[string]any{"spec": map[string]any{"a": list}}
	broken, warnings := rules.Check(t.Context(), object, object)
	assert.Empty(t, broken)
	assert.Len(t, warnings, 100)
}

// TestFunctionCallsAreBounded: one call of a function is limited in time and memory, because it cannot be
// interrupted.
func TestFunctionCallsAreBounded(t *testing.T) {
	list := make([]any, 30_000)
	for i := range list {
		list[i] = map[string]any{"k": strconv.Itoa(i)}
	}
	object := meta.NewObject(map[string]any{"list": list, "text": strings.Repeat("a", 200_000)})
	env, err := cel.NewRequestEnv(names.Kubernetes, cel.Sees{})
	require.NoError(t, err)
	for text, want := range map[string]string{
		"sets.contains(object.list, object.list)":         "cost",
		"object.list.distinct().size() > 0":               "cost",
		"object.text.replace('', object.text).size() > 0": "the text would have more than",
		"'%s%s%s%s%s%s'.format([object.text, [object.text], {'a': object.text}, object.text, object.text, object.text]) != ''": "the text would have more than",
		"lists.range(1000).map(x, 'a').join(object.text) != ''":                                                                "cost",
	} {
		p, err := env.Compile(text, cel.Boolean)
		require.NoError(t, err)
		left := int64(cel.ObjectCost)
		_, err = p.True(t.Context(), env.Vars(t.Context(), &cel.Request{Object: object}, &left), &left)
		assert.ErrorContains(t, err, want, text)
	}
	rules, faults := compile(t, spec(`properties: {a: {type: array, maxItems: 100000, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string, maxLength: 10}}}, x-kubernetes-validations: [{rule: "self == oldSelf && self + self == oldSelf"}]}}`))
	require.Empty(t, faults)
	back := slices.Clone(list)
	slices.Reverse(back)
	broken, _ := rules.Check(t.Context(), map[string]any{"spec": map[string]any{"a": list}}, map[string]any{"spec": map[string]any{"a": back}})
	assert.Empty(t, broken)
}

func TestLongExpressionsAreNotQuoted(t *testing.T) {
	env, err := cel.NewRequestEnv(names.Kubernetes, cel.Sees{})
	require.NoError(t, err)
	_, err = env.Compile("true"+strings.Repeat(" ", 16_000)+strings.Repeat("&&b", 110), cel.Boolean)
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 20_000)
}

func TestFieldPathsOfTags(t *testing.T) {
	type thing struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata,omitempty"`
		Spec            struct {
			Most int64 `json:"most"`
		} `json:"spec" schema:"rule=self.most < 5,rule.fieldPath=.least"`
	}
	s, err := schema.Go(reflect.TypeFor[thing](), names.Kubernetes)
	require.NoError(t, err)
	_, faults := cel.Compile(t.Context(), s, names.Kubernetes, nil)
	require.Len(t, faults, 1)
	assert.Contains(t, faults[0].Message, "must be a valid path")
}

// TestCostEstimateAcceptsAffordableRules: objects have size 0 in estimates, because rules of existing definitions
// compare them, and so do values that a rule only tests for existence.
func TestCostEstimateAcceptsAffordableRules(t *testing.T) {
	for _, test := range []struct{ name, schema string }{
		{"an object that stays", `x-kubernetes-validations: [{rule: "self == oldSelf"}], properties: {a: {type: string}}`},
		{"different objects", `properties: {a: {type: array, maxItems: 32, items: {type: object, properties: {b: {type: string}}}, x-kubernetes-validations: [{rule: "self.all(x, self.exists_one(y, x == y))"}]}}`},
		{"one of two objects", `x-kubernetes-validations: [{rule: "has(self.a) != has(self.b)"}], properties: {a: {type: object}, b: {type: object}}`},
		{"both of two texts in many items", `type: array, maxItems: 50, items: {type: object, properties: {a: {type: string}, b: {type: string}}}, x-kubernetes-validations: [{rule: "self.all(x, has(x.a) == has(x.b))"}]`},
		{"quantities", `type: array, maxItems: 10, items: {type: object, properties: {a: {type: string, maxLength: 64}, b: {type: string, maxLength: 64}}}, x-kubernetes-validations: [{rule: "self.all(x, quantity(x.a) == quantity(x.b).add(1))"}]`},
		{"versions", `x-kubernetes-validations: [{rule: "semver(self.a) == semver(self.b)"}], properties: {a: {type: string}, b: {type: string}}`},
		{"texts that are looked at once", `type: array, items: {type: string}, x-kubernetes-validations: [{rule: "self.all(x, x.charAt(0) == 'a' && isURL(x))"}]`},
		{"items of a choice", `x-kubernetes-validations: [{rule: "(has(self.a) ? self.a : []).exists(k, k.contains('/'))"}], properties: {a: {type: array, maxItems: 256, items: {type: string, maxLength: 64}}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, faults := compile(t, spec(test.schema))
			assert.Empty(t, faults)
		})
	}
}
