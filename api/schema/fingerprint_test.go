package schema_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

type small struct {
	Size  int32  `json:"size,omitempty"`
	Color string `json:"color,omitempty"`
}

func shapeOf[T any](t *testing.T) string {
	s, err := schema.Go(reflect.TypeFor[T](), names.Orch)
	require.NoError(t, err)
	require.NoError(t, s.Compile())
	return s.Fingerprint()
}

// TestFingerprint lists changes of a Go type that change its fingerprint, and others.
func TestFingerprint(t *testing.T) {
	type thing struct {
		A small `json:"a"`
	}
	same := map[string]string{
		"another order": shapeOf[struct {
			A struct {
				Color string `json:"color,omitempty"`
				Size  int32  `json:"size,omitempty"`
			} `json:"a"`
		}](t),
		"a rule": shapeOf[struct {
			A struct {
				Color string `json:"color,omitempty" schema:"enum=red|blue"`
				Size  int32  `json:"size,omitempty" schema:"min=3"`
			} `json:"a"`
		}](t),
	}
	for name, shape := range same {
		require.Equal(t, shapeOf[thing](t), shape, name)
	}
	other := map[string]string{
		"a type": shapeOf[struct {
			A struct {
				Color string `json:"color,omitempty"`
				Size  string `json:"size,omitempty"`
			} `json:"a"`
		}](t),
		"a size": shapeOf[struct {
			A struct {
				Color string `json:"color,omitempty"`
				Size  int64  `json:"size,omitempty"`
			} `json:"a"`
		}](t),
		"a name": shapeOf[struct {
			A struct {
				Colour string `json:"colour,omitempty"`
				Size   int32  `json:"size,omitempty"`
			} `json:"a"`
		}](t),
		"a field less": shapeOf[struct {
			A struct {
				Size int32 `json:"size,omitempty"`
			} `json:"a"`
		}](t),
		"a field more": shapeOf[struct {
			A struct {
				small
				Shape string `json:"shape,omitempty"`
			} `json:"a"`
		}](t),
		"a default": shapeOf[struct {
			A struct {
				Color string `json:"color,omitempty" schema:"default=red"`
				Size  int32  `json:"size,omitempty"`
			} `json:"a"`
		}](t),
		"a pointer": shapeOf[struct {
			A *small `json:"a"`
		}](t),
		"a list": shapeOf[struct {
			A []small `json:"a"`
		}](t),
		"a map": shapeOf[struct {
			A map[string]small `json:"a"`
		}](t),
		"what is left out": shapeOf[struct {
			A struct {
				Color string `json:"color"`
				Size  int32  `json:"size,omitempty"`
			} `json:"a"`
		}](t),
	}
	for name, shape := range other {
		require.NotEqual(t, shapeOf[thing](t), shape, name)
	}
	require.Equal(t, "any", (*schema.Schema)(nil).Fingerprint())
}

type twig struct {
	Below []twig `json:"below,omitempty"`
	small `json:",inline"`
}

func TestFingerprintOfRecursiveStructs(t *testing.T) {
	require.NotEmpty(t, shapeOf[twig](t))
	require.Equal(t, shapeOf[twig](t), shapeOf[twig](t))
}

func ExampleSchema_Coerce() {
	type spec struct {
		Size  int32            `json:"size,omitempty"`
		Ports []int32          `json:"ports,omitempty"`
		Parts map[string]small `json:"parts,omitempty"`
	}
	s, _ := schema.Go(reflect.TypeFor[struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            spec `json:"spec"`
	}](), names.Orch)
	_ = s.Compile()
	stored := map[string]any{"spec": map[string]any{
		"size": "three", "ports": []any{int64(80), "http"},
		"parts": map[string]any{"a": map[string]any{"size": true, "color": "red"}, "b": "blue"},
		"gone":  "a field of an older release",
	}}
	unknown, faults := s.Coerce(stored)
	fmt.Println("unknown:", unknown)
	for _, f := range faults {
		fmt.Println("left out:", f.Field)
	}
	text, _ := json.Marshal(stored["spec"])
	fmt.Println(string(text))
	// Output:
	// unknown: [spec.gone]
	// left out: spec.parts.a.size
	// left out: spec.parts.b
	// left out: spec.ports[1]
	// left out: spec.size
	// {"parts":{"a":{"color":"red"}}}
}

// TestCoerceDropsWholeLists: an item that cannot be converted drops its list but no other
// list.
func TestCoerceDropsWholeLists(t *testing.T) {
	type box struct {
		Parts []small            `json:"parts,omitempty"`
		Rows  [][]small          `json:"rows,omitempty"`
		Maps  []map[string]small `json:"maps,omitempty"`
		Name  string             `json:"name,omitempty"`
	}
	s, err := schema.Go(reflect.TypeFor[box](), names.Orch)
	require.NoError(t, err)
	require.NoError(t, s.Compile())
	good := map[string]any{"color": "red", "size": int64(3)}
	for field, list := range map[string][]any{
		"parts": {"none", good},
		"rows":  {[]any{"none"}, []any{good}},
		"maps":  {"none", map[string]any{"a": good}},
	} {
		tree := map[string]any{"name": "n", field: list}
		_, faults := s.Coerce(tree)
		require.Equal(t, map[string]any{"name": "n"}, tree, field)
		require.Len(t, faults, 1, field)
	}
	tree := map[string]any{"parts": []any{map[string]any{"color": "red", "size": "large"}, good}}
	_, faults := s.Coerce(tree)
	require.Equal(t, map[string]any{"parts": []any{map[string]any{"color": "red"}, good}}, tree)
	require.Len(t, faults, 1)
}
