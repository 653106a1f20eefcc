package schema

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// Schemas as a custom resource definition gives them.

func str() *Schema                 { return &Schema{Type: String} }
func integer() *Schema             { return &Schema{Type: Integer} }
func list(items *Schema) *Schema   { return &Schema{Type: Array, Items: items} }
func mapOf(values *Schema) *Schema { return &Schema{Type: Object, Values: values} }
func ref[T any](v T) *T            { return &v }
func with(s *Schema, f func(*Schema)) *Schema {
	f(s)
	return s
}

func object(required []string, fields ...any) *Schema {
	st := &Struct{}
	for i := 0; i < len(fields); i += 2 {
		f := &Field{Name: fields[i].(string), Schema: fields[i+1].(*Schema)}
		for _, r := range required {
			f.Required = f.Required || r == f.Name
		}
		st.Add(f)
	}
	return &Schema{Type: Object, Struct: st, Required: required}
}

func kind(t testing.TB, required []string, spec *Schema) *Schema {
	s := object(required, "spec", spec)
	require.NoError(t, s.Compile())
	return s
}

func conformed(t testing.TB, s *Schema, in string) (map[string]any, []string) {
	m := tree(t, in)
	unknown, faults := s.Normalize(m)
	require.Empty(t, faults)
	_ = s.FillDefaults(m)
	return m, unknown
}

type cause struct {
	reason meta.CauseType
	field  string
}

func causesOf(s *Schema, m, old map[string]any) (out []cause) {
	for _, c := range s.Validate(m, old) {
		out = append(out, cause{c.Reason, c.Field})
	}
	return out
}

func TestCustomDefaults(t *testing.T) {
	s := kind(t, nil, object(nil,
		"a", with(str(), func(s *Schema) { s.Default = "x" }),
		"o", with(object(nil, "n", with(integer(), func(s *Schema) { s.Default = int64(3) }), "m", integer()), func(s *Schema) { s.Default = map[string]any{} }),
		"l", list(object(nil, "k", with(str(), func(s *Schema) { s.Default = "key" }), "v", str())),
		"none", object(nil, "d", with(str(), func(s *Schema) { s.Default = "y" })),
		"m", mapOf(with(str(), func(s *Schema) { s.Default = "z" })),
	))
	for in, want := range map[string]string{
		`{"spec":{}}`: `{"spec":{"a":"x","o":{"n":3}}}`,
		`{"spec":{"a":"given","l":[{"v":"1"},{}],"o":{"m":1},"none":{}}}`: `{"spec":{"a":"given","l":[{"k":"key","v":"1"},{"k":"key"}],"none":{"d":"y"},"o":{"m":1,"n":3}}}`,
		`{}`:                              `{}`,
		`{"spec":{"a":null,"o":null}}`:    `{"spec":{"a":"x","o":{"n":3}}}`,
		`{"spec":{"m":{"k":null}}}`:       `{"spec":{"a":"x","o":{"n":3},"m":{"k":"z"}}}`,
		`{"spec":{"l":[{"k":null}]}}`:     `{"spec":{"a":"x","o":{"n":3},"l":[{"k":"key"}]}}`,
		`{"spec":{"l":null,"none":null}}`: `{"spec":{"a":"x","o":{"n":3}}}`,
		`{"spec":null}`:                   `{}`,
	} {
		m, _ := conformed(t, s, in)
		assert.JSONEq(t, want, text(t, m), in)
	}
}

func TestDefaultsAreCopied(t *testing.T) {
	s := kind(t, nil, object(nil, "o", with(mapOf(str()), func(s *Schema) { s.Default = map[string]any{"a": "b"} })))
	m, _ := conformed(t, s, `{"spec":{}}`)
	m["spec"].(map[string]any)["o"].(map[string]any)["a"] = "changed"
	again, _ := conformed(t, s, `{"spec":{}}`)
	assert.JSONEq(t, `{"spec":{"o":{"a":"b"}}}`, text(t, again))
}

