package storage_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/storage"
	"orch.io/controlplane/registry/internal/kindtest"
)

func TestVolumeAttachment(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, storage.Kinds(), "VolumeAttachment")
	of := func(source string) string {
		return `{"spec":{"attacher":"csi.example.com","nodeName":"n","source":` + source + `}}`
	}
	inline := func(more string) string {
		return of(`{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"d","volumeHandle":"h"}` + more + `}}`)
	}
	const at = "spec.source.inlineVolumeSpec"
	k.Creates(t, map[string][]string{
		of(`{"persistentVolumeName":"pv"}`): nil,
		inline(``):                          nil,
		`{}`:                                {"Required:spec.attacher", "Required:spec.source", "Invalid:spec.nodeName"},
		`{"spec":{"attacher":"A_b","nodeName":"n","source":{"persistentVolumeName":"pv"}}}`: {"Invalid:spec.attacher"},
		`{"spec":{"attacher":"` + strings.Repeat("x", 64) + `","nodeName":"A B","source":{"persistentVolumeName":"pv"}}}`: {
			"TooLong:spec.attacher", "Invalid:spec.nodeName"},
		of(`{}`): {"Required:spec.source"},
		of(`{"persistentVolumeName":"pv","inlineVolumeSpec":{"accessModes":["ReadWriteOnce"]}}`): {"Forbidden:spec.source"},
		of(`{"persistentVolumeName":""}`):                                 {"Required:spec.source.persistentVolumeName", "Invalid:spec.source.persistentVolumeName"},
		of(`{"persistentVolumeName":"A B"}`):                              {"Invalid:spec.source.persistentVolumeName"},
		of(`{"inlineVolumeSpec":{}}`):                                     {"Required:" + at + ".csi", "Required:" + at + ".accessModes", "Required:" + at},
		inline(`,"capacity":{"storage":"1Gi"}`):                           {"Forbidden:" + at + ".capacity"},
		inline(`,"claimRef":{"name":"c"}`):                                {"Forbidden:" + at + ".claimRef"},
		inline(`,"storageClassName":"s"`):                                 {"Forbidden:" + at + ".storageClassName"},
		inline(`,"volumeMode":"Block"`):                                   {"Forbidden:" + at + ".volumeMode"},
		inline(`,"nodeAffinity":{"required":{"nodeSelectorTerms":[{}]}}`): {"Forbidden:" + at + ".nodeAffinity"},
		inline(`,"persistentVolumeReclaimPolicy":"Delete"`):               {"Forbidden:" + at + ".persistentVolumeReclaimPolicy"},
	})
	old, _ := k.Create(t, of(`{"persistentVolumeName":"pv"}`))
	k.Updates(t, old, map[string][]string{
		`{"metadata":{"labels":{"a":"b"}}}`:                       nil,
		`{"spec":{"attacher":"other"}}`:                           {"Invalid:spec"},
		`{"spec":{"nodeName":"other"}}`:                           {"Invalid:spec"},
		`{"spec":{"source":{"persistentVolumeName":"other"}}}`:    {"Invalid:spec"},
		`{"spec":{"source":{"persistentVolumeName":"Bad Name"}}}`: {"Invalid:spec.source.persistentVolumeName", "Invalid:spec"},
	})
	require.Equal(t, "pv", k.Cell(t, old, "PV"))
	require.Equal(t, false, k.Cell(t, old, "Attached"))
}

// TestVolumeAttachmentStatus checks that a write of the status changes nothing else.
func TestVolumeAttachmentStatus(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, storage.Kinds(), "VolumeAttachment")
	old, _ := k.Create(t, `{"spec":{"attacher":"d","nodeName":"n","source":{"persistentVolumeName":"pv"}},"status":{"attached":true,"attachError":{"message":"m"}}}`)
	assert.Equal(t, map[string]any{"attached": false}, old.Map("status"))
	long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	for patch, want := range map[string][]string{
		`{"status":{"attached":true,"attachmentMetadata":{"":"x","a":"b"}}}`:   nil,
		`{"status":{"attachError":{"message":"m","errorCode":8}},"spec":null}`: nil,
		`{"status":{"attachError":{"message":` + long(1025) + `}}}`:            {"TooLong:status.attachError.message"},
		`{"status":{"detachError":{"message":` + long(1025) + `}}}`:            {"TooLong:status.detachError.message"},
		`{"status":{"attachmentMetadata":{"a":` + long(256<<10) + `}}}`:        {"TooLong:status.attachmentMetadata"},
		`{"status":{"attachError":{"errorCode":-1}}}`:                          {"Invalid:status.attachError.errorCode"},
	} {
		_, got := k.Update(t, old, patch, "status")
		assert.ElementsMatch(t, want, got, "%.60s", patch)
	}
	attached, _ := k.Update(t, old, `{"status":{"attached":true},"spec":{"nodeName":"z"}}`, "status")
	require.Equal(t, true, k.Cell(t, attached, "Attached"))
	require.Equal(t, "n", k.Cell(t, attached, "Node"))
}
