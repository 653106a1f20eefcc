package convert_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/convert"
)

func converter(t testing.TB, p names.Profile, kinds ...*registry.Kind) *convert.Converter {
	t.Helper()
	c, err := convert.New(p, kinds...)
	require.NoError(t, err)
	return c
}

// Two versions of a box. They differ in the name of a field and in the defaults of other fields.
type (
	box struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Width int32    `json:"width,omitempty" schema:"max=10"`
			Lid   string   `json:"lid,omitempty" schema:"default=open"`
			Same  string   `json:"same,omitempty" schema:"default=s"`
			Empty struct{} `json:"empty"`
			Given *inner   `json:"given,omitempty"`
			Parts []part   `json:"parts,omitempty" schema:"listType=atomic"`
		} `json:"spec"`
		Status struct {
			Full bool `json:"full"`
		} `json:"status,omitempty"`
	}
	oldBox struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Spec            struct {
			Size  int32     `json:"size,omitempty"`
			Lid   string    `json:"lid,omitempty" schema:"default=closed"`
			Same  string    `json:"same,omitempty" schema:"default=s"`
			Given *inner    `json:"given,omitempty"`
			Parts []oldPart `json:"parts,omitempty" schema:"listType=atomic"`
		} `json:"spec"`
	}
	inner struct {
		A string `json:"a,omitempty" schema:"default=b"`
	}
	part struct {
		Name  string `json:"name,omitempty"`
		Color string `json:"color,omitempty" schema:"default=red"`
		Path  string `json:"path,omitempty" schema:"default=/x"`
	}
	oldPart struct {
		Name  string `json:"name,omitempty"`
		Color string `json:"color,omitempty" schema:"default=blue"`
		Path  string `json:"path,omitempty" schema:"default=/x"`
	}
)

func boxes() *registry.Kind {
	return registry.Of(registry.Definition[box]{Group: "example.com", Version: "v1", Kind: "Box", Plural: "boxes", Versions: []registry.VersionOf[box]{
		registry.Spoke[oldBox, box]{
			Version: "v1beta1",
			ToHub: func(in *oldBox, out *box) error {
				out.Spec.Width, out.Spec.Lid, out.Spec.Same, out.Spec.Given = in.Spec.Size, in.Spec.Lid, in.Spec.Same, in.Spec.Given
				for _, p := range in.Spec.Parts {
					out.Spec.Parts = append(out.Spec.Parts, part(p))
				}
				return nil
			},
			FromHub: func(in *box, out *oldBox) error {
				out.Spec.Size, out.Spec.Lid, out.Spec.Same, out.Spec.Given = in.Spec.Width, in.Spec.Lid, in.Spec.Same, in.Spec.Given
				for _, p := range in.Spec.Parts {
					out.Spec.Parts = append(out.Spec.Parts, oldPart(p))
				}
				return nil
			},
		},
	}})
}

const closed = `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"size":3}}`