func TestCustomPruning(t *testing.T) {
	s := kind(t, nil, object(nil,
		"a", str(),
		"o", object(nil, "b", str()),
		"keep", with(object(nil, "strict", object(nil, "c", str())), func(s *Schema) { s.Preserve = true }),
		"m", mapOf(object(nil, "z", str())),
		"l", list(object(nil, "z", str())),
		"bare", &Schema{Type: Object},
		"emb", &Schema{Type: Object, Embedded: true},
		"embkeep", &Schema{Type: Object, Embedded: true, Preserve: true},
	))
	for _, c := range []struct {
		in, want string
		unknown  []string
	}{
		{`{"spec":{"a":"1","x":1,"o":{"b":"2","y":2}},"extra":{"q":1}}`, `{"spec":{"a":"1","o":{"b":"2"}}}`, []string{"extra", "spec.o.y", "spec.x"}},
		{`{"spec":{"keep":{"free":[1,{"x":2}],"strict":{"c":"1","d":"2"}}}}`, `{"spec":{"keep":{"free":[1,{"x":2}],"strict":{"c":"1"}}}}`, []string{"spec.keep.strict.d"}},
		{`{"spec":{"m":{"k":{"z":"1","zz":"2"}}}}`, `{"spec":{"m":{"k":{"z":"1"}}}}`, []string{"spec.m.k.zz"}},
		{`{"spec":{"l":[{"z":"1"},{"q":1}]}}`, `{"spec":{"l":[{"z":"1"},{}]}}`, []string{"spec.l[1].q"}},
		{`{"spec":{"bare":{"x":1}}}`, `{"spec":{"bare":{}}}`, []string{"spec.bare.x"}},
		{`{"metadata":{"name":"e","labels":{"l":"1"},"nonsense":"x"},"kind":"W","apiVersion":"v1"}`, `{"metadata":{"name":"e","labels":{"l":"1"}},"kind":"W","apiVersion":"v1"}`, []string{"metadata.nonsense"}},
		{`{"spec":{"emb":{"apiVersion":"v1","kind":"X","metadata":{"name":"a","foo":1},"spec":{}}}}`, `{"spec":{"emb":{"apiVersion":"v1","kind":"X","metadata":{"name":"a"}}}}`, []string{"spec.emb.spec", "spec.emb.metadata.foo"}},
		{`{"spec":{"embkeep":{"apiVersion":"v1","metadata":{"foo":1},"spec":{"q":1}}}}`, `{"spec":{"embkeep":{"apiVersion":"v1","metadata":{},"spec":{"q":1}}}}`, []string{"spec.embkeep.metadata.foo"}},
	} {
		m, unknown := conformed(t, s, c.in)
		assert.JSONEq(t, c.want, text(t, m))
		assert.Equal(t, c.unknown, unknown, c.in)
	}
}

func TestNilSchemaKeepsAllFields(t *testing.T) {
	var s *Schema
	m := tree(t, `{"metadata":{"name":"a","x":1,"labels":null},"spec":{"x":null,"y":[1]}}`)
	unknown, faults := s.Normalize(m)
	_ = s.FillDefaults(m)
	assert.Equal(t, []string{"metadata.x"}, unknown)
	assert.Empty(t, faults)
	assert.JSONEq(t, `{"metadata":{"name":"a"},"spec":{"x":null,"y":[1]}}`, text(t, m))
	assert.Empty(t, s.Validate(m, nil))
}

