package convert_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/convert"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

func converter(t testing.TB, p names.Profile, kinds ...*registry.Kind) *convert.Converter {
	t.Helper()
	c, err := convert.New(p, kinds...)
	require.NoError(t, err)
	return c
}

// Boxes of two versions: they differ in a name and in the default of another field.
type (
	box struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Width int32    `json:"width,omitempty"`
			Lid   string   `json:"lid,omitempty" schema:"default=open"`
			Same  string   `json:"same,omitempty" schema:"default=s"`
			Empty struct{} `json:"empty"`
			Given *inner   `json:"given,omitempty"`
		} `json:"spec"`
		Status struct {
			Full bool `json:"full"`
		} `json:"status,omitempty"`
	}
	oldBox struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Size  int32  `json:"size,omitempty"`
			Lid   string `json:"lid,omitempty" schema:"default=closed"`
			Same  string `json:"same,omitempty" schema:"default=s"`
			Given *inner `json:"given,omitempty"`
		} `json:"spec"`
	}
	inner struct {
		A string `json:"a,omitempty" schema:"default=b"`
	}
)

func boxes() *registry.Kind {
	return registry.Of(registry.Definition[box]{Group: "example.com", Version: "v1", Kind: "Box", Plural: "boxes", Versions: []registry.VersionOf[box]{
		registry.Spoke[oldBox, box]{
			Version: "v1beta1",
			ToHub: func(in *oldBox, out *box) error {
				out.Spec.Width, out.Spec.Lid, out.Spec.Same, out.Spec.Given = in.Spec.Size, in.Spec.Lid, in.Spec.Same, in.Spec.Given
				return nil
			},
			FromHub: func(in *box, out *oldBox) error {
				out.Spec.Size, out.Spec.Lid, out.Spec.Same, out.Spec.Given = in.Spec.Width, in.Spec.Lid, in.Spec.Same, in.Spec.Given
				return nil
			},
		},
	}})
}

func TestManifests(t *testing.T) {
	c := converter(t, names.Orch, boxes())
	for name, row := range map[string]struct{ in, to, out, fault string }{
		"a default that differs is written out, one that does not is not": {
			in:  `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"size":3}}`,
			to:  "example.com/v1",
			out: "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: closed\n  width: 3\n",
		},
		"what is said stays": {
			in:  `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"lid":"open","same":"s","given":{}}}`,
			to:  "example.com/v1",
			out: "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  labels:\n    x: \"y\"\n  name: a\nspec:\n  given: {}\n  lid: open\n  same: s\n",
		},
		"back": {
			in:  `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{"width":1}}`,
			to:  "example.com/v1beta1",
			out: "apiVersion: example.com/v1beta1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: open\n  size: 1\n",
		},
		"no version: the preferred one": {
			in:  "apiVersion: example.com/v1beta1\nkind: Box\nmetadata: {name: a}\nspec: {lid: open}\n",
			out: "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: open\n",
		},
		"other documents stay": {
			in:  "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n---\napiVersion: example.com/v1beta1\nkind: Box\nmetadata: {name: a}\nspec: {lid: open}\n",
			to:  "example.com/v1",
			out: "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n---\napiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: open\n",
		},
		"a version that the kind has not": {
			in:  "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\n",
			to:  "example.com/v9",
			out: "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\n",
		},
		"items": {
			in:  `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"open"}},{"apiVersion":"v1","kind":"Pod"}]}`,
			to:  "example.com/v1",
			out: "apiVersion: v1\nitems:\n- apiVersion: example.com/v1\n  kind: Box\n  metadata:\n    name: a\n  spec:\n    lid: open\n- apiVersion: v1\n  kind: Pod\nkind: List\n",
		},
		"an unknown field":    {in: `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"width":3}}`, to: "example.com/v1", fault: `unknown field "spec.width"`},
		"a type":              {in: `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"size":"x"}}`, to: "example.com/v1", fault: "cannot unmarshal string"},
		"an item of no type":  {in: `{"apiVersion":"v1","kind":"List","items":[3]}`, to: "example.com/v1", fault: "items[0] is no object"},
		"what is no manifest": {in: "- a\n", fault: "document 1"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := c.Manifests(t.Context(), []byte(row.in), row.to)
			if row.fault != "" {
				require.ErrorContains(t, err, row.fault)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, row.out, string(out))
		})
	}
}

// TestNewTellsFaults of kinds.
func TestNewTellsFaults(t *testing.T) {
	_, err := convert.New(names.Orch, registry.Of(registry.Definition[box]{Group: "example.com", Version: "V1"}))
	require.Error(t, err)
}

func FuzzManifests(f *testing.F) {
	c := converter(f, names.Kubernetes, append(builtin.Kinds(), boxes())...)
	f.Add([]byte(scaler), "autoscaling/v2")
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"example.com/v1beta1","kind":"Box","spec":{"size":3}}]}`), "")
	f.Fuzz(func(t *testing.T, data []byte, to string) {
		out, err := c.Manifests(t.Context(), data, to)
		if err != nil || len(out) == 0 {
			return
		}
		again, err := c.Manifests(t.Context(), out, to)
		require.NoError(t, err, "%s", out)
		if to != "" && json.Valid(data) {
			require.Equal(t, string(out), string(again), "what is converted stays")
		}
	})
}