func TestManifestsConvertsDocuments(t *testing.T) {
	c := converter(t, names.Orch, boxes())
	for name, row := range map[string]struct{ in, to, out, fault string }{
		"only a default that differs is written": {
			in:  closed,
			to:  "example.com/v1",
			out: `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"closed","width":3}}`,
		},
		"set fields stay": {
			in:  `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a","labels":{"x":"y"}},"spec":{"lid":"open","same":"s","given":{}}}`,
			to:  "example.com/v1",
			out: `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"labels":{"x":"y"},"name":"a"},"spec":{"given":{},"lid":"open","same":"s"}}`,
		},
		"to the older version": {
			in:  "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\nspec: {width: 1}\n",
			to:  "example.com/v1beta1",
			out: "apiVersion: example.com/v1beta1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: open\n  size: 1\n",
		},
		"null documents of templates stay": {
			in:  "null\n---\napiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec: {width: 1}\n---\nnull\n",
			to:  "example.com/v1beta1",
			out: "null\n---\napiVersion: example.com/v1beta1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: open\n  size: 1\n---\nnull\n",
		},
		"the preferred version is the default": {
			in:  "apiVersion: example.com/v1beta1\nkind: Box\nmetadata: {name: a}\nspec: {lid: open}\n",
			out: "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: open\n",
		},
		"other documents and comments stay": {
			in: "# a pod\napiVersion: v1 # of today\nkind: Pod\nmetadata: {name: p}\n\n# the next\n---\n# a box\n\n" +
				"apiVersion: example.com/v1beta1\nkind: Box # old\nmetadata: {name: a}\nspec: {lid: open}\n\n# end\n---\n# nothing\n",
			to: "example.com/v1",
			out: "# a pod\napiVersion: v1 # of today\nkind: Pod\nmetadata: {name: p}\n\n# the next\n---\n# a box\n\n" +
				"apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: open\n# end\n---\n# nothing\n",
		},
		"a stream of JSON keeps its indentation": {
			in: closed + "{\n\t\"kind\": \"Pod\"\n}" + "\n\n{\n \"apiVersion\": \"example.com/v1beta1\", \"kind\": \"Box\"\n}\n",
			out: `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"closed","width":3}}` + "{\n\t\"kind\": \"Pod\"\n}" +
				"\n\n{\n \"apiVersion\": \"example.com/v1\",\n \"kind\": \"Box\",\n \"spec\": {\n  \"lid\": \"closed\"\n }\n}\n",
		},
		"on the line of the separator": {
			in:  "--- {apiVersion: example.com/v1beta1, kind: Box, spec: {lid: open}}\n--- " + closed + "\n",
			out: "---\napiVersion: example.com/v1\nkind: Box\nspec:\n  lid: open\n--- " + `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"closed","width":3}}` + "\n",
		},
		"a version that only some kinds have": {
			in:  "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\n---\napiVersion: other.com/v1\nkind: Box",
			to:  "other.com/v2",
			out: "apiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\n---\napiVersion: other.com/v2\nkind: Box\n",
		},
		"defaults in the items of a list": {
			in:  `{"apiVersion":"example.com/v1beta1","kind":"Box","spec":{"lid":"open","parts":[{"name":"a"},{"color":"red"},{"path":"/x"},{"path":"/y"}]}}`,
			out: `{"apiVersion":"example.com/v1","kind":"Box","spec":{"lid":"open","parts":[{"color":"blue","name":"a"},{"color":"red"},{"color":"blue","path":"/x"},{"color":"blue","path":"/y"}]}}`,
		},
		"items of a List": {
			in:  `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"open"}},{"apiVersion":"v1","kind":"Pod"}]}`,
			to:  "example.com/v1",
			out: `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"open"}},{"apiVersion":"v1","kind":"Pod"}]}`,
		},
		"items without conversion": {
			in:  `{ "apiVersion":"v1","kind":"List","items":[{"kind":"Pod","apiVersion":"v1"}]}`,
			out: `{ "apiVersion":"v1","kind":"List","items":[{"kind":"Pod","apiVersion":"v1"}]}`,
		},
		"a list of a kind": {
			in: `{"apiVersion":"example.com/v1beta1","kind":"BoxList","metadata":{"resourceVersion":"3"},"items":[{"metadata":{"name":"a"},"spec":{"size":3,"given":{}}},` + closed + `]}`,
			out: `{"apiVersion":"example.com/v1","kind":"BoxList","metadata":{"resourceVersion":"3"},"items":[{"metadata":{"name":"a"},"spec":{"given":{},"lid":"closed","width":3}},` +
				`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"closed","width":3}}]}`,
		},
		"empty":                     {in: "# nothing\n---\n", out: "# nothing\n---\n"},
		"a misspelt version":        {in: closed, to: "exmaple.com/v1", fault: `unknown version: no kind has the version exmaple.com/v1; did you mean "example.com/v1"?`},
		"a misspelt field":          {in: `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"width":3}}`, to: "example.com/v1", fault: `unknown field "spec.width"`},
		"a repeated key":            {in: "kind: a\nkind: b\n", fault: `document 1: line 2: key "kind" already set in map`},
		"a value of the wrong type": {in: `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"size":"x"}}`, to: "example.com/v1", fault: "cannot unmarshal string"},
		"an item that is no object": {in: `{"apiVersion":"v1","kind":"List","items":[3]}`, to: "example.com/v1", fault: "items[0] is not an object"},
		"not a manifest":            {in: "- a\n", fault: "document 1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := c
			if row.to == "other.com/v2" {
				c = converter(t, names.Orch, boxes(), otherBoxes())
			}
			out, _, err := c.Manifests(t.Context(), []byte(row.in), row.to)
			if row.fault != "" {
				require.ErrorContains(t, err, row.fault)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, row.out, string(out))
		})
	}
}

// otherBoxes returns a kind with two versions of the same shape in another group.
func otherBoxes() *registry.Kind {
	return registry.Of(registry.Definition[oldBox]{Group: "other.com", Version: "v2", Kind: "Box", Plural: "boxes", Versions: []registry.VersionOf[oldBox]{
		registry.Spoke[oldBox, oldBox]{
			Version: "v1",
			ToHub:   func(in, out *oldBox) error { out.Spec = in.Spec; return nil },
			FromHub: func(in, out *oldBox) error { out.Spec = in.Spec; return nil },
		},
	}})
}

// TestNewReportsInvalidKinds checks that New returns the errors of the kinds.
func TestNewReportsInvalidKinds(t *testing.T) {
	_, err := convert.New(names.Orch, registry.Of(registry.Definition[box]{Group: "example.com", Version: "V1"}))
	require.Error(t, err)
}

