package codec_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
)

func TestPartialHasOnlyMetadata(t *testing.T) {
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

func ExampleSplice() {
	stored := codec.EncodeStored(nil, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}})
	fmt.Println(string(codec.Splice(nil, stored, 42)))
	// Output: {"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"42","name":"a"}}
}
