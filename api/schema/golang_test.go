package schema

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

type gadget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`

	Spec   gadgetSpec   `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	Status gadgetStatus `json:"status,omitempty"`
}

type gadgetSpec struct {
	Size     int32             `json:"size" schema:"min=1,max=9,default=3"`
	Color    string            `json:"color,omitempty" schema:"enum=red|blue"`
	Flag     *bool             `json:"flag,omitempty"`
	Parts    []part            `json:"parts,omitempty" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name"`
	Args     []string          `json:"args"`
	Data     map[string]string `json:"data,omitempty"`
	Raw      []byte            `json:"raw,omitempty"`
	At       meta.Time         `json:"at,omitempty"`
	Micro    *meta.MicroTime   `json:"micro,omitempty"`
	Self     *gadgetSpec       `json:"self,omitempty"`
	Code     string            `json:"code,omitempty" schema:"pattern=^[a-z]{1\\,3}$,maxLength=3"`
	Free     map[string]any    `json:"free,omitempty"`
	Fixed    string            `json:"fixed,omitempty" schema:"immutable"`
	Anything json.RawMessage   `json:"anything,omitempty"`
}

type part struct {
	_    struct{} `schema:"mapType=atomic"`
	Name string   `json:"name" schema:"required"`
	N    *int64   `json:"n,omitempty" schema:"default=7"`
}

type gadgetStatus struct {
	Phase string `json:"phase,omitempty"`
}

func gadgetSchema(t testing.TB) *Schema {
	s, err := Go(reflect.TypeFor[gadget](), names.Kubernetes)
	require.NoError(t, err)
	return s
}

func tree(t testing.TB, text string) map[string]any {
	v, err := meta.ParseJSON([]byte(text))
	require.NoError(t, err)
	return v.(map[string]any)
}

func text(t testing.TB, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func TestGoReadsTags(t *testing.T) {
	s := gadgetSchema(t)
	assert.Same(t, Metadata(names.Kubernetes).Struct, s.Struct.Field("metadata").Schema.Struct)
	spec := s.Struct.Field("spec")
	assert.Equal(t, 2, spec.Number)
	assert.False(t, spec.OmitEmpty, "a struct has no empty value")
	parts := spec.Schema.Struct.Field("parts").Schema
	assert.Equal(t, []string{"name"}, parts.ListKeys)
	assert.Equal(t, "merge", parts.PatchStrategy)
	assert.Equal(t, "atomic", parts.Items.MapType)
	assert.Equal(t, "^[a-z]{1,3}$", spec.Schema.Struct.Field("code").Schema.Pattern)
	assert.Same(t, spec.Schema.Struct, spec.Schema.Struct.Field("self").Schema.Struct)
	owners := s.Struct.Field("metadata").Schema.Struct.Field("ownerReferences").Schema
	assert.Equal(t, "map", owners.ListType)
	assert.Equal(t, []string{"uid"}, owners.ListKeys)
}

func TestGoReportsEveryError(t *testing.T) {
	type inner struct {
		C chan int `json:"c"`
	}
	type bad struct {
		A  func()         `json:"a"`
		B  complex128     `json:"b"`
		C  inner          `json:"c"`
		D  map[int]string `json:"d"`
		E  string         `json:"e" schema:"bogus"`
		G  string         `json:"g" schema:"pattern=("`
		H  string         `json:"h" protobuf:"bytes"`
		I  int            `json:"i,string"`
		J  int            `json:"j" schema:"default=x"`
		K  string         `json:"k" schema:"listType=odd"`
		OK string         `json:"ok"`
	}
	_, err := Go(reflect.TypeFor[bad](), names.Orch)
	require.Error(t, err)
	got := map[string]bool{}
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var f *FieldError
		require.True(t, errors.As(e, &f), "%v", e)
		got[f.Field] = true
		assert.Contains(t, e.Error(), f.Type.String())
	}
	for _, f := range []string{"A", "B", "C", "D", "E", "G", "H", "I", "J", "K"} {
		assert.True(t, got[f], "fault of %s in %v", f, err)
	}
	assert.False(t, got["OK"])
}

func TestGoRejectsDuplicateNames(t *testing.T) {
	field := func(name string) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeFor[string](), Tag: `json:"same"`}
	}
	_, err := Go(reflect.StructOf([]reflect.StructField{field("A"), field("B")}), names.Orch)
	assert.ErrorContains(t, err, `"same" is taken by field A`)
}

