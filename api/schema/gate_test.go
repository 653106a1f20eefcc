package schema

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

type gatedThing struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Plain string               `json:"plain,omitempty"`
	Blink *gatedPart           `json:"blink,omitempty" schema:"gate=Blink"`
	Parts []gatedPart          `json:"parts,omitempty"`
	Of    map[string]gatedPart `json:"of,omitempty"`
	Many  []string             `json:"many,omitempty" schema:"gate=Many"`
}

type gatedPart struct {
	Name string `json:"name,omitempty"`
	Dim  *int   `json:"dim,omitempty" schema:"min=0,gate=Dim"`
}

// TestDropGatedKeepsUsedFields: a field whose gate is off is dropped unless the object used it anywhere.
func TestDropGatedKeepsUsedFields(t *testing.T) {
	s, err := Go(reflect.TypeFor[gatedThing](), names.Kubernetes)
	require.NoError(t, err)
	assert.Equal(t, []string{"Blink", "Dim", "Many"}, s.Gates())
	const whole = `{"plain":"p","blink":{"name":"b","dim":0},"parts":[{"name":"a","dim":1},{"name":"b"},3,null],"of":{"k":{"dim":2}},"many":["x"]}`
	for _, c := range []struct{ off, old, object, want string }{
		{"", "", whole, whole},
		{"Other", "", whole, whole},
		{"Blink", "", whole, `{"plain":"p","parts":[{"name":"a","dim":1},{"name":"b"},3,null],"of":{"k":{"dim":2}},"many":["x"]}`},
		{"Blink", `{"blink":{}}`, `{"blink":{"name":"b"}}`, `{}`},
		{"Blink", `{"blink":null}`, `{"blink":{"name":"b"}}`, `{}`},
		{"Blink", `{"blink":{"name":"a"}}`, `{"blink":{"name":"b"}}`, `{"blink":{"name":"b"}}`},
		{"Dim", "", whole, `{"plain":"p","blink":{"name":"b"},"parts":[{"name":"a"},{"name":"b"},3,null],"of":{"k":{}},"many":["x"]}`},
		{"Dim", `{"parts":[{"name":"z","dim":0}]}`, `{"parts":[{"dim":1}],"of":{"k":{"dim":2}},"blink":{"dim":3}}`, `{"parts":[{"dim":1}],"of":{"k":{"dim":2}},"blink":{"dim":3}}`},
		{"Blink", "", `{"blink":{}}`, `{}`},
		{"Dim", `{"of":{"z":{"dim":0}}}`, `{"of":{"k":{"dim":2}}}`, `{"of":{"k":{"dim":2}}}`},
		{"Dim", `{"parts":{"dim":0},"of":[{"dim":0}],"blink":[]}`, `{"parts":{"dim":1},"of":[{"dim":2}],"blink":7}`, `{"parts":{"dim":1},"of":[{"dim":2}],"blink":7}`},
		{"Many", `{"many":[]}`, whole, `{"plain":"p","blink":{"name":"b","dim":0},"parts":[{"name":"a","dim":1},{"name":"b"},3,null],"of":{"k":{"dim":2}}}`},
	} {
		object := tree(t, c.object)
		var old map[string]any
		if c.old != "" {
			old = tree(t, c.old)
		}
		off := func(gate string) bool { return gate == c.off }
		if c.old == "" {
			assert.Equal(t, c.object != c.want, s.HasGated(object, off), "%s off", c.off)
		}
		s.DropGated(object, old, off)
		assert.Equal(t, tree(t, c.want), object, "%s off, before %s", c.off, c.old)
	}
	assert.Empty(t, gadgetSchema(t).Gates())
}

func TestGoRejectsInvalidGates(t *testing.T) {
	type head struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
	}
	type within struct {
		Self *within `json:"self,omitempty"`
		On   bool    `json:"on,omitempty" schema:"gate=Blink"`
	}
	for want, typ := range map[string]reflect.Type{
		"tag schema, gate: the value is missing": reflect.TypeFor[struct {
			head
			A string `json:"a,omitempty" schema:"gate"`
		}](),
		"tag schema, items.gate: unknown word": reflect.TypeFor[struct {
			head
			A []string `json:"a,omitempty" schema:"items.gate=Blink"`
		}](),
		"a recursive struct cannot have unique or gated fields": reflect.TypeFor[struct {
			head
			A within `json:"a"`
		}](),
		"tag schema, gate: a required field cannot have a gate, because no object would be valid while it is off": reflect.TypeFor[struct {
			head
			A string `json:"a,omitempty" schema:"gate=Blink,default=x,required,optional"`
		}](),
		`tag schema, part.required: a field with a gate cannot be required, because no object would be valid while it is off`: reflect.TypeFor[struct {
			head
			A struct {
				Part *gatedPart `json:"part,omitempty" schema:"gate=Blink"`
			} `json:"a,omitempty" schema:"part.required"`
		}](),
		`tag schema, listMapKeys: the field "name" has a gate: items would have no identity while the gate is off`: reflect.TypeFor[struct {
			head
			A []struct {
				Name string `json:"name" schema:"gate=Blink"`
			} `json:"a,omitempty" schema:"listType=map,listMapKeys=name"`
		}](),
	} {
		_, err := Go(typ, names.Kubernetes)
		assert.ErrorContains(t, err, want)
	}
}
