package media_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/server/internal/media"
)

func TestNegotiate(t *testing.T) {
	const table = "application/json;as=Table;g=meta.k8s.io;v=v1"
	item := media.Supported{Protobuf: true, Views: true}
	list := media.Supported{Protobuf: true, Views: true, List: true}
	watch := media.Supported{Protobuf: true, Views: true, List: true, Watch: true}
	groups := media.Supported{Protobuf: true, Aggregated: true}
	for _, row := range []struct {
		accept string
		offer  media.Supported
		want   media.Type
	}{
		{"", item, media.Type{}},
		{"*/*", item, media.Type{}},
		{"application/json, */*", item, media.Type{}},
		{"application/json,application/yaml", item, media.Type{}},
		{"*/*;q=0.1,application/yaml;q=0.2", item, media.Type{Format: codec.YAML}},
		{"text/html, application/json;q=0.5", item, media.Type{}},
		{"text/html, */*;q=0.1", item, media.Type{}},
		{"application/xml,application/yaml", item, media.Type{Format: codec.YAML}},
		{"application/json;q=0.1, application/yaml;q=0.9", item, media.Type{Format: codec.YAML}},
		{"application/vnd.kubernetes.protobuf, application/json", item, media.Type{Format: codec.Protobuf}},
		{"application/vnd.kubernetes.protobuf, application/json", media.Supported{}, media.Type{}},
		{"application/json;q=0, application/yaml;q=0.1", item, media.Type{Format: codec.YAML}},
		{"application/json; charset=utf-8", item, media.Type{}},
		{"application/json;pretty=1", item, media.Type{Pretty: true}},
		{";;;,application/yaml", item, media.Type{Format: codec.YAML}},
		{table, item, media.Type{View: media.Table, ViewVersion: "v1"}},
		{table, list, media.Type{View: media.Table, ViewVersion: "v1"}},
		{table + ",application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", groups, media.Type{}},
		{"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json", item, media.Type{}},
		{"application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", item, media.Type{Format: codec.YAML, View: media.Partial, ViewVersion: "v1"}},
		{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", list,
			media.Type{Format: codec.Protobuf, View: media.PartialList, ViewVersion: "v1"}},
		{"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", watch, media.Type{View: media.Partial, ViewVersion: "v1"}},
		{"application/vnd.kubernetes.protobuf;stream=watch", watch, media.Type{Format: codec.Protobuf, Stream: true}},
		{"application/json;stream=watch", item, media.Type{}},
		{"application/vnd.kubernetes.protobuf;stream=watch,application/json", item, media.Type{Format: codec.Protobuf}},
		{"application/yaml,application/json;q=0.2", watch, media.Type{}},
		{"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", groups,
			media.Type{View: media.Aggregated, ViewVersion: "v2"}},
		{"application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json", groups, media.Type{}},
	} {
		got, err := media.Negotiate(row.accept, names.Kubernetes, row.offer)
		require.NoError(t, err, row.accept)
		require.Equal(t, row.want, got, row.accept)
	}
	for _, row := range []struct {
		accept string
		offer  media.Supported
	}{
		{"text/html", item}, {"image/png", item}, {"text/csv", watch}, {"application/yaml", watch}, {"json", item}, {"application/json;q=0", item},
		{"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", list},
		{"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", item},
		{"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v9", item},
		{"application/json;as=Table;g=meta.orch.io;v=v1", item},
		{"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", item},
		{"application/vnd.orch.protobuf", item}, {"application/*", item},
		{"application/json;as=Table", item}, {"application/json;stream=other", item}, {"application/yaml;stream=watch", item},
		{strings.Repeat("application/json,", 1000), item},
		{strings.Repeat("text/html,", 100) + "application/json", item},
	} {
		_, err := media.Negotiate(row.accept, names.Kubernetes, row.offer)
		require.Equal(t, meta.ReasonNotAcceptable, meta.ReasonOf(err), "%.60s", row.accept)
		if strings.Contains(row.accept, "as=") || strings.Contains(row.accept, "stream=") {
			require.Nil(t, err.(*meta.Status).Details, row.accept)
		}
	}
	_, err := media.Negotiate("text/html", names.Kubernetes, item)
	require.Equal(t, &meta.StatusDetails{}, err.(*meta.Status).Details)
	got, err := media.Negotiate("application/vnd.orch.protobuf", names.Orch, item)
	require.NoError(t, err)
	require.Equal(t, codec.Protobuf, got.Format)
}

func TestContentType(t *testing.T) {
	for header, want := range map[string]codec.Format{"": codec.JSON, "application/json": codec.JSON, "application/json; charset=utf-8": codec.JSON,
		"application/yaml": codec.YAML, "application/vnd.kubernetes.protobuf": codec.Protobuf, "Application/JSON": codec.JSON} {
		got, err := media.ContentType(header, names.Kubernetes, true)
		require.NoError(t, err, header)
		require.Equal(t, want, got, header)
	}
	for _, header := range []string{"text/plain", "application/x-www-form-urlencoded", "application/apply-patch+yaml", "x", ";", strings.Repeat("a", 9000)} {
		_, err := media.ContentType(header, names.Kubernetes, true)
		require.Equal(t, meta.ReasonUnsupportedMediaType, meta.ReasonOf(err), "%.40s", header)
	}
	_, err := media.ContentType("application/vnd.kubernetes.protobuf", names.Kubernetes, false)
	require.Equal(t, meta.ReasonUnsupportedMediaType, meta.ReasonOf(err))

	for header, want := range map[string]media.PatchType{"application/json-patch+json": media.JSONPatch, "application/merge-patch+json": media.MergePatch,
		"application/strategic-merge-patch+json": media.StrategicPatch, "application/apply-patch+yaml; charset=utf-8": media.ApplyPatch} {
		got, err := media.PatchContentType(header, true)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, header := range []string{"", "application/json", "application/yaml", "text/plain", "application/strategic-merge-patch+json"} {
		_, err := media.PatchContentType(header, false)
		require.Equal(t, meta.ReasonUnsupportedMediaType, meta.ReasonOf(err))
		require.Equal(t, 415, err.(*meta.Status).Code)
	}
}

func TestMediaContentType(t *testing.T) {
	p := names.Kubernetes
	require.Equal(t, "application/json", media.Type{}.ContentType(p, true))
	require.Equal(t, "application/json", media.Type{View: media.Table, ViewVersion: "v1"}.ContentType(p, false))
	require.Equal(t, "application/yaml", media.Type{Format: codec.YAML}.ContentType(p, false))
	require.Equal(t, "application/vnd.kubernetes.protobuf;stream=watch", media.Type{Format: codec.Protobuf}.ContentType(p, true))
	require.Equal(t, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
		media.Type{View: media.Aggregated, ViewVersion: "v2"}.ContentType(p, false))
}

func FuzzNegotiate(f *testing.F) {
	f.Add("application/json;as=Table;g=meta.k8s.io;v=v1,*/*;q=0.1")
	f.Fuzz(func(t *testing.T, accept string) {
		m, err := media.Negotiate(accept, names.Kubernetes, media.Supported{Views: true})
		if err != nil && meta.ReasonOf(err) != meta.ReasonNotAcceptable || err == nil && m.Format == codec.Protobuf {
			t.Fatalf("%q: %+v, %v", accept, m, err)
		}
	})
}