func TestNormalizeGoKinds(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"empty", `{}`, `{"metadata":{},"spec":{"args":null,"at":null,"size":0},"status":{}}`},
		{"nulls are unset", `{"spec":{"flag":null,"data":null,"args":null,"parts":null,"self":null}}`, `{"metadata":{},"spec":{"args":null,"at":null,"size":0},"status":{}}`},
		{"empties go", `{"spec":{"data":{},"parts":[],"color":"","raw":"","args":[]}}`, `{"metadata":{},"spec":{"args":[],"at":null,"size":0},"status":{}}`},
		{"null in a map", `{"spec":{"data":{"k":null}}}`, `{"metadata":{},"spec":{"args":null,"at":null,"data":{"k":""},"size":0},"status":{}}`},
		{"null in lists", `{"spec":{"args":[null],"parts":[null]}}`, `{"metadata":{},"spec":{"args":[""],"at":null,"parts":[{"name":""}],"size":0},"status":{}}`},
		{"pointer zero stays", `{"spec":{"flag":false,"self":{}}}`, `{"metadata":{},"spec":{"args":null,"at":null,"flag":false,"self":{"args":null,"at":null,"size":0},"size":0},"status":{}}`},
		{"times", `{"spec":{"at":"2024-01-02T03:04:05.6+01:00","micro":"2024-01-02T04:04:05.000000+01:00"}}`, `{"metadata":{},"spec":{"args":null,"at":"2024-01-02T02:04:05Z","micro":"2024-01-02T03:04:05.000000Z","size":0},"status":{}}`},
		{"base64", `{"spec":{"raw":"YW\nJj"}}`, `{"metadata":{},"spec":{"args":null,"at":null,"raw":"YWJj","size":0},"status":{}}`},
		{"free form", `{"spec":{"free":{"a":{"b":null}},"anything":[1,{"x":null}]}}`, `{"metadata":{},"spec":{"anything":[1,{"x":null}],"args":null,"at":null,"free":{"a":{"b":null}},"size":0},"status":{}}`},
	}
	s := gadgetSchema(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := tree(t, c.in)
			unknown, faults := s.Normalize(m)
			assert.Empty(t, unknown)
			assert.Empty(t, faults)
			assert.JSONEq(t, c.want, text(t, m))
			again := tree(t, text(t, m))
			s.Normalize(again)
			assert.JSONEq(t, c.want, text(t, again), "a second time changes nothing")
		})
	}
}

func TestNormalizeReportsUnknownFieldsAndMismatches(t *testing.T) {
	s := gadgetSchema(t)
	m := tree(t, `{"junk":1,"metadata":{"nosuch":"x","labels":{"a":1}},"spec":{"size":99999999999,"parts":[{"name":"a","foo":1},{"name":5}],"flag":"true","at":"x","raw":"*","args":{},"color":1.5}}`)
	unknown, faults := s.Normalize(m)
	assert.Equal(t, []string{"junk", "metadata.nosuch", "spec.parts[0].foo"}, unknown)
	var fields []string
	for _, f := range faults {
		fields = append(fields, f.Field)
		assert.Equal(t, meta.CauseTypeInvalid, f.Reason)
	}
	assert.Equal(t, []string{"metadata.labels.a", "spec.args", "spec.at", "spec.color", "spec.flag", "spec.parts[1].name", "spec.raw", "spec.size"}, fields)
	assert.NotContains(t, m, "junk")
}

func TestFillDefaultsOfGoKinds(t *testing.T) {
	s := gadgetSchema(t)
	m := tree(t, `{"spec":{"parts":[{"name":"a"},{"name":"b","n":0}]}}`)
	s.Normalize(m)
	_ = s.FillDefaults(m)
	assert.JSONEq(t, `{"metadata":{},"spec":{"args":null,"at":null,"size":3,"parts":[{"name":"a","n":7},{"name":"b","n":0}]},"status":{}}`, text(t, m))
}

// TestExpectedFields: OpenAPI lists fields that every object has, and fields that clients must
// set.
func TestExpectedFields(t *testing.T) {
	s, err := Go(reflect.TypeFor[struct {
		Always string  `json:"always"`
		Null   *string `json:"null"`
		Given  string  `json:"given,omitempty" schema:"required"`
		Silent string  `json:"silent,omitempty" schema:"required,optional"`
		Old    string  `json:"old" schema:"optional"`
		Empty  string  `json:"empty,omitempty"`
		Zero   int     `json:"zero,omitzero"`
	}](), names.Orch)
	require.NoError(t, err)
	var required, expected []string
	for _, f := range s.Struct.Fields {
		if f.Required {
			required = append(required, f.Name)
		}
		if f.Expected {
			expected = append(expected, f.Name)
		}
	}
	assert.Equal(t, []string{"given", "silent"}, required)
	assert.Equal(t, []string{"always", "null", "given"}, expected)
}

func TestEnumOf(t *testing.T) {
	type words struct {
		One  string   `json:"one" schema:"default=a,enum=a|b,unchecked"`
		Many []string `json:"many" schema:"listType=atomic,items.enum=c|d"`
		Free string   `json:"free"`
	}
	assert.Equal(t, []string{"a", "b"}, EnumOf[words]("One"))
	assert.Equal(t, []string{"c", "d"}, EnumOf[words]("Many"))
	assert.Empty(t, EnumOf[words]("Free"))
	assert.Empty(t, EnumOf[words]("None"))
}
