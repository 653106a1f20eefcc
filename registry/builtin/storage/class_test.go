package storage_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/storage"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range storage.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind StorageClass.storage.orch.io (Go type storage.StorageClass)
	// kind CSIDriver.storage.orch.io (Go type storage.CSIDriver)
	// kind CSINode.storage.orch.io (Go type storage.CSINode)
	// kind CSIStorageCapacity.storage.orch.io (Go type storage.CSIStorageCapacity)
	// kind VolumeAttributesClass.storage.orch.io (Go type storage.VolumeAttributesClass)
	// kind VolumeAttachment.storage.orch.io (Go type storage.VolumeAttachment)
}

func TestStorageClass(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, storage.Kinds(), "StorageClass")
	k.Creates(t, map[string][]string{
		`{"provisioner":"csi.example.com"}`: nil,
		`{}`:                                {"Required:provisioner"},
		`{"provisioner":"a b"}`:             {"Invalid:provisioner"},
		`{"provisioner":"a","reclaimPolicy":"Recycle","volumeBindingMode":"Later"}`:                            {"NotSupported:reclaimPolicy", "NotSupported:volumeBindingMode"},
		`{"provisioner":"a","parameters":{"":"x"}}`:                                                            {"Invalid:parameters"},
		`{"provisioner":"a","allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":[]}]}]}`:        {"Required:allowedTopologies[0].matchLabelExpressions[0].values"},
		`{"provisioner":"a","allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":["a","a"]}]}]}`: {"Duplicate:allowedTopologies[0].matchLabelExpressions[0].values[1]"},
	})
	old, _ := k.Create(t, `{"provisioner":"a"}`)
	require.Equal(t, "Delete Immediate", old.String("reclaimPolicy")+" "+old.String("volumeBindingMode"))
	k.Updates(t, old, map[string][]string{
		`{"allowVolumeExpansion":true,"mountOptions":["x"]}`: nil,
		`{"provisioner":"b"}`:                                {"Invalid:provisioner"},
		`{"parameters":{"a":"b"}}`:                           {"Invalid:parameters"},
		`{"reclaimPolicy":"Retain"}`:                         {"Invalid:reclaimPolicy"},
		`{"volumeBindingMode":"WaitForFirstConsumer"}`:       {"Invalid:volumeBindingMode"},
		`{"allowedTopologies":[{}]}`:                         {"Invalid:allowedTopologies"},
	})
	marked, _ := k.Create(t, `{"provisioner":"a","metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}`)
	require.Equal(t, "fast (default)", k.Cell(t, marked, "Name"))
}
