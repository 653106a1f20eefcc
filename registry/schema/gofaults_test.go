package schema

import (
	"errors"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/names"
)

// faultOf returns the only fault of a Go type, and the field that it speaks of.
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

// TestGoEndsWithTypesThatHoldThemselves: such a type is a fault, unless there is a
// struct on the way.
func TestGoEndsWithTypesThatHoldThemselves(t *testing.T) {
	const itself = " holds itself without a struct in between"
	cases := []struct {
		of    reflect.Type
		field string
		text  string
	}{
		{reflect.TypeFor[struct{ F listOfItself }](), "F", "type schema.listOfItself" + itself},
		{reflect.TypeFor[struct{ F mapOfItself }](), "F", "type schema.mapOfItself" + itself},
		{reflect.TypeFor[struct{ F pointerToItself }](), "F", "type schema.pointerToItself" + itself},
		{reflect.TypeFor[struct{ F chainA }](), "F", "type schema.chainA" + itself},
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

// TestGoJudgesDefaults: a default obeys the rules of its field, told as writers of
// the object would be, with the field.
func TestGoJudgesDefaults(t *testing.T) {
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
		}](), "L", "default: [1]: Too long: may not be more than 1 character"},
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

// TestGoFaultsAreFieldErrors: those that are found in the finished schema as well.
func TestGoFaultsAreFieldErrors(t *testing.T) {
	type node struct {
		Next *node  `json:"next,omitempty"`
		ID   string `json:"id" schema:"unique"`
	}
	_, text := faultOf(t, reflect.TypeFor[node]())
	assert.Equal(t, "next: a struct that holds itself cannot have unique fields", text)
}
