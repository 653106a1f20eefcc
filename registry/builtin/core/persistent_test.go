package core_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/internal/kindtest"
)

// volume returns a PersistentVolume with more fields in its spec.
func volume(more string) string {
	return `{"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],` + more + `}}`
}

func TestPersistentVolumeSources(t *testing.T) {
	k := kindtest.Of(t, names.Orch, core.Kinds(), "PersistentVolume")
	target := `"targetPortal":"1.2.3.4","iqn":"iqn.2015-02.example.com:test"`
	k.Creates(t, map[string][]string{
		volume(`"volumeMode":"Block"`):                                                            {"Required:spec"},
		volume(`"nfs":{"server":"a","path":"/b"},"storeCVolume":{"volumeID":"a"}`):                {"Forbidden:spec.storeCVolume"},
		volume(`"hostPath":{}`):                                                                   {"Required:spec.hostPath.path"},
		volume(`"local":{"path":"/a/../b"}`):                                                      {"Invalid:spec.local.path", "Required:spec.nodeAffinity"},
		volume(`"nfs":{"path":"b"}`):                                                              {"Required:spec.nfs.server", "Invalid:spec.nfs.path"},
		volume(`"fc":{}`):                                                                         {"Required:spec.fc.targetWWNs"},
		volume(`"fc":{"targetWWNs":["a"]}`):                                                       {"Required:spec.fc.lun"},
		volume(`"fc":{"wwids":["a"],"targetWWNs":["a"],"lun":1}`):                                 {"Invalid:spec.fc.targetWWNs"},
		volume(`"iscsi":{"lun":256}`):                                                             {"Required:spec.iscsi.targetPortal", "Required:spec.iscsi.iqn", "Invalid:spec.iscsi.lun"},
		volume(`"iscsi":{` + target + `,"chapAuthSession":true,"initiatorName":"x"}`):             {"Required:spec.iscsi.secretRef", "Invalid:spec.iscsi.initiatorname"},
		volume(`"iscsi":{` + target + `,"secretRef":{}}`):                                         {"Required:spec.iscsi.secretRef.name"},
		volume(`"flexVolume":{"options":{"orch.io/a":"b"}}`):                                      {"Required:spec.flexVolume.driver", "Invalid:spec.flexVolume.options[orch.io/a]"},
		volume(`"csi":{}`):                                                                        {"Required:spec.csi.driver", "Required:spec.csi.volumeHandle"},
		volume(`"csi":{"driver":"A_","volumeHandle":"x"}`):                                        {"Invalid:spec.csi.driver"},
		volume(`"csi":{"driver":"a","volumeHandle":"x","nodeStageSecretRef":{}}`):                 nil,
		volume(`"csi":{"driver":"a","volumeHandle":"x","nodePublishSecretRef":{"name":"A_"}}`):    {"Invalid:spec.csi.nodePublishSecretRef.name", "Required:spec.csi.nodePublishSecretRef.namespace"},
		volume(`"csi":{"driver":"a","volumeHandle":"x","nodeExpandSecretRef":{"namespace":"_"}}`): {"Required:spec.csi.nodeExpandSecretRef.name", "Invalid:spec.csi.nodeExpandSecretRef.namespace"},
		volume(`"storeBfs":{"endpointsNamespace":""}`):                                            {"Required:spec.storeBfs.endpoints", "Required:spec.storeBfs.path", "Invalid:spec.storeBfs.endpointsNamespace"},
		volume(`"storeBfs":{"endpoints":"a","path":"b","endpointsNamespace":"B_"}`):               {"Invalid:spec.storeBfs.endpointsNamespace"},
		volume(`"storeAblock":{}`):                                                                {"Required:spec.storeAblock.monitors", "Required:spec.storeAblock.image"},
		volume(`"storeAfs":{}`):                                                                   {"Required:spec.storeAfs.monitors"},
		volume(`"blockSvcVolume":{"secretRef":{}}`):                                               {"Required:spec.blockSvcVolume.volumeID", "Required:spec.blockSvcVolume.secretRef.name", "Required:spec.blockSvcVolume.secretRef.namespace"},
		volume(`"cloudBFile":{"secretNamespace":""}`):                                             {"Required:spec.cloudBFile.secretName", "Required:spec.cloudBFile.shareName", "Required:spec.cloudBFile.secretNamespace"},
		volume(`"cloudBDisk":{"diskName":"a","diskURI":"b"}`):                                     {"NotSupported:spec.cloudBDisk.diskURI"},
		volume(`"cloudCPersistentDisk":{"partition":256}`):                                        {"Required:spec.persistentDisk.pdName", "Invalid:spec.persistentDisk.partition"},
		volume(`"cloudAElasticBlockStore":{}`):                                                    {"Required:spec.cloudAElasticBlockStore.volumeID"},
		volume(`"cloudDVolume":{}`):                                                               {"Required:spec.cloudDVolume.volumePath"},
		volume(`"cloudEPersistentDisk":{}`):                                                       {"Required:spec.cloudEPersistentDisk.pdID"},
		volume(`"storeCVolume":{}`):                                                               {"Required:spec.storeCVolume.volumeID"},
		volume(`"storeDfs":{}`):                                                                   {"Required:spec.storeDfs.registry", "Required:spec.storeDfs.volume"},
		volume(`"storeEVolume":{}`):                                                               {"Required:spec.storeEVolume.gateway", "Required:spec.storeEVolume.system", "Required:spec.storeEVolume.volumeName", "Required:spec.storeEVolume.secretRef"},
		volume(`"storeEVolume":{"gateway":"a","system":"b","volumeName":"c","secretRef":{"name":"d"},"storageMode":"Fat"}`): {"NotSupported:spec.storeEVolume.storageMode"},
		volume(`"storeFVolume":{"volumeNamespace":"B_","secretRef":{}}`):                                                    {"Required:spec.storeFVolume.volumeName", "Invalid:spec.storeFVolume.volumeNamespace", "Required:spec.storeFVolume.secretRef.name", "Required:spec.storeFVolume.secretRef.namespace"},
		volume(`"storeGVolume":{"datasetName":"a","datasetUUID":"b"}`):                                                      {"Invalid:spec.storeGVolume"},
	})
	for source, fields := range map[string]map[string]any{
		`"hostPath":{"path":"/a"}`:                     {"type": ""},
		`"iscsi":{` + target + `}`:                     {"lun": int64(0), "iscsiInterface": "default"},
		`"storeAblock":{"monitors":["a"],"image":"b"}`: {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
		`"storeEVolume":{"gateway":"a","system":"b","volumeName":"c","secretRef":{"name":"d"}}`: {"storageMode": "ThinProvisioned", "fsType": "xfs"},
		`"cloudBDisk":{"diskName":"a","diskURI":"https://b"}`:                                   {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"},
	} {
		obj, faults := k.Create(t, volume(source))
		require.Empty(t, faults, source)
		name := strings.Split(source, `"`)[1]
		for field, want := range fields {
			got, _ := obj.Get("spec", name, field)
			assert.Equal(t, want, got, name+"."+field)
		}
	}
}

func TestPersistentVolume(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "PersistentVolume")
	const nfs = `"nfs":{"server":"a","path":"/b"}`
	const csi = `"csi":{"driver":"a","volumeHandle":"x"}`
	k.Creates(t, map[string][]string{
		`{"spec":{` + nfs + `}}`:                                                     {"Required:spec.capacity", "NotSupported:spec.capacity", "Required:spec.accessModes"},
		volume(nfs + `,"capacity":{"cpu":"1"}`):                                      {"NotSupported:spec.capacity"},
		volume(nfs + `,"capacity":{"storage":"1","cpu":"1"}`):                        {"NotSupported:spec.capacity"},
		volume(nfs + `,"capacity":{"storage":"0"}`):                                  {"Invalid:spec.capacity[storage]"},
		volume(nfs + `,"capacity":{"storage":"-1"}`):                                 {"Invalid:spec.capacity[storage]", "Invalid:spec.capacity[storage]"},
		volume(nfs + `,"accessModes":["X"]`):                                         {"NotSupported:spec.accessModes"},
		volume(nfs + `,"accessModes":["ReadWriteOncePod","ReadOnlyMany"]`):           {"Forbidden:spec.accessModes"},
		volume(nfs + `,"persistentVolumeReclaimPolicy":"X"`):                         {"NotSupported:spec.persistentVolumeReclaimPolicy"},
		volume(`"hostPath":{"path":"/."},"persistentVolumeReclaimPolicy":"Recycle"`): {"Forbidden:spec.persistentVolumeReclaimPolicy"},
		volume(nfs + `,"volumeMode":""`):                                             {"NotSupported:spec.volumeMode"},
		volume(nfs + `,"storageClassName":"A_"`):                                     {"Invalid:spec.storageClassName"},
		volume(nfs + `,"volumeAttributesClassName":"a"`):                             {"Required:spec.csi"},
		volume(csi + `,"volumeAttributesClassName":""`):                              {"Required:spec.volumeAttributesClassName"},
		volume(csi + `,"volumeAttributesClassName":"A_"`):                            {"Invalid:spec.volumeAttributesClassName"},
		volume(nfs + `,"nodeAffinity":{}`):                                           {"Required:spec.nodeAffinity.required"},
		volume(nfs + `,"nodeAffinity":{"required":{"nodeSelectorTerms":[]}}`):        {"Required:spec.nodeAffinity.required.nodeSelectorTerms"},
		volume(nfs + `,"nodeAffinity":{"required":{"nodeSelectorTerms":[{}]}}`):      nil,
		volume(nfs + `,"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"X"}]}]}}`): {
			"Invalid:spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator"},
		volume(nfs + `,"claimRef":{"name":"A_"},"mountOptions":["",""]`): nil,
		volume(`"iscsi":{"targetPortal":"1111111111111111111111111111111111111111111111111111111111111111","iqn":"iqn.2015-02.example.com:a","initiatorName":"iqn.2015-02.example.com:b"}`): {
			"Invalid:spec.iscsi.targetportal"},
	})
	affinity := func(label string) string {
		return `"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"` + label + `","operator":"Exists"}]}]}}`
	}
	old, faults := k.Create(t, `{"status":{"phase":"Bound"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadOnlyMany","ReadWriteOnce"],"claimRef":{"namespace":"n","name":"c"},`+
		csi+`,"volumeAttributesClassName":"x",`+affinity("beta.kubernetes.io/arch")+`}}`)
	require.Empty(t, faults)
	require.Equal(t, "Retain Filesystem Pending", old.String("spec", "persistentVolumeReclaimPolicy")+" "+old.String("spec", "volumeMode")+" "+old.String("status", "phase"))
	require.False(t, old.Time("status", "lastPhaseTransitionTime").IsZero())
	require.Len(t, k.Warn(k.NewChange(t.Context(), old, nil, "")), 1, "of the label")
	k.Updates(t, old, map[string][]string{
		`{"spec":{"capacity":{"storage":"1Mi"},"accessModes":["ReadWriteMany"],"storageClassName":"y","mountOptions":["a"],"claimRef":null,"persistentVolumeReclaimPolicy":"Delete","volumeAttributesClassName":"y"}}`: nil,
		`{"spec":{"csi":{"controllerExpandSecretRef":{"name":"a","namespace":"b"}}}}`:    nil,
		`{"spec":{"csi":{"nodeExpandSecretRef":{"name":"a","namespace":"b"}}}}`:          {"Forbidden:spec.persistentvolumesource"},
		`{"spec":{"csi":null,"hostPath":{"path":"/a"},"volumeAttributesClassName":"x"}}`: {"Required:spec.csi", "Required:spec.csi", "Forbidden:spec.persistentvolumesource"},
		`{"spec":{"persistentVolumeReclaimPolicy":"Odd"}}`:                               {"NotSupported:spec.persistentVolumeReclaimPolicy", "NotSupported:spec.persistentVolumeReclaimPolicy"},
		`{"spec":{"volumeMode":"Block"}}`:                                                {"Invalid:volumeMode"},
		`{"spec":{"volumeAttributesClassName":null}}`:                                    {"Forbidden:spec.volumeAttributesClassName"},
		`{"spec":{` + affinity("kubernetes.io/arch") + `}}`:                              nil,
		`{"spec":{` + affinity("other") + `}}`:                                           {"Invalid:nodeAffinity"},
		`{"spec":{"nodeAffinity":null}}`:                                                 {"Invalid:nodeAffinity"},
	})
	old.Set("2020-01-01T00:00:00Z", "status", "lastPhaseTransitionTime")
	moved, faults := k.Update(t, old, `{"status":{"phase":"Released","reason":"R"}}`, "status")
	require.Empty(t, faults)
	assert.NotEqual(t, 2020, moved.Time("status", "lastPhaseTransitionTime").Year())
	stays, _ := k.Update(t, old, `{"status":{"message":"m"}}`, "status")
	assert.Equal(t, 2020, stays.Time("status", "lastPhaseTransitionTime").Year())
	cells := map[string]any{
		"Capacity": "1Gi", "Access Modes": "RWO,ROX", "Reclaim Policy": "Retain", "Status": "Released", "Claim": "n/c", "StorageClass": "",
		"VolumeAttributesClass": "x", "Reason": "R", "VolumeMode": "Filesystem",
	}
	for column, want := range cells {
		assert.Equal(t, want, k.Cell(t, moved, column), column)
	}
}

// claim returns a PersistentVolumeClaim with more fields in its spec.
func claim(more string) string {
	return `{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}` + more + `}}`
}

func TestPersistentVolumeClaim(t *testing.T) {
	k := kindtest.Of(t, names.Orch, core.Kinds(), "PersistentVolumeClaim")
	k.Creates(t, map[string][]string{
		claim(``):                     nil,
		`{"spec":{}}`:                 {"Required:spec.accessModes", "Required:spec.resources[storage]"},
		claim(`,"accessModes":["X"]`): {"NotSupported:spec.accessModes"},
		claim(`,"accessModes":["ReadWriteOnce","ReadWriteOncePod"]`):            {"Forbidden:spec.accessModes"},
		claim(`,"resources":{"requests":{"storage":"0"}}`):                      {"Invalid:spec.resources[storage]"},
		claim(`,"storageClassName":""`):                                         nil,
		claim(`,"storageClassName":"A_"`):                                       {"Invalid:spec.storageClassName"},
		claim(`,"volumeMode":"X"`):                                              {"NotSupported:spec.volumeMode"},
		claim(`,"volumeAttributesClassName":""`):                                nil,
		claim(`,"volumeAttributesClassName":"A_"`):                              {"Invalid:spec.volumeAttributesClassName"},
		claim(`,"selector":{"matchExpressions":[{"key":"a","operator":"In"}]}`): {"Required:spec.selector.matchExpressions[0].values"},
		claim(`,"dataSourceRef":{"kind":"Pod","name":"x"}`):                     {"Invalid:spec.dataSource", "Invalid:spec.dataSourceRef"},
		claim(`,"dataSource":{"kind":"PersistentVolumeClaim","name":"x"},"dataSourceRef":{"kind":"PersistentVolumeClaim","name":"y"}`): {"Invalid:spec"},
	})
	old, _ := k.Create(t, `{"status":{"phase":"Bound"},`+claim(`,"storageClassName":"c","volumeName":"v"`)[1:])
	require.Equal(t, "Filesystem Pending", old.String("spec", "volumeMode")+" "+old.String("status", "phase"))
	unbound, _ := k.Create(t, claim(``))
	k.Updates(t, unbound, map[string][]string{
		`{"spec":{"volumeName":"v","storageClassName":"late"}}`:                  nil,
		`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`:                  {"Forbidden:spec"},
		`{"spec":{"volumeMode":"Block"}}`:                                        {"Forbidden:spec", "Invalid:volumeMode"},
		`{"spec":{"selector":{}}}`:                                               {"Forbidden:spec"},
		`{"spec":{"accessModes":["ReadOnlyMany"]}}`:                              {"Forbidden:spec"},
		`{"spec":{"volumeAttributesClassName":"x"}}`:                             {"Forbidden:spec"},
		`{"metadata":{"labels":{"a":"b"}}}`:                                      nil,
		`{"metadata":{"annotations":{"volume.beta.orch.io/storage-class":"x"}}}`: {"Invalid:metadata.annotations.volume.beta.orch.io/storage-class"},
	})
	const beta = "volume.beta.orch.io/storage-class"
	named, _ := k.Create(t, `{"metadata":{"annotations":{"`+beta+`":"a"}},`+claim(``)[1:])
	class := func(name, annotation string) string {
		return `{"metadata":{"annotations":{"` + beta + `":` + annotation + `}},"spec":{"storageClassName":"` + name + `"}}`
	}
	k.Updates(t, named, map[string][]string{
		class("a", `"a"`):  nil,
		class("a", `null`): nil, // the class moved to the field
		class("c", `"a"`):  {"Forbidden:spec"},
		class("c", `null`): {"Invalid:metadata.annotations." + beta, "Forbidden:spec"},
		class("a", `"c"`):  {"Invalid:metadata.annotations." + beta},
		`{"metadata":{"annotations":{"` + beta + `":null}}}`: {"Invalid:metadata.annotations." + beta},
	})
	none, _ := k.Create(t, `{"metadata":{"annotations":{"`+beta+`":""}},`+claim(``)[1:])
	k.Updates(t, none, map[string][]string{class("late", `""`): {"Forbidden:spec"}})
	bound, faults := k.Update(t, old, `{"status":{"phase":"Bound","capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"currentVolumeAttributesClassName":"x"}}`, "status")
	require.Empty(t, faults)
	bound, faults = k.Update(t, bound, `{"spec":{"resources":{"requests":{"storage":"3Gi"}},"volumeAttributesClassName":"x"}}`, "")
	require.Empty(t, faults)
	k.Updates(t, bound, map[string][]string{
		`{"spec":{"resources":{"requests":{"storage":"4Gi"}}}}`:    nil,
		`{"spec":{"resources":{"requests":{"storage":"1025Mi"}}}}`: nil,
		`{"spec":{"resources":{"requests":{"storage":"1Gi"}}}}`:    {"Forbidden:spec.resources.requests.storage"},
		`{"spec":{"resources":{"limits":{"storage":"9Gi"}}}}`:      {"Forbidden:spec"},
		`{"spec":{"volumeName":"w"}}`:                              {"Forbidden:spec"},
		`{"spec":{"storageClassName":"d"}}`:                        {"Forbidden:spec"},
		`{"spec":{"volumeAttributesClassName":"y"}}`:               nil,
		`{"spec":{"volumeAttributesClassName":""}}`:                {"Forbidden:spec.volumeAttributesClassName"},
		`{"spec":{"volumeAttributesClassName":null}}`:              {"Forbidden:spec.volumeAttributesClassName"},
	})
	for status, want := range map[string][]string{
		`{"phase":"Lost","conditions":[{"type":"Resizing","status":"True","reason":"ResizeStarted"}],"resizeStatus":""}`: {},
		`{"capacity":{"storage":"-1"}}`:                             {"Invalid:status.capacity[storage]"},
		`{"allocatedResources":{"storage":"-1","cpu":"1"}}`:         {"NotSupported:status.allocatedResources", "Invalid:status.allocatedResources[storage]"},
		`{"allocatedResourceStatuses":{"storage":"X"}}`:             {"NotSupported:status.allocatedResourceStatuses"},
		`{"allocatedResourceStatuses":{"A B":"NodeResizePending"}}`: {"Invalid:status.allocatedResourceStatuses"},
	} {
		_, got := k.Update(t, bound, `{"status":`+status+`}`, "status")
		assert.Equal(t, want, got, status)
	}
	for column, want := range map[string]any{
		"Status": "Bound", "Volume": "v", "Capacity": "1Gi", "Access Modes": "RWO", "StorageClass": "c", "VolumeAttributesClass": "x", "VolumeMode": "Filesystem",
	} {
		assert.Equal(t, want, k.Cell(t, bound, column), column)
	}
	assert.Equal(t, "", k.Cell(t, unbound, "Capacity"))
	half, _ := k.Create(t, `{"metadata":{"annotations":{"volume.beta.orch.io/storage-class":"old"}},`+claim(`,"resources":{"requests":{"storage":"1500m"}}`)[1:])
	assert.Len(t, k.Warn(k.NewChange(t.Context(), half, nil, "")), 2)
	assert.Equal(t, "old", k.Cell(t, half, "StorageClass"))
}

// TestClaimSources checks that dataSource drops other kinds than claims and snapshots, that
// dataSourceRef rejects invalid references, and that each field sets the other.
func TestClaimSources(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "PersistentVolumeClaim")
	for in, want := range map[string][2]string{
		`,"dataSource":{"kind":"PersistentVolumeClaim","name":"x"}`:                                  {"x", "x"},
		`,"dataSource":{"apiGroup":"snapshot.storage.k8s.io","kind":"VolumeSnapshot","name":"x"}`:    {"x", "x"},
		`,"dataSource":{"kind":"Pod","name":"x"}`:                                                    {"", ""},
		`,"dataSource":{"apiGroup":"example.com","kind":"VolumeSnapshot","name":"x"}`:                {"", ""},
		`,"dataSourceRef":{"apiGroup":"example.com","kind":"Backup","name":"x"}`:                     {"x", "x"},
		`,"dataSourceRef":{"apiGroup":"example.com","kind":"Backup","name":"x","namespace":"other"}`: {"", ""},
	} {
		obj, faults := k.Create(t, claim(in))
		require.Empty(t, faults, in)
		assert.Equal(t, want, [2]string{obj.String("spec", "dataSource", "name"), obj.String("spec", "dataSourceRef", "name")}, in)
	}
}

func TestPersistentVolumeClaimColumns(t *testing.T) {
	k := kind(t, "PersistentVolumeClaim")
	for claim, want := range map[string]string{
		`{"status":{"capacity":{"storage":"1Gi"}}}`:                           "",
		`{"spec":{"volumeName":"v"}}`:                                         "0",
		`{"spec":{"volumeName":"v"},"status":{"capacity":{"storage":"1Gi"}}}`: "1Gi",
	} {
		require.Equal(t, want, k.Cell(t, k.Object(t, claim), "Capacity"), claim)
	}
}
