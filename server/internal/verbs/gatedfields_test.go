package verbs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

// gatedField is a field of a feature that is disabled by default in the newest release.
type gatedField struct {
	gate       string
	collection string // path of the collection
	minimal    string // file in testdata/minimal; "": an object without further fields
	status     bool   // the patch is for the subresource status
	patch      string // for a minimal object
	field      string // a name that the stored object contains if the field is set
}

var gatedFields = []gatedField{
	{"AtomicWriteVolumeUserFields", pods, "pods", false, `{"spec":{"volumes":[{"name":"v","secret":{"secretName":"s","defaultUser":1,"items":[{"key":"k","path":"p"}]}}]}}`, "defaultUser"},
	{"AtomicWriteVolumeUserFields", pods, "pods", false, `{"spec":{"volumes":[{"name":"v","projected":{"sources":[{"secret":{"name":"s","items":[{"key":"k","path":"p","user":1}]}}]}}]}}`, "user"},
	{"ContainerStopSignals", pods, "pods", false, `{"spec":{"os":{"name":"linux"},"containers":[{"name":"c","image":"i","lifecycle":{"stopSignal":"SIGUSR1"}}]}}`, "stopSignal"},
	{"EmptyDirVolumeMode", pods, "pods", false, `{"spec":{"volumes":[{"name":"v","emptyDir":{"mode":448}}]}}`, "mode"},
	{"EvictionRequestAPI", pods, "pods", false, `{"spec":{"evictionResponders":[{"name":"example.com/a","priority":1}]}}`, "evictionResponders"},
	{"GRPCContainerProbeTLS", pods, "pods", false, `{"spec":{"containers":[{"name":"c","image":"i","livenessProbe":{"grpc":{"port":1,"mode":"TLS"}}}]}}`, "mode"},
	{"GenericWorkload", pods, "pods", false, `{"spec":{"schedulingGroup":{"podGroupName":"g"}}}`, "schedulingGroup"},
	{"H2CContainerProbe", pods, "pods", false, `{"spec":{"containers":[{"name":"c","image":"i","livenessProbe":{"httpGet":{"port":1,"protocol":"HTTP2"}}}]}}`, "HTTP2"},
	{"VolumeBindMountOptions", pods, "pods", false, `{"spec":{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"/v","bindMountOptions":["nodev"]}]}]}}`, "bindMountOptions"},
	{"CSIVolumeHealth", pods, "pods", true, `{"status":{"volumeHealth":[{"name":"v"}]}}`, "volumeHealth"},
	{"DRANodeAllocatableResources", pods, "pods", true, `{"status":{"nodeAllocatableResourceClaimStatuses":[{"resourceClaimName":"c"}]}}`, "nodeAllocatableResourceClaimStatuses"},
	{"ImageVolumeWithDigest", pods, "pods", true, `{"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":true,"restartCount":0,
		"volumeMounts":[{"name":"v","mountPath":"/v","volumeStatus":{"image":{"imageRef":"r"}}}]}]}}`, "volumeStatus"},
	{"CSIVolumeHealth", claims, "persistentvolumeclaims", true, `{"status":{"healthStatus":{"healthConditions":[]}}}`, "healthStatus"},
	{"InPlacePodVerticalScalingSchedulerPreemption", "/api/v1/nodes", "nodes", false, `{"spec":{"podPreemptionPolicy":{"disableResizePreemption":["Preemptor"]}}}`, "podPreemptionPolicy"},
	{"CoordinatedLeaderElection", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "", false, `{"spec":{"strategy":"OldestEmulationVersion"}}`, "strategy"},
	{"CoordinatedLeaderElection", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "", false, `{"spec":{"strategy":"a/b","preferredHolder":"h"}}`, "preferredHolder"},
	{"MaxUnavailableStatefulSet", "/apis/apps/v1/namespaces/default/statefulsets", "statefulsets.apps", false, `{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":2}}}}`, "maxUnavailable"},
	{"WorkloadWithJob", "/apis/batch/v1/namespaces/default/jobs", "jobs.batch", false, `{"spec":{"scheduling":{"disruptionMode":{"all":{}}}}}`, "scheduling"},
	{"DRADerivedAttributes", claimsOfDevices, "resourceclaims.resource.k8s.io", false, `{"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"c","derivedAttributes":[{"name":"d.io/a","expression":"1"}]}}]}}}`, "derivedAttributes"},
	{"DRAPartitionableDevicesType", deviceSlices, sliceOfNode, false, `{"spec":{"partitionTypeAttribute":"d.io/a"}}`, "partitionTypeAttribute"},
	{"DRAOptionalNodeOperations", deviceSlices, sliceOfNode, false, `{"spec":{"skipNodeOperations":["*"]}}`, "skipNodeOperations"},
	{"DRADeviceCompatibilityGroups", deviceSlices, sliceOfNode, false, `{"spec":{"devices":[{"name":"a","consumesCounters":[{"counterSet":"s","counters":{"c":{"value":"1"}},"compatibilityGroups":["g"]}]}]}}`, "compatibilityGroups"},
	{"DRANodeAllocatableResources", deviceSlices, sliceOfNode, false, `{"spec":{"devices":[{"name":"a","nodeAllocatableResources":{"cpu":{"mapping":{"deviceMultiplier":"1"}}}}]}}`, "nodeAllocatableResources"},
	{"DRAListTypeAttributes", deviceSlices, sliceOfNode, false, `{"spec":{"devices":[{"name":"a","attributes":{"b":{"int":1,"ints":null}}},{"name":"b","attributes":{"b":{"ints":[1]}}}]}}`, "ints"},
}