func TestCustomValidation(t *testing.T) {
	s := kind(t, []string{"spec"}, object([]string{"a"},
		"a", with(str(), func(s *Schema) { s.Pattern = "^x"; s.MaxLength = ref(int64(4)) }),
		"n", with(integer(), func(s *Schema) { s.Minimum, s.Maximum = ref(1.0), ref(9.0) }),
		"e", with(str(), func(s *Schema) { s.Enum = []any{"one", "two"} }),
		"l", with(list(str()), func(s *Schema) { s.MaxItems, s.MinItems = ref(int64(2)), ref(int64(1)) }),
		"b", &Schema{Type: Boolean},
		"ex", with(&Schema{Type: Number}, func(s *Schema) { s.Minimum, s.ExclusiveMin, s.Maximum, s.ExclusiveMax = ref(0.0), true, ref(1.0), true }),
		"mul", with(&Schema{Type: Number}, func(s *Schema) { s.MultipleOf = ref(0.1) }),
		"min", with(str(), func(s *Schema) { s.MinLength = ref(int64(2)) }),
		"props", with(mapOf(str()), func(s *Schema) { s.MinProperties, s.MaxProperties = ref(int64(1)), ref(int64(2)) }),
		"fmt", with(str(), func(s *Schema) { s.Format = "ipv4" }),
		"i32", with(integer(), func(s *Schema) { s.Format = "int32" }),
		"uniq", with(list(integer()), func(s *Schema) { s.UniqueItems = true }),
	))
	const invalid, required, tooLong, tooMany, wrongType, unsupported, duplicate = meta.CauseInvalid, meta.CauseRequired, meta.CauseTooLong, meta.CauseTooMany, meta.CauseTypeInvalid, meta.CauseNotSupported, meta.CauseDuplicate
	for in, want := range map[string][]cause{
		`{"spec":{"a":"xyz","n":9,"e":"one","l":["q"],"b":false}}`: nil,
		`{}`:                                                {{required, "spec"}},
		`{"spec":null}`:                                     {{required, "spec"}},
		`{"spec":{"n":1}}`:                                  {{required, "spec.a"}},
		`{"spec":{"a":null}}`:                               {{required, "spec.a"}},
		`{"spec":{"a":"y"}}`:                                {{invalid, "spec.a"}},
		`{"spec":{"a":"xxxxx"}}`:                            {{tooLong, "spec.a"}},
		`{"spec":{"a":"yyyyy"}}`:                            {{tooLong, "spec.a"}},
		`{"spec":{"a":"xäöü"}}`:                             nil,
		`{"spec":{"a":"x","n":10}}`:                         {{invalid, "spec.n"}},
		`{"spec":{"a":"x","n":0}}`:                          {{invalid, "spec.n"}},
		`{"spec":{"a":"x","n":2.0}}`:                        nil,
		`{"spec":{"a":"x","n":2.5}}`:                        {{wrongType, "spec.n"}, {invalid, wording.WholeField}},
		`{"spec":{"a":"x","e":"three"}}`:                    {{unsupported, "spec.e"}},
		`{"spec":{"a":"x","e":1}}`:                          {{wrongType, "spec.e"}, {unsupported, "spec.e"}},
		`{"spec":{"a":"x","l":["1","2","3"]}}`:              {{tooMany, "spec.l"}},
		`{"spec":{"a":"x","l":[]}}`:                         {{invalid, "spec.l"}},
		`{"spec":{"a":"x","l":[1]}}`:                        {{wrongType, "spec.l[0]"}},
		`{"spec":{"a":"x","l":[null]}}`:                     {{wrongType, "spec.l[0]"}},
		`{"spec":{"a":"x","b":"true"}}`:                     {{wrongType, "spec.b"}},
		`{"spec":{"a":"x","ex":0}}`:                         {{invalid, "spec.ex"}},
		`{"spec":{"a":"x","ex":1}}`:                         {{invalid, "spec.ex"}},
		`{"spec":{"a":"x","ex":0.5}}`:                       nil,
		`{"spec":{"a":"x","mul":0.3}}`:                      nil,
		`{"spec":{"a":"x","mul":0.25}}`:                     {{invalid, "spec.mul"}},
		`{"spec":{"a":"x","min":"q"}}`:                      {{invalid, "spec.min"}},
		`{"spec":{"a":"x","props":{}}}`:                     {{invalid, "spec.props"}},
		`{"spec":{"a":"x","props":{"a":"","b":"","c":""}}}`: {{tooMany, "spec.props"}},
		`{"spec":{"a":"x","props":{"a":1}}}`:                {{wrongType, "spec.props.a"}},
		`{"spec":{"a":"x","fmt":"10.0.0.1"}}`:               nil,
		`{"spec":{"a":"x","fmt":"10.0.0"}}`:                 {{wrongType, "spec.fmt"}},
		`{"spec":{"a":"x","i32":3000000000}}`:               {{invalid, wording.WholeField}},
		`{"spec":{"a":"x","uniq":[1,2,1]}}`:                 {{duplicate, "spec.uniq[2]"}},
		`{"spec":"text"}`:                                   {{wrongType, "spec"}},
		`{"spec":{"n":0,"e":"x","b":1}}`:                    {{invalid, "spec.n"}, {unsupported, "spec.e"}, {wrongType, "spec.b"}, {required, "spec.a"}},
	} {
		m, _ := conformed(t, s, in)
		assert.Equal(t, want, causesOf(s, m, nil), in)
	}
}

