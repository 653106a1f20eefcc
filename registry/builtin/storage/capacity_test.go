package storage_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/storage"
	"orch.io/controlplane/registry/internal/kindtest"
)

func TestCSIStorageCapacity(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, storage.Kinds(), "CSIStorageCapacity")
	k.Creates(t, map[string][]string{
		`{"storageClassName":"slow"}`:                                            nil,
		`{"storageClassName":"slow","capacity":"1Gi","maximumVolumeSize":"5Gi"}`: nil,
		`{"storageClassName":"slow","nodeTopology":{}}`:                          nil,
		`{}`:                              {"Invalid:storageClassName"},
		`{"storageClassName":"Bad_Name"}`: {"Invalid:storageClassName"},
		`{"storageClassName":"slow","capacity":"-1"}`:                                        {"Invalid:capacity"},
		`{"storageClassName":"slow","nodeTopology":{"matchLabels":{"a b":"c"}}}`:             {"Invalid:nodeTopology.matchLabels"},
		`{"storageClassName":"slow","metadata":{"name":"` + strings.Repeat("a", 253) + `"}}`: nil,
		`{"storageClassName":"slow","metadata":{"name":"A"}}`:                                {"Invalid:metadata.name"},
	})
	old, _ := k.Create(t, `{"storageClassName":"slow","capacity":"1Gi","nodeTopology":{"matchLabels":{"a":"b"}}}`)
	k.Updates(t, old, map[string][]string{
		`{"capacity":"2Gi","maximumVolumeSize":"1Gi"}`: nil,
		`{"capacity":null}`:                            nil,
		`{"storageClassName":"fast"}`:                  {"Invalid:storageClassName"},
		`{"nodeTopology":{"matchLabels":{"a":"c"}}}`:   {"Invalid:nodeTopology"},
		`{"nodeTopology":null}`:                        {"Invalid:nodeTopology"},
	})
	nowhere, _ := k.Create(t, `{"storageClassName":"slow"}`)
	k.Updates(t, nowhere, map[string][]string{`{"nodeTopology":{}}`: {"Invalid:nodeTopology"}})
}

func TestCSIStorageCapacityV1beta1(t *testing.T) {
	kinds := storage.Kinds()
	at := slices.IndexFunc(kinds, func(k *registry.Kind) bool { return k.Kind == "CSIStorageCapacity" })
	typ, err := resource.Compile(kinds[at], names.Kubernetes)
	require.NoError(t, err)
	old := typ.ByAPIVersion("storage.k8s.io/v1beta1")
	require.NotNil(t, old)
	require.True(t, strings.HasSuffix(old.Deprecated, "use storage.k8s.io/v1 CSIStorageCapacity"), old.Deprecated)
	obj := meta.NewObject(map[string]any{"storageClassName": "slow", "capacity": "1Gi", "nodeTopology": map[string]any{}})
	obj.SetGVK(old.GVK())
	hub, err := typ.Hub.Convert(t.Context(), obj)
	require.NoError(t, err)
	obj.SetGVK(typ.Hub.GVK())
	require.True(t, meta.Equal(obj.Tree(), hub.Tree()), hub.Tree())
}