const (
	deviceSlices    = "/apis/resource.k8s.io/v1/resourceslices"
	sliceOfNode     = "resourceslices.resource.k8s.io"
	claimsOfDevices = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
)

// write makes an object with the field, and returns its stored text.
func (f gatedField) write(a *apitest.Client, name string) (int, string) {
	body := map[string]any{}
	if f.minimal != "" {
		text, err := apitest.ReadMinimal(f.minimal)
		require.NoError(a.T, err)
		require.NoError(a.T, json.Unmarshal(text, &body))
	}
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	metadata["name"] = name
	patch := map[string]any{}
	require.NoError(a.T, json.Unmarshal([]byte(f.patch), &patch))
	if !f.status {
		merge(body, patch)
	}
	made := a.Do("POST", f.collection, body)
	if f.status && made.Code == 201 {
		made = a.Do("PATCH", f.collection+"/"+name+"/status", f.patch)
	}
	return made.Code, string(made.Raw)
}

// merge merges a patch into a tree.
func merge(tree, patch map[string]any) {
	for k, v := range patch {
		next, ok := v.(map[string]any)
		if old, there := tree[k].(map[string]any); ok && there {
			merge(old, next)
			continue
		}
		tree[k] = v
	}
}

// TestFieldsOfDisabledFeatures: a new object does not get the fields of a feature that is disabled by default. An
// object that already has such a field keeps it.
func TestFieldsOfDisabledFeatures(t *testing.T) {
	t.Parallel()
	store := memstore.New(memstore.Options{})
	build := func(on bool) *apitest.Client {
		return apitest.InProcess(t, servertest.New(t, func(b *server.Builder) {
			store = store.Fork()
			b.Storage, b.Features = store, map[string]bool{}
			b.AdmissionOptions.Disable = []string{"ServiceAccount"}
			for _, f := range gatedFields {
				b.Features[f.gate] = on
			}
		}))
	}
	name := func(i int) string { return "x" + strings.Repeat("y", i) }
	has := func(f gatedField, text string) bool { return strings.Contains(text, `"`+f.field+`"`) }
	a := build(true)
	for i, f := range gatedFields {
		code, text := f.write(a, name(i))
		require.Less(t, code, 300, "%s %s", f.gate, text)
		assert.True(t, has(f, text), "%s is on: %s", f.gate, text)
	}
	a = build(false)
	for i, f := range gatedFields {
		item := f.collection + "/" + name(i)
		kept := a.Must(200, "PATCH", item, `{"metadata":{"labels":{"a":"b"}}}`)
		assert.True(t, has(f, string(kept.Raw)), "%s was in use: %s", f.gate, kept.Raw)
		code, text := f.write(a, name(i)+"z")
		assert.False(t, has(f, text), "%s is off: %s", f.gate, text)
		if f.field == "ints" { // an attribute without a value is invalid
			assert.Equal(t, 422, code)
			continue
		}
		assert.Less(t, code, 300, "%s: %s", f.gate, text)
	}
}
