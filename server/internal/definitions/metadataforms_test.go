package definitions_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestCustomResourceMetadataInProtobuf: custom resources have no protobuf encoding, but their PartialObjectMetadata
// has. Errors have the media type that the client requested.
func TestCustomResourceMetadataInProtobuf(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	require.Eventually(t, func() bool { return a.Do("GET", apitest.WidgetsPath, nil).Code == 200 }, apitest.Timeout, time.Millisecond)
	a.Must(201, "POST", apitest.WidgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","labels":{"x":"y"}},"spec":{"a":"b"}}`)
	const (
		proto = "application/vnd.kubernetes.protobuf"
		view  = ";v=v1;g=meta.k8s.io;as=PartialObjectMetadata"
	)
	open := func(data []byte) (kind string, tree map[string]any) {
		apiVersion, kind, body, err := codec.OpenEnvelope(data)
		require.NoError(t, err)
		assert.Contains(t, []string{"v1", "meta.k8s.io/v1"}, apiVersion)
		switch kind {
		case "PartialObjectMetadata":
			tree, err = codec.Metas().Partial.Decode(body, codec.Limits{})
		case "Status":
			tree, err = codec.Metas().Status.Decode(body, codec.Limits{})
		}
		require.NoError(t, err)
		return kind, tree
	}
	want := a.Must(200, "GET", apitest.WidgetsPath+"/w", nil).Body["metadata"].(map[string]any)
	for _, accept := range []string{proto + view, proto + view + ",application/json"} {
		got := a.Do("GET", apitest.WidgetsPath+"/w", nil, "Accept", accept)
		require.Equal(t, 200, got.Code, "%s", got.Raw)
		assert.Equal(t, proto, got.Header.Get("Content-Type"))
		kind, tree := open(got.Raw)
		assert.Equal(t, "PartialObjectMetadata", kind)
		assert.Equal(t, want["uid"], apitest.Nested(tree, "metadata", "uid"))
		assert.Equal(t, want["labels"], apitest.Nested(tree, "metadata", "labels"))
		assert.Len(t, apitest.Nested(tree, "metadata", "managedFields"), 1)
		assert.Nil(t, tree["spec"])
	}
	list := a.Do("GET", apitest.WidgetsPath, nil, "Accept", proto+view+"List")
	require.Equal(t, 200, list.Code, "%s", list.Raw)
	kind, _ := open(list.Raw)
	assert.Equal(t, "PartialObjectMetadataList", kind)
	watch := a.Do("GET", apitest.WidgetsPath+"?watch=1&timeoutSeconds=1&resourceVersion=0", nil, "Accept", proto+view)
	assert.Equal(t, proto+";stream=watch", watch.Header.Get("Content-Type"))
	require.Greater(t, len(watch.Raw), codec.ProtoFrameHead)
	assert.Contains(t, string(watch.Raw), "PartialObjectMetadata")

	for path, code := range map[string]int{apitest.WidgetsPath + "/w": 406, apitest.WidgetsPath + "/none": 406, apitest.WidgetsPath: 406, "/version": 406} {
		got := a.Do("GET", path, nil, "Accept", proto)
		require.Equal(t, code, got.Code, path)
		require.Equal(t, proto, got.Header.Get("Content-Type"), path)
		kind, tree := open(got.Raw)
		assert.Equal(t, "Status", kind)
		assert.Equal(t, "NotAcceptable", tree["reason"])
	}
	assert.Equal(t, "application/json", a.Must(406, "GET", apitest.WidgetsPath, nil, "Accept", proto+view).Header.Get("Content-Type"), "the view does not exist in this version")
	assert.Equal(t, "application/json", a.Must(406, "GET", apitest.WidgetsPath, nil, "Accept", "text/html").Header.Get("Content-Type"))
}