// TestUnchangedValuesAreNotValidated: a stricter definition rejects invalid values only if a
// write changes them.
func TestUnchangedValuesAreNotValidated(t *testing.T) {
	s := kind(t, nil, object(nil,
		"s", with(str(), func(s *Schema) { s.MinLength = ref(int64(5)) }),
		"l", &Schema{Type: Array, Items: with(str(), func(s *Schema) { s.MinLength = ref(int64(3)) })},
		"m", &Schema{Type: Array, ListType: "map", ListKeys: []string{"k"}, Items: object(nil, "k", str(), "v", with(str(), func(s *Schema) { s.MinLength = ref(int64(3)) }))},
	))
	const old = `{"spec":{"s":"a","l":["x"],"m":[{"k":"1","v":"x"}]}}`
	for in, want := range map[string][]cause{
		old:                                nil,
		`{"spec":{"s":"b","l":["x"]}}`:     {{meta.CauseInvalid, "spec.s"}},
		`{"spec":{"s":"a","l":["x","y"]}}`: {{meta.CauseInvalid, "spec.l[0]"}, {meta.CauseInvalid, "spec.l[1]"}},
		`{"spec":{"m":[{"k":"2","v":"y"},{"k":"1","v":"x"}]}}`:         {{meta.CauseInvalid, "spec.m[0].v"}},
		`{"metadata":{"labels":{"a":"b"}},"spec":{"s":"a","l":["x"]}}`: nil,
	} {
		m, _ := conformed(t, s, in)
		before, _ := conformed(t, s, old)
		assert.Equal(t, want, causesOf(s, m, before), in)
	}
}

func TestCustomNullableAndIntOrString(t *testing.T) {
	s := kind(t, nil, object(nil,
		"n", with(str(), func(s *Schema) { s.Nullable = true }),
		"s", str(),
		"d", with(str(), func(s *Schema) { s.Default = "x" }),
		"nd", with(str(), func(s *Schema) { s.Nullable, s.Default = true, "y" }),
		"p", &Schema{IntOrString: true},
	))
	for in, want := range map[string]string{
		`{"spec":{"n":null,"nd":null}}`: `{"spec":{"d":"x","n":null,"nd":null}}`,
		`{"spec":{"s":null}}`:           `{"spec":{"d":"x","nd":"y"}}`,
		`{"spec":{"d":null}}`:           `{"spec":{"d":"x","nd":"y"}}`,
		`{"spec":{"p":80}}`:             `{"spec":{"d":"x","nd":"y","p":80}}`,
		`{"spec":{"p":"http"}}`:         `{"spec":{"d":"x","nd":"y","p":"http"}}`,
	} {
		m, _ := conformed(t, s, in)
		assert.JSONEq(t, want, text(t, m), in)
		assert.Empty(t, s.Validate(m, nil), in)
	}
	for _, in := range []string{`{"spec":{"p":true}}`, `{"spec":{"p":1.5}}`} {
		m, _ := conformed(t, s, in)
		assert.Equal(t, []cause{{meta.CauseTypeInvalid, "spec.p"}}, causesOf(s, m, nil), in)
	}
}

func TestCustomListTypes(t *testing.T) {
	s := kind(t, nil, object(nil,
		"s", with(list(str()), func(s *Schema) { s.ListType = "set" }),
		"m", with(list(object([]string{"a"}, "a", str(), "b", with(integer(), func(s *Schema) { s.Default = int64(1) }))), func(s *Schema) { s.ListType, s.ListKeys = "map", []string{"a", "b"} }),
	))
	for in, want := range map[string][]cause{
		`{"spec":{"s":["x","y"],"m":[{"a":"1"},{"a":"1","b":2}]}}`: nil,
		`{"spec":{"s":["x","x"]}}`:                                 {{meta.CauseDuplicate, "spec.s[1]"}},
		`{"spec":{"s":["x","y","y","x"]}}`:                         {{meta.CauseDuplicate, "spec.s[2]"}, {meta.CauseDuplicate, "spec.s[3]"}},
		`{"spec":{"m":[{"a":"1"},{"a":"1","b":1}]}}`:               {{meta.CauseDuplicate, "spec.m[1]"}},
		`{"spec":{"m":[{"b":1}]}}`:                                 {{meta.CauseRequired, "spec.m[0].a"}},
	} {
		m, _ := conformed(t, s, in)
		assert.Equal(t, want, causesOf(s, m, nil), in)
	}
}

