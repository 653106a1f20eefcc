package codec_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/codec"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

func TestNegotiate(t *testing.T) {
	const table = "application/json;as=Table;g=meta.k8s.io;v=v1"
	item := codec.Offer{Protobuf: true, Views: true}
	list := codec.Offer{Protobuf: true, Views: true, List: true}
	watch := codec.Offer{Protobuf: true, Views: true, List: true, Watch: true}
	groups := codec.Offer{Protobuf: true, Aggregated: true}
	for _, row := range []struct {
		accept string
		offer  codec.Offer
		want   codec.Media
	}{
		{"", item, codec.Media{}},
		{"*/*", item, codec.Media{}},
		{"application/json, */*", item, codec.Media{}},
		{"application/json,application/yaml", item, codec.Media{}},
		{"*/*;q=0.1,application/yaml;q=0.2", item, codec.Media{Format: codec.YAML}},
		{"text/html, application/json;q=0.5", item, codec.Media{}},
		{"text/html, */*;q=0.1", item, codec.Media{}},
		{"application/xml,application/yaml", item, codec.Media{Format: codec.YAML}},
		{"application/json;q=0.1, application/yaml;q=0.9", item, codec.Media{Format: codec.YAML}},
		{"application/vnd.kubernetes.protobuf, application/json", item, codec.Media{Format: codec.Protobuf}},
		{"application/vnd.kubernetes.protobuf, application/json", codec.Offer{}, codec.Media{}},
		{"application/json;q=0, application/yaml;q=0.1", item, codec.Media{Format: codec.YAML}},
		{"application/json; charset=utf-8", item, codec.Media{}},
		{"application/json;pretty=1", item, codec.Media{Pretty: true}},
		{";;;,application/yaml", item, codec.Media{Format: codec.YAML}},
		{table, item, codec.Media{View: codec.Table, ViewVersion: "v1"}},
		{table, list, codec.Media{View: codec.Table, ViewVersion: "v1"}},
		{table + ",application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json", groups, codec.Media{}},
		{"application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1,application/json", item, codec.Media{}},
		{"application/yaml;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", item, codec.Media{Format: codec.YAML, View: codec.Partial, ViewVersion: "v1"}},
		{"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", list,
			codec.Media{Format: codec.Protobuf, View: codec.PartialList, ViewVersion: "v1"}},
		{"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", watch, codec.Media{View: codec.Partial, ViewVersion: "v1"}},
		{"application/vnd.kubernetes.protobuf;stream=watch", watch, codec.Media{Format: codec.Protobuf, Stream: true}},
		{"application/json;stream=watch", item, codec.Media{}},
		{"application/vnd.kubernetes.protobuf;stream=watch,application/json", item, codec.Media{Format: codec.Protobuf}},
		{"application/yaml,application/json;q=0.2", watch, codec.Media{}},
		{"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", groups,
			codec.Media{View: codec.Aggregated, ViewVersion: "v2"}},
		{"application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json", groups, codec.Media{}},
	} {
		got, err := codec.Negotiate(row.accept, names.Kubernetes, row.offer)
		require.NoError(t, err, row.accept)
		require.Equal(t, row.want, got, row.accept)
	}
	for _, row := range []struct {
		accept string
		offer  codec.Offer
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
		_, err := codec.Negotiate(row.accept, names.Kubernetes, row.offer)
		require.Equal(t, meta.ReasonNotAcceptable, meta.ReasonOf(err), "%.60s", row.accept)
		if strings.Contains(row.accept, "as=") || strings.Contains(row.accept, "stream=") {
			require.Nil(t, err.(*meta.Status).Details, row.accept)
		}
	}
	_, err := codec.Negotiate("text/html", names.Kubernetes, item)
	require.Equal(t, &meta.Details{}, err.(*meta.Status).Details)
	got, err := codec.Negotiate("application/vnd.orch.protobuf", names.Orch, item)
	require.NoError(t, err)
	require.Equal(t, codec.Protobuf, got.Format)
}

func TestContentType(t *testing.T) {
	for header, want := range map[string]codec.Format{"": codec.JSON, "application/json": codec.JSON, "application/json; charset=utf-8": codec.JSON,
		"application/yaml": codec.YAML, "application/vnd.kubernetes.protobuf": codec.Protobuf, "Application/JSON": codec.JSON} {
		got, err := codec.ContentType(header, names.Kubernetes, true)
		require.NoError(t, err, header)
		require.Equal(t, want, got, header)
	}
	for _, header := range []string{"text/plain", "application/x-www-form-urlencoded", "application/apply-patch+yaml", "x", ";", strings.Repeat("a", 9000)} {
		_, err := codec.ContentType(header, names.Kubernetes, true)
		require.Equal(t, meta.ReasonUnsupportedMediaType, meta.ReasonOf(err), "%.40s", header)
	}
	_, err := codec.ContentType("application/vnd.kubernetes.protobuf", names.Kubernetes, false)
	require.Equal(t, meta.ReasonUnsupportedMediaType, meta.ReasonOf(err))

	for header, want := range map[string]codec.PatchType{"application/json-patch+json": codec.JSONPatch, "application/merge-patch+json": codec.MergePatch,
		"application/strategic-merge-patch+json": codec.StrategicPatch, "application/apply-patch+yaml; charset=utf-8": codec.ApplyPatch} {
		got, err := codec.PatchContentType(header, true)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, header := range []string{"", "application/json", "application/yaml", "text/plain", "application/strategic-merge-patch+json"} {
		_, err := codec.PatchContentType(header, false)
		require.Equal(t, meta.ReasonUnsupportedMediaType, meta.ReasonOf(err))
		require.Equal(t, 415, err.(*meta.Status).Code)
	}
}

func TestMediaContentType(t *testing.T) {
	p := names.Kubernetes
	require.Equal(t, "application/json", codec.Media{}.ContentType(p, true))
	require.Equal(t, "application/json", codec.Media{View: codec.Table, ViewVersion: "v1"}.ContentType(p, false))
	require.Equal(t, "application/yaml", codec.Media{Format: codec.YAML}.ContentType(p, false))
	require.Equal(t, "application/vnd.kubernetes.protobuf;stream=watch", codec.Media{Format: codec.Protobuf}.ContentType(p, true))
	require.Equal(t, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
		codec.Media{View: codec.Aggregated, ViewVersion: "v2"}.ContentType(p, false))
}

func FuzzNegotiate(f *testing.F) {
	f.Add("application/json;as=Table;g=meta.k8s.io;v=v1,*/*;q=0.1")
	f.Fuzz(func(t *testing.T, accept string) {
		m, err := codec.Negotiate(accept, names.Kubernetes, codec.Offer{Views: true})
		if err != nil && meta.ReasonOf(err) != meta.ReasonNotAcceptable || err == nil && m.Format == codec.Protobuf {
			t.Fatalf("%q: %+v, %v", accept, m, err)
		}
	})
}
