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
		`{"provisioner":"a","reclaimPolicy":"Recycle","volumeBindingMode":"Later"}`:                                                   {"NotSupported:reclaimPolicy", "NotSupported:volumeBindingMode"},
		`{"provisioner":"a","parameters":{"":"x"}}`:                                                                                   {"Invalid:parameters"},
		`{"provisioner":"a","allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":[]}]}]}`:                               {"Required:allowedTopologies[0].matchLabelExpressions[0].values"},
		`{"provisioner":"a","allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":["a","a"]}]}]}`:                        {"Duplicate:allowedTopologies[0].matchLabelExpressions[0].values[1]"},
		`{"provisioner":"a","allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":["a"]},{"key":"z","values":["b"]}]}]}`: {"Duplicate:allowedTopologies[0].matchLabelExpressions[1].key"},
		`{"provisioner":"a","allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":["a","b"]}]},{"matchLabelExpressions":[{"key":"z","values":["b","a"]}]}]}`: {
			"Duplicate:allowedTopologies[1].matchLabelExpressions"},
		`{"provisioner":"a","allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":["a"]}]},{"matchLabelExpressions":[{"key":"y","values":["a"]}]}]}`: nil,
		`{"provisioner":"a","allowedTopologies":[{}]}`: {"Duplicate:allowedTopologies[0].matchLabelExpressions"},
	})
	old, _ := k.Create(t, `{"provisioner":"a"}`)
	require.Equal(t, "Delete Immediate", old.String("reclaimPolicy")+" "+old.String("volumeBindingMode"))
	k.Updates(t, old, map[string][]string{
		`{"allowVolumeExpansion":true,"mountOptions":["x"]}`:                             nil,
		`{"provisioner":"b"}`:                                                            {"Invalid:provisioner"},
		`{"parameters":{"a":"b"}}`:                                                       {"Invalid:parameters"},
		`{"reclaimPolicy":"Retain"}`:                                                     {"Invalid:reclaimPolicy"},
		`{"volumeBindingMode":"WaitForFirstConsumer"}`:                                   {"Invalid:volumeBindingMode"},
		`{"allowedTopologies":[{"matchLabelExpressions":[{"key":"z","values":["a"]}]}]}`: nil,
		`{"provisioner":null}`:                                                           {"Required:provisioner", "Invalid:provisioner"},
		`{"reclaimPolicy":"Odd"}`:                                                        {"NotSupported:reclaimPolicy", "Invalid:reclaimPolicy"},
	})
	marked, _ := k.Create(t, `{"provisioner":"a","metadata":{"name":"fast","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}}}`)
	require.Equal(t, "fast (default)", k.Cell(t, marked, "Name"))
}