func TestCombinationsReportViolations(t *testing.T) {
	need := func(name string) *Schema { return object([]string{name}, name, &Schema{}) }
	s := kind(t, nil, object(nil,
		"any", &Schema{Type: Object, Preserve: true, AnyOf: []*Schema{need("a"), need("b")}},
		"one", &Schema{Type: Object, Preserve: true, OneOf: []*Schema{need("a"), need("b")}},
		"all", &Schema{Type: Object, Preserve: true, AllOf: []*Schema{need("a"), need("b")}},
		"not", &Schema{Type: Object, Preserve: true, Not: need("a")},
	))
	for in, want := range map[string][]cause{
		`{"spec":{"any":{"a":1},"one":{"b":1},"all":{"a":1,"b":1},"not":{"b":1}}}`: nil,
		`{"spec":{"any":{}}}`:            {{meta.CauseInvalid, wording.WholeField}, {meta.CauseRequired, "spec.any.a"}},
		`{"spec":{"one":{}}}`:            {{meta.CauseInvalid, wording.WholeField}, {meta.CauseRequired, "spec.one.a"}},
		`{"spec":{"one":{"a":1,"b":1}}}`: {{meta.CauseInvalid, wording.WholeField}},
		`{"spec":{"all":{"a":1}}}`:       {{meta.CauseRequired, "spec.all.b"}, {meta.CauseInvalid, wording.WholeField}},
		`{"spec":{"not":{"a":1}}}`:       {{meta.CauseInvalid, wording.WholeField}},
	} {
		m, _ := conformed(t, s, in)
		assert.Equal(t, want, causesOf(s, m, nil), in)
	}
}

func TestImmutableValuesMustNotChange(t *testing.T) {
	fixed := func() *Schema { return with(str(), func(s *Schema) { s.Immutable = true }) }
	s := kind(t, nil, object(nil, "a", fixed(),
		"m", with(list(object([]string{"k"}, "k", str(), "v", fixed())), func(s *Schema) { s.ListType, s.ListKeys = "map", []string{"k"} }),
		"l", list(object(nil, "v", fixed()))))
	old := tree(t, `{"spec":{"a":"1","m":[{"k":"x","v":"1"},{"k":"y","v":"2"}],"l":[{"v":"1"}]}}`)
	for in, want := range map[string][]cause{
		`{"spec":{"a":"1","m":[{"k":"y","v":"2"},{"k":"x","v":"1"}]}}`: nil,
		`{"spec":{"a":"2"}}`: {{meta.CauseInvalid, "spec.a"}},
		`{"spec":{}}`:        {{meta.CauseInvalid, "spec.a"}},
		`{"spec":{"a":"1","m":[{"k":"y","v":"9"}]}}`: {{meta.CauseInvalid, "spec.m[0].v"}},
		`{"spec":{"a":"1","m":[{"k":"z","v":"9"}]}}`: nil,
		`{"spec":{"a":"1","l":[{"v":"9"}]}}`:         nil,
	} {
		m, _ := conformed(t, s, in)
		assert.Equal(t, want, causesOf(s, m, old), in)
		assert.Empty(t, causesOf(s, m, nil), "nothing to compare with on create")
	}
	first := tree(t, `{"spec":{}}`)
	assert.Empty(t, causesOf(s, tree(t, `{"spec":{"a":"late"}}`), first), "an unset value may be set once")
}

func TestUpdateKeepsUnknownFields(t *testing.T) {
	s := with(object(nil, "a", str(), "o", with(object(nil, "b", str(), "c", str()), func(s *Schema) { s.Preserve = true })), func(s *Schema) { s.Preserve = true })
	dst := tree(t, `{"a":"1","x":"free","o":{"b":"1","c":"2","y":"free"}}`)
	s.Update(dst, tree(t, `{"o":{"b":"changed"}}`))
	assert.JSONEq(t, `{"x":"free","o":{"b":"changed","y":"free"}}`, text(t, dst))
}