// TestManifestsInForm checks that all documents are written in the format Form.
func TestManifestsInForm(t *testing.T) {
	c := converter(t, names.Orch, boxes())
	const in = "# c\n" + closed + `{"kind":"a"}` + "\n---\n# d\nkind: b\n"
	for form, want := range map[string]string{
		"": "# c\n" + `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"closed","width":3}}` + `{"kind":"a"}` + "\n---\n# d\nkind: b\n",
		"yaml": "# c\napiVersion: example.com/v1\nkind: Box\nmetadata:\n  name: a\nspec:\n  lid: closed\n  width: 3\n" +
			"---\nkind: a\n\n---\n# d\nkind: b\n",
		"json": `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{"lid":"closed","width":3}}` + "\n" + `{"kind":"a"}` + "\n{\n    \"kind\": \"b\"\n}\n",
	} {
		c.Form = form
		out, _, err := c.Manifests(t.Context(), []byte(in), "")
		require.NoError(t, err)
		assert.Equal(t, want, string(out), form)
	}
	c.Form = "xml"
	_, _, err := c.Manifests(t.Context(), nil, "")
	require.ErrorContains(t, err, `must be yaml, json or empty, not "xml"`)
}

// TestManifestsWarnsOfRejection checks the warnings about objects that a server would reject in the
// new version.
func TestManifestsWarnsOfRejection(t *testing.T) {
	c := converter(t, names.Kubernetes, append(builtin.Kinds(), boxes())...)
	const box = `{"apiVersion":"example.com/v1beta1","kind":"Box","metadata":{"name":"a"},"spec":{"size":30}}`
	for in, want := range map[string][]string{
		closed: nil,
		closed + `{"kind":"List","apiVersion":"v1","items":[` + closed + "," + box + "]}": {
			`document 2: items[1]: Box "a": spec.width: Invalid value: 30: must be less than or equal to 10`},
		`{"apiVersion":"example.com/v1","kind":"Box","spec":{"width":30}}`: nil, // nothing was converted
		`{"apiVersion":"example.com/v1beta1","kind":"Box"}`:                {`document 1: Box "": metadata.name: Required value: name or generateName is required`},
		`{"apiVersion":"apps/v1beta9","kind":"Deployment"}`:                {`document 1: Deployment "": not converted: the kind has no version apps/v1beta9; did you mean "apps/v1beta1"?`},
		`{"apiVersion":"unknown.com/v1","kind":"Deployment"}`:              nil,
		"apiVersion: networking.k8s.io/v1beta1\nkind: Ingress\nmetadata: {generateName: i-}\nspec:\n  rules:\n  - http: {paths: [{backend: {serviceName: x, servicePort: 80}, pathType: Prefix}]}\n": {
			`document 1: Ingress "": spec.rules[0].http.paths[0].path: Invalid value: "": must be an absolute path`},
	} {
		_, warnings, err := c.Manifests(t.Context(), []byte(in), "")
		require.NoError(t, err)
		assert.Equal(t, want, warnings, in)
	}
}

// TestEmptyStructIsKept checks that an empty struct of the manifest is kept: here it selects all
// pods.
func TestEmptyStructIsKept(t *testing.T) {
	c := converter(t, names.Kubernetes, builtin.Kinds()...)
	const in = "apiVersion: extensions/v1beta1\nkind: NetworkPolicy\nmetadata: {name: deny-all}\nspec: {podSelector: {}}\n"
	out, _, err := c.Manifests(t.Context(), []byte(in), "networking.k8s.io/v1")
	require.NoError(t, err)
	assert.Equal(t, "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata:\n  name: deny-all\nspec:\n  podSelector: {}\n", string(out))
}

// TestNullsAreDropped checks that the null of an unset Go slice is dropped, because some clients
// reject it.
func TestNullsAreDropped(t *testing.T) {
	c := converter(t, names.Kubernetes, builtin.Kinds()...)
	const in = "apiVersion: discovery.k8s.io/v1beta1\nkind: EndpointSlice\nmetadata: {name: e}\naddressType: IPv4\nendpoints: [{addresses: [1.2.3.4]}]\n"
	out, _, err := c.Manifests(t.Context(), []byte(in), "discovery.k8s.io/v1")
	require.NoError(t, err)
	assert.NotContains(t, string(out), "null")
}

func FuzzManifests(f *testing.F) {
	c := converter(f, names.Kubernetes, append(builtin.Kinds(), boxes())...)
	f.Add([]byte(scaler), "autoscaling/v2")
	f.Add([]byte(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"example.com/v1beta1","kind":"Box","spec":{"size":3}}]}`), "")
	for _, s := range []string{closed + closed, "# c\n--- " + closed, "---\n# a\nkind: a\n# b\n...\n%X\n---\n{kind: b}\n", "a: &x {b: 1}\nc: {<<: *x}\n", "\ufeffkind: a\r\n---\r\nkind: b"} {
		f.Add([]byte(s), "")
	}
	f.Fuzz(func(t *testing.T, data []byte, to string) {
		out, _, err := c.Manifests(t.Context(), data, to)
		if err != nil {
			return
		}
		again, _, err := c.Manifests(t.Context(), out, to)
		require.NoError(t, err, "%s", out)
		require.Equal(t, string(out), string(again), "converting again changes nothing")
	})
}
