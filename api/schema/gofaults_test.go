package schema

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// faultOf returns the only error of a Go type and the field that it names.
func faultOf(t *testing.T, typ reflect.Type) (field, text string) {
	t.Helper()
	_, err := Go(typ, names.Orch)
	require.Error(t, err)
	var f *FieldError
	require.True(t, errors.As(err, &f), "%T: %v", err, err)
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		assert.Len(t, joined.Unwrap(), 1, "%v", err)
	}
	return f.Field, f.Err.Error()
}

type (
	listOfItself    []listOfItself
	mapOfItself     map[string]mapOfItself
	pointerToItself *pointerToItself
	chainA          []chainB
	chainB          map[string]chainA

	// InlineSelf and InlineOther are exported, as only such pointers may be inline.
	InlineSelf struct {
		*InlineSelf `json:",inline"`
		N           int `json:"n"`
	}
	InlineOther  struct{ *InlineSecond }
	InlineSecond struct{ *InlineOther }

	tree1    []treeNode
	treeNode struct {
		Kids  tree1            `json:"kids,omitempty"`
		Named map[string]tree1 `json:"named,omitempty"`
		Next  *treeNode        `json:"next,omitempty"`
	}
)

// TestGoRejectsRecursiveTypes: a type that contains itself is an error unless a struct is in
// between.
func TestGoRejectsRecursiveTypes(t *testing.T) {
	const itself = " contains itself without a struct in between"
	cases := []struct {
		of    reflect.Type
		field string
		text  string
	}{
		{reflect.TypeFor[struct{ F listOfItself }](), "F", "type schema.listOfItself" + itself},
		{reflect.TypeFor[struct{ F mapOfItself }](), "F", "type schema.mapOfItself" + itself},
		{reflect.TypeFor[struct{ F pointerToItself }](), "F", "type schema.pointerToItself" + itself},
		{reflect.TypeFor[struct{ F chainA }](), "F", "type schema.chainA" + itself},
		{reflect.TypeFor[struct{ F error }](), "F", "type error has no JSON encoding"},
		{reflect.TypeFor[InlineSelf](), "InlineSelf", "struct schema.InlineSelf cannot be inline in itself"},
		{reflect.TypeFor[InlineOther](), "InlineOther", "struct schema.InlineOther cannot be inline in itself"},
	}
	for _, c := range cases {
		field, text := faultOf(t, c.of)
		assert.Equal(t, c.field, field, "%s", c.of)
		assert.Equal(t, c.text, text, "%s", c.of)
	}
	for _, inline := range []reflect.Type{reflect.TypeFor[InlineSelf](), reflect.TypeFor[InlineOther]()} {
		_, err := NewView(inline, names.Orch)
		assert.ErrorContains(t, err, "cannot be inline")
	}
	_, err := Go(reflect.TypeFor[pointerToItself](), names.Orch)
	assert.Error(t, err)
	_, err = Go(reflect.TypeFor[treeNode](), names.Orch)
	assert.NoError(t, err)
}

// TestGoValidatesDefaults: an invalid default is reported with the message for objects, and names
// the field.
func TestGoValidatesDefaults(t *testing.T) {
	type inner struct {
		Name string `json:"name" schema:"format=dns-label,default=NOT A LABEL"`
	}
	const label = `default: Invalid value: "NOT A LABEL": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`
	cases := []struct {
		of          reflect.Type
		field, text string
	}{
		{reflect.TypeFor[inner](), "Name", label},
		{reflect.TypeFor[struct{ In *inner }](), "Name", label},
		{reflect.TypeFor[struct {
			N int `schema:"max=2,default=5"`
		}](), "N", "default: Invalid value: 5: must be less than or equal to 2"},
		{reflect.TypeFor[struct {
			L []string `schema:"items.maxLength=1,default=[\"a\"\\,\"bc\"]"`
		}](), "L", "default: [1]: Too long: may not be more than 1 byte"},
		{reflect.TypeFor[struct {
			L []string `schema:"default=[1]"`
		}](), "L", "default: [0]: json: cannot unmarshal number into Go value of type string"},
	}
	for _, c := range cases {
		field, text := faultOf(t, c.of)
		assert.Equal(t, c.field, field)
		assert.Equal(t, c.text, text)
	}
}

// TestGoErrorsAreFieldErrors: errors found in the finished schema are FieldErrors, too.
func TestGoErrorsAreFieldErrors(t *testing.T) {
	type node struct {
		Next *node  `json:"next,omitempty"`
		ID   string `json:"id" schema:"unique"`
	}
	_, text := faultOf(t, reflect.TypeFor[node]())
	assert.Equal(t, "next: a recursive struct cannot have unique or gated fields", text)
}

