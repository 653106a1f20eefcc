package server_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/servertest"
)

// TestMetadataOfCustomResourcesIsProtobufOnRequest: custom resources have no protobuf
// form, but PartialObjectMetadata of them does, and refusals of a form are told in the
// format that the client asked for.
func TestMetadataOfCustomResourcesIsProtobufOnRequest(t *testing.T) {
	a := inProcess(t, servertest.New(t))
	a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	require.Eventually(t, func() bool { return a.do("GET", definedPath, nil).code == 200 }, patience, time.Millisecond)
	a.must(201, "POST", definedPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","labels":{"x":"y"}},"spec":{"a":"b"}}`)
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
	want := a.must(200, "GET", definedPath+"/w", nil).body["metadata"].(map[string]any)
	for _, accept := range []string{proto + view, proto + view + ",application/json"} {
		got := a.do("GET", definedPath+"/w", nil, "Accept", accept)
		require.Equal(t, 200, got.code, "%s", got.raw)
		assert.Equal(t, proto, got.header.Get("Content-Type"))
		kind, tree := open(got.raw)
		assert.Equal(t, "PartialObjectMetadata", kind)
		assert.Equal(t, want["uid"], at(tree, "metadata", "uid"))
		assert.Equal(t, want["labels"], at(tree, "metadata", "labels"))
		assert.Len(t, at(tree, "metadata", "managedFields"), 1)
		assert.Nil(t, tree["spec"])
	}
	list := a.do("GET", definedPath, nil, "Accept", proto+view+"List")
	require.Equal(t, 200, list.code, "%s", list.raw)
	kind, _ := open(list.raw)
	assert.Equal(t, "PartialObjectMetadataList", kind)
	watch := a.do("GET", definedPath+"?watch=1&timeoutSeconds=1&resourceVersion=0", nil, "Accept", proto+view)
	assert.Equal(t, proto+";stream=watch", watch.header.Get("Content-Type"))
	require.Greater(t, len(watch.raw), codec.ProtoFrameHead)
	assert.Contains(t, string(watch.raw), "PartialObjectMetadata")

	for path, code := range map[string]int{definedPath + "/w": 406, definedPath + "/none": 406, definedPath: 406, "/version": 406} {
		got := a.do("GET", path, nil, "Accept", proto)
		require.Equal(t, code, got.code, path)
		require.Equal(t, proto, got.header.Get("Content-Type"), path)
		kind, tree := open(got.raw)
		assert.Equal(t, "Status", kind)
		assert.Equal(t, "NotAcceptable", tree["reason"])
	}
	assert.Equal(t, "application/json", a.must(406, "GET", definedPath, nil, "Accept", proto+view).header.Get("Content-Type"), "a view that does not exist here")
	assert.Equal(t, "application/json", a.must(406, "GET", definedPath, nil, "Accept", "text/html").header.Get("Content-Type"))
}
