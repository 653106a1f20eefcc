package schema_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
)

// Types of other libraries, which are recognized by their methods and names.

type Time struct{ time.Time }

func (Time) OpenAPISchemaType() []string { return []string{"string"} }
func (Time) OpenAPISchemaFormat() string { return "date-time" }
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(t.UTC().Format(time.RFC3339))
}
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	var err error
	t.Time, err = time.Parse(`"`+time.RFC3339+`"`, string(b))
	return err
}

type Quantity struct{ s string }

func (Quantity) OpenAPISchemaType() []string     { return []string{"string"} }
func (Quantity) OpenAPISchemaFormat() string     { return "" }
func (q Quantity) MarshalJSON() ([]byte, error)  { return json.Marshal(q.s) }
func (q *Quantity) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &q.s) }

type IntOrString struct{ v any }

func (IntOrString) OpenAPISchemaType() []string     { return []string{"string"} }
func (IntOrString) OpenAPISchemaFormat() string     { return "int-or-string" }
func (v IntOrString) MarshalJSON() ([]byte, error)  { return json.Marshal(v.v) }
func (v *IntOrString) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &v.v) }

type opaque struct{ s string }

func (o opaque) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]string{"inner": o.s}) }
func (o *opaque) UnmarshalJSON(b []byte) error {
	var m map[string]string
	err := json.Unmarshal(b, &m)
	o.s = m["inner"]
	return err
}

type ListMeta struct {
	Continue string `json:"continue,omitempty"`
}

type inner struct {
	A string `json:"a,omitempty"`
	B string `json:"b"`
}

type Optional struct {
	C string `json:"c"`
}

type key string

type foreign struct {
	meta.TypeMeta `json:",inline"`
	Metadata      meta.ObjectMeta `json:"metadata,omitempty"`

	inner
	*Optional `json:",inline"`

	At       Time               `json:"at,omitempty"`
	Size     Quantity           `json:"size"`
	Limits   map[key]Quantity   `json:"limits,omitempty"`
	Port     IntOrString        `json:"port,omitempty"`
	Opaque   opaque             `json:"opaque"`
	Any      any                `json:"any,omitempty"`
	Raw      json.RawMessage    `json:"raw,omitempty"`
	Ext      meta.RawExtension  `json:"ext"`
	Fields   *meta.Fields       `json:"fields,omitempty"`
	Wait     meta.Duration      `json:"wait,omitempty"`
	Zero     inner              `json:"zero,omitzero"`
	U8       uint8              `json:"u8,omitempty"`
	F        float64            `json:"f,omitempty"`
	Grid     [][]int32          `json:"grid,omitempty"`
	Two      [2]int             `json:"two"`
	Ptrs     []*string          `json:"ptrs,omitempty"`
	Deep     map[string][]inner `json:"deep,omitempty"`
	Instant  time.Time          `json:"instant,omitzero"`
	Untagged bool
	Skipped  string `json:"-"`
	Disk     string `json:"cloudBDisk,omitempty"`
}

func tree(t testing.TB, text string) map[string]any {
	o, _, err := codec.DecodeJSON([]byte(text), codec.Limits{})
	require.NoError(t, err)
	return o
}

