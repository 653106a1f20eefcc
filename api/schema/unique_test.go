package schema

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

type uniqueThing struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Host  string                `json:"host" schema:"unique"`
	Count *int64                `json:"count,omitempty" schema:"unique=cluster"`
	Port  meta.IntOrString      `json:"port,omitzero" schema:"unique"`
	Tags  []string              `json:"tags,omitempty" schema:"items.unique"`
	Of    map[string]uniquePart `json:"of,omitempty"`
	Parts []uniquePart          `json:"parts,omitempty"`
	Self  *plainThing           `json:"self,omitempty"`
}

type uniquePart struct {
	Name string `json:"name" schema:"unique=cluster"`
}

type plainThing struct {
	Self *plainThing `json:"self,omitempty"`
}

func TestUniqueValues(t *testing.T) {
	s, err := Go(reflect.TypeFor[uniqueThing](), names.Kubernetes)
	require.NoError(t, err)
	require.True(t, s.HasUnique())
	require.False(t, gadgetSchema(t).HasUnique())
	long := strings.Repeat("x", 4000)
	values := s.UniqueValues(tree(t, `{"host":"h","count":0,"port":5,"tags":["","a","a","`+long+`"],"self":{"self":{}},
		"of":{"z":{"name":"n"},"a":{"name":"n"}},"parts":[{"name":""},{"name":"n"}]}`))
	var got []string
	for _, v := range values {
		c := v.Duplicate()
		assert.Equal(t, meta.CauseDuplicate, c.Reason)
		assert.Less(t, len(v.Text), 140)
		got = append(got, v.Field+v.Text[:2]+" "+v.Scope+" "+c.Field+" "+c.Message[:min(len(c.Message), 22)])
	}
	assert.Equal(t, []string{
		`host=h namespace host Duplicate value: "h"`,
		"count:\x01 cluster count Duplicate value: 0",
		"port:\x01 namespace port Duplicate value: 5",
		`tags[]=a namespace tags[1] Duplicate value: "a"`,
		`tags[]=a namespace tags[2] Duplicate value: "a"`,
		`tags[]#9 namespace tags[3] Duplicate value: "xxxx`,
		`of[*].name=n cluster of.a.name Duplicate value: "n"`,
		`of[*].name=n cluster of.z.name Duplicate value: "n"`,
		`parts[].name=n cluster parts[1].name Duplicate value: "n"`,
	}, got)
	assert.Empty(t, s.UniqueValues(tree(t, `{"host":"","port":0,"tags":[],"parts":null,"of":3}`)))
	text, number := s.UniqueValues(tree(t, `{"port":"5"}`)), s.UniqueValues(tree(t, `{"port":5}`))
	assert.NotEqual(t, text[0].Text, number[0].Text)
}

func TestUniqueIsForScalars(t *testing.T) {
	type head struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
	}
	for want, typ := range map[string]reflect.Type{
		"for scalars": reflect.TypeFor[struct {
			head
			A []string `json:"a" schema:"unique"`
		}](),
		"use items.unique": reflect.TypeFor[struct {
			head
			A map[string]string `json:"a" schema:"unique"`
		}](),
		"scalars; use": reflect.TypeFor[struct {
			head
			A any `json:"a" schema:"unique"`
		}](),
		"the only value is cluster": reflect.TypeFor[struct {
			head
			A string `json:"a" schema:"unique=world"`
		}](),
		"a.self: a recursive struct": reflect.TypeFor[struct {
			head
			A uniqueSelf `json:"a"`
		}](),
	} {
		_, err := Go(typ, names.Kubernetes)
		assert.ErrorContains(t, err, want)
	}
}

type uniqueSelf struct {
	Name string      `json:"name" schema:"unique"`
	Self *uniqueSelf `json:"self,omitempty"`
}