// TestGoRejectsPointlessTags: a word that no value could violate, or that every value would
// violate, is an error.
func TestGoRejectsPointlessTags(t *testing.T) {
	type item struct {
		Name string `json:"name"`
	}
	fields := []struct {
		of   any
		tag  string
		want string // empty: it is good
	}{
		{"", "format=dns-lable", `tag schema, format: unknown format "dns-lable"`},
		{[]string{}, "format=dns-label", `tag schema, format: "dns-label" is for strings`},
		{[]string{}, "items.format=dns-label", ""},
		{0, "format=dns-label", `tag schema, format: "dns-label" is for strings`},
		{"", "format=uuid", ""},
		{"", "format=password", ""},
		{"", "format=int32", `tag schema, format: "int32" is for integers of at least that width`},
		{int32(0), "format=int-or-percent", `tag schema, format: "int-or-percent" is for integers that may be strings`},
		{int32(0), "format=int64", `tag schema, format: "int64" is for integers of at least that width`},
		{int64(0), "format=int32", ""},
		{0.5, "format=float", ""},
		{meta.IntOrString{}, "format=int-or-percent", ""},
		{meta.Time{}, "format=date", `tag schema, format: "date" is for strings`},
		{map[string]string{}, "format=labels", ""},
		{map[string]int{}, "format=labels", `tag schema, format: "labels" is for maps of strings`},
		{item{}, "format=label-selector", `tag schema, format: "label-selector" is for selectors`},
		{[]int{}, "enum=1|2", `tag schema, enum: "1" does not fit the type of the field`},
		{[]int{}, "items.enum=1|2", ""},
		{0, "enum=1|true", `tag schema, enum: "true" does not fit the type of the field`},
		{int8(0), "enum=1|300", `tag schema, enum: "300" does not fit the type of the field`},
		{0, "default=true", `tag schema, default: "true" does not fit the type of the field`},
		{false, "default=1", `tag schema, default: "1" does not fit the type of the field`},
		{meta.Quantity{}, "enum=x", "enum: " + meta.QuantityForm},
		{meta.IntOrString{}, "default=50%", ""},
		{0, "multipleOf=0", `tag schema, multipleOf: "0" is not greater than 0`},
		{0, "multipleOf=-2", `tag schema, multipleOf: "-2" is not greater than 0`},
		{0, "min=NaN", `tag schema, min: "NaN" is not a finite number`},
		{0, "max=Inf", `tag schema, max: "Inf" is not a finite number`},
		{0, "min=1,exclusiveMin=2", "tag schema, exclusiveMin: the bound is set twice"},
		{0, "range=1|5,max=3", "tag schema, max: the bound is set twice"},
		{[]item{}, "listType=map,listMapKeys=nosuch", `tag schema, listMapKeys: the items have no field "nosuch"`},
		{[]item{}, "listType=map,listMapKeys=name", ""},
		{[]item{}, "listMapKeys=name", "tag schema: listMapKeys is for lists with listType=map"},
		{[]string{}, "mapType=atomic", "tag schema: mapType is for maps and structs"},
	}
	for _, f := range fields {
		typ := reflect.StructOf([]reflect.StructField{{Name: "F", Type: reflect.TypeOf(f.of), Tag: reflect.StructTag(`json:"f" schema:"` + f.tag + `"`)}})
		if f.want == "" {
			_, err := Go(typ, names.Orch)
			assert.NoError(t, err, "%T %s", f.of, f.tag)
			continue
		}
		_, text := faultOf(t, typ)
		assert.Equal(t, f.want, text, "%T %s", f.of, f.tag)
	}
}

// TestGoNormalizesEnums: enum words are normalized before the comparison with values.
func TestGoNormalizesEnums(t *testing.T) {
	s, err := Go(reflect.TypeFor[struct {
		Q meta.Quantity `json:"q" schema:"enum=1024Mi|2Gi"`
	}](), names.Orch)
	require.NoError(t, err)
	o := tree(t, `{"q":"1024Mi"}`)
	_, faults := s.Normalize(o)
	assert.Empty(t, faults)
	assert.Empty(t, s.Validate(o, nil))
}

// TestGoChecksKeysOfRecursiveItems: the items of a list may be the struct that contains the
// list, which is incomplete when the list is read.
func TestGoChecksKeysOfRecursiveItems(t *testing.T) {
	type node struct {
		Kids []node `json:"kids,omitempty" schema:"listType=map,listMapKeys=name"`
		Name string `json:"name"`
	}
	_, err := Go(reflect.TypeFor[node](), names.Orch)
	assert.NoError(t, err)
}
