package codec_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/codec"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

func TestPartial(t *testing.T) {
	const head = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":`
	for _, row := range []struct{ object, want string }{
		{`{"apiVersion":"v1","kind":"K","metadata":{"annotations":{"x":"}\"{\\"},"name":"n"},"data":{}}`, `{"annotations":{"x":"}\"{\\"},"name":"n"}`},
		{`{"apiVersion":"v1","kind":"K","metadata":{}}`, `{}`},
		{`{}`, `{}`},
	} {
		require.Equal(t, head+row.want+"}", string(codec.AppendPartial(nil, []byte(row.object), names.Kubernetes, "v1")))
	}
	stored := []byte(`{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"data":{}}`)
	require.Equal(t, `{"apiVersion":"meta.orch.io/v1","kind":"PartialObjectMetadata","metadata":{"resourceVersion":"7","name":"n"}}`,
		string(codec.Splice(nil, codec.AppendPartial(nil, stored, names.Orch, "v1"), 7)))
}

func TestListHead(t *testing.T) {
	n := int64(3)
	require.Equal(t, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"5"},"items":[]}`,
		string(codec.ListHead(nil, "v1", "ConfigMapList", codec.ListMeta{ResourceVersion: "5"}))+codec.ListTail)
	require.Equal(t, `{"apiVersion":"v1","kind":"L","metadata":{"continue":"t","remainingItemCount":3,"resourceVersion":"5"},"items":[]}`,
		string(codec.ListHead(nil, "v1", "L", codec.ListMeta{ResourceVersion: "5", Continue: "t", Remaining: &n}))+codec.ListTail)
	require.Equal(t, `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"continue":"","resourceVersion":"5"},"items":[]}`,
		string(codec.PartialListHead(nil, names.Kubernetes, "v1", codec.ListMeta{ResourceVersion: "5", KeepContinue: true}))+codec.ListTail)
}

func TestTable(t *testing.T) {
	object := []byte(`{"apiVersion":"v1","kind":"K","metadata":{"resourceVersion":"7","name":"n"},"data":{"a":"1"}}`)
	tree, _, err := codec.DecodeJSON(object, codec.Limits{})
	require.NoError(t, err)
	columns := []codec.Column{
		{Name: "Name", Type: "string", Format: "name", Doc: "d", Cell: func(o *meta.Object) any { return o.Name() }},
		{Name: "Data", Type: "integer", Priority: 1, Cell: func(o *meta.Object) any { return len(o.Map("data")) }},
	}
	head := `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"9"},"columnDefinitions":[` +
		`{"name":"Name","type":"string","format":"name","description":"d","priority":0},{"name":"Data","type":"integer","format":"","description":"","priority":1}],"rows":[`
	lm := codec.ListMeta{ResourceVersion: "9"}
	require.Equal(t, head, string(codec.TableHead(nil, names.Kubernetes, "v1", columns, lm)))
	require.Equal(t, `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"resourceVersion":"9"},"columnDefinitions":null,"rows":[`,
		string(codec.TableHead(nil, names.Kubernetes, "v1", nil, lm)))
	for text, want := range map[string]string{
		"":         `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"resourceVersion":"7","name":"n"}}`,
		"Metadata": `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"resourceVersion":"7","name":"n"}}`,
		"None":     `null`,
		"Object":   string(object),
	} {
		include, err := codec.ParseInclude(text)
		require.NoError(t, err)
		require.Equal(t, `{"cells":["n",1],"object":`+want+`}`,
			string(codec.TableRow(nil, names.Kubernetes, "v1", columns, meta.NewObject(tree), object, include)))
	}
	_, err = codec.ParseInclude("Everything")
	require.Equal(t, meta.ReasonBadRequest, meta.ReasonOf(err))
}

func TestJSONPathCells(t *testing.T) {
	tree, _, err := codec.DecodeJSON([]byte(`{"metadata":{"creationTimestamp":"`+meta.FormatTime(time.Now().Add(-26*time.Hour))+`","labels":{"a.b/c":"x"}},
		"spec":{"replicas":3,"ratio":0.5,"on":true,"list":["a","b",1],"o":{"k":1}},
		"status":{"conditions":[{"type":"Ready","status":"True","n":1},{"type":"Other","status":"False","n":2}]}}`), codec.Limits{})
	require.NoError(t, err)
	for _, row := range []struct {
		path, kind string
		want       any
	}{
		{".spec.replicas", "integer", int64(3)},
		{".spec.ratio", "integer", int64(0)},
		{".spec.ratio", "number", 0.5},
		{".spec.on", "boolean", true},
		{".spec.on", "integer", nil},
		{".spec.replicas", "string", "3"},
		{".spec.missing", "string", nil},
		{"{.spec.replicas}", "integer", int64(3)},
		{"spec.replicas", "integer", int64(3)},
		{`.status.conditions[?(@.type=="Ready")].status`, "string", "True"},
		{`.status.conditions[?(@.type == 'Other')].status`, "string", "False"},
		{`.status.conditions[?(@.n==2)].type`, "string", "Other"},
		{`.status.conditions[?(@.type=="x")].status`, "string", nil},
		{".status.conditions[*].type", "string", "Ready Other"},
		{".spec.list[-1]", "integer", int64(1)},
		{".spec.list[0]", "string", "a"},
		{".spec.list[7]", "string", nil},
		{".spec.o", "string", `{"k":1}`},
		{`.metadata.labels['a.b/c']`, "string", "x"},
		{`.metadata.labels.a\.b/c`, "string", "x"},
		{".metadata.creationTimestamp", "date", "26h"},
		{".spec.list[0]", "date", "<invalid>"},
		{".spec.replicas", "date", nil},
	} {
		p, err := codec.ParseJSONPath(row.path)
		require.NoError(t, err, row.path)
		require.Equal(t, row.want, p.Cell(row.kind)(meta.NewObject(tree)), row.path)
	}
	for _, path := range []string{".a[", ".a[x]", ".a..b", ".a[?(@.b)]", ".a[?(b==1)]", ".a[?(@.b==c)]", ".a[0]b[", strings.Repeat(".a", 100), strings.Repeat("a", 5000)} {
		_, err := codec.ParseJSONPath(path)
		require.Error(t, err, "%.30s", path)
	}
}

func FuzzJSONPath(f *testing.F) {
	for _, s := range []string{".a.b[0]", `.c[?(@.t=="R")].s`, "{$.a['x'][*]}"} {
		f.Add(s)
	}
	tree := map[string]any{"a": []any{map[string]any{"t": "R", "s": int64(1)}, []any{"x"}}, "b": map[string]any{"c": nil}}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := codec.ParseJSONPath(text); err == nil {
			p.Cell("string")(meta.NewObject(tree))
		}
	})
}

func ExampleSplice() {
	stored := codec.EncodeStored(nil, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}})
	fmt.Println(string(codec.Splice(nil, stored, 42)))
	// Output: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"42","name":"a"}}
}