func text(t testing.TB, v any) string {
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func foreignSchema(t testing.TB) (*schema.Schema, *schema.View) {
	s, err := schema.Go(reflect.TypeFor[foreign](), names.Kubernetes)
	require.NoError(t, err)
	v, err := schema.NewView(reflect.TypeFor[foreign](), names.Kubernetes)
	require.NoError(t, err)
	return s, v
}

func TestForeignTypesAreKnownByShape(t *testing.T) {
	s, _ := foreignSchema(t)
	for name, want := range map[string]schema.Wire{
		"at": schema.Time, "size": schema.Quantity, "port": schema.IntOrString, "ext": schema.Raw, "fields": schema.Fields, "wait": schema.Duration, "raw": schema.Raw, "opaque": schema.Raw, "any": schema.Raw, "instant": schema.MicroTime,
	} {
		f := s.Struct.Field(name)
		require.NotNil(t, f, name)
		assert.Equal(t, want, f.Schema.Wire, name)
	}
	assert.Nil(t, s.Struct.Field("Skipped"))
	assert.NotNil(t, s.Struct.Field("Untagged"))
	assert.NotNil(t, s.Struct.Field("azureDisk"), "field names are those of the wire")
	assert.Nil(t, s.Struct.Field("cloudBDisk"))
}

// views are objects in canonical form.
var views = []string{
	`{"metadata":{},"b":"","size":"","opaque":{"inner":""},"ext":null,"wait":"0s","two":[0,0],"Untagged":false,"port":null,"at":null}`,
	`{"apiVersion":"v1","kind":"F","metadata":{"name":"a","labels":{"l":"1"},"creationTimestamp":"2024-01-02T03:04:05Z","ownerReferences":[{"apiVersion":"v1","kind":"X","name":"n","uid":"u","controller":true}]},
	  "a":"1","b":"2","c":"3","at":"2024-01-02T03:04:05Z","size":"1Gi","limits":{"cpu":"1"},"port":"http","opaque":{"inner":"x"},"any":{"x":[1,2.5,null]},"raw":[1],"ext":{"k":"v"},
	  "fields":{"f:a":{}},"wait":"1m0s","zero":{"b":"q"},"u8":255,"f":1.5,"grid":[[1],[]],"two":[1,2],"ptrs":["a",null],"deep":{"x":[{"b":""}]},"instant":"2024-01-02T03:04:05.000006Z","Untagged":true,"azureDisk":"d"}`,
}

func TestViewRoundTrips(t *testing.T) {
	_, view := foreignSchema(t)
	for _, in := range views {
		m := tree(t, in)
		var v foreign
		require.NoError(t, view.Into(m, &v))
		out, err := view.From(&v)
		require.NoError(t, err)
		assert.JSONEq(t, in, text(t, out))
	}
}

func TestViewMatchesEncodingJSON(t *testing.T) {
	_, view := foreignSchema(t)
	v := foreign{Size: Quantity{"5"}, Port: IntOrString{"x"}, Grid: [][]int32{nil, {1}}, Optional: &Optional{"c"}, Ptrs: []*string{nil}, Deep: map[string][]inner{"a": nil}}
	v.Metadata.Finalizers = []string{"a"}
	b, err := json.Marshal(struct{ foreign }{v})
	require.NoError(t, err)
	out, err := view.From(v)
	require.NoError(t, err)
	want := tree(t, string(b))
	assert.JSONEq(t, text(t, want), text(t, out))
}

func TestViewErrors(t *testing.T) {
	_, view := foreignSchema(t)
	for in, want := range map[string]string{
		`{"b":1}`:                    "b: ",
		`{"u8":256}`:                 "u8: ",
		`{"u8":-1}`:                  "u8: ",
		`{"grid":[[1],["x"]]}`:       "grid: [1]: [0]: ",
		`{"deep":{"x":[{"b":5}]}}`:   "deep: x: [0]: b: ",
		`{"two":[1,2,3]}`:            "two: ",
		`{"metadata":{"labels":[]}}`: "metadata: labels: ",
		`{"f":"x"}`:                  "f: ",
		`{"Untagged":"x"}`:           "Untagged: ",
		`{"instant":"x"}`:            "instant: ",
		`{"wait":"x"}`:               "wait: ",
	} {
		err := view.Into(tree(t, in), &foreign{})
		require.Error(t, err, in)
		assert.True(t, strings.HasPrefix(err.Error(), want), "%s: %v", in, err)
	}
	assert.Error(t, view.Into(nil, foreign{}))
	assert.Error(t, view.Into(nil, &inner{}))
	_, err := view.From(inner{})
	assert.Error(t, err)
	_, err = view.From((*foreign)(nil))
	assert.Error(t, err)
}

func TestViewRejectsCyclicValues(t *testing.T) {
	type node struct {
		Next *node `json:"next,omitempty"`
	}
	view, err := schema.NewView(reflect.TypeFor[node](), names.Orch)
	require.NoError(t, err)
	n := &node{}
	n.Next = n
	_, err = view.From(n)
	assert.ErrorContains(t, err, "nested too deep")
}

func ExampleGo() {
	type Spec struct {
		Size int `json:"size" schema:"min=1,max=10,default=3"`
	}
	type Box struct {
		Spec Spec `json:"spec"`
	}
	s, err := schema.Go(reflect.TypeFor[Box](), names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	box := map[string]any{"spec": map[string]any{"colour": "red"}}
	unknown, _ := s.Normalize(box)
	_ = s.FillDefaults(box)
	fmt.Println(unknown, box)
	box["spec"].(map[string]any)["size"] = int64(11)
	fmt.Println(s.Validate(box, nil))
	// Output:
	// [spec.colour] map[spec:map[size:3]]
	// [{FieldValueInvalid Invalid value: 11: must be less than or equal to 10 spec.size}]
}

func ExampleView() {
	type Box struct {
		Size int `json:"size"`
	}
	view, err := schema.NewView(reflect.TypeFor[Box](), names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	var b Box
	err = view.Into(map[string]any{"size": int64(4)}, &b)
	fmt.Println(b.Size, err)
	b.Size++
	tree, err := view.From(b)
	fmt.Println(tree, err)
	// Output:
	// 4 <nil>
	// map[size:5] <nil>
}
