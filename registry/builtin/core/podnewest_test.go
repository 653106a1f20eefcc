package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/internal/kindtest"
)

// TestNewestFieldsOfPods checks fields that only the newest release has.
func TestNewestFieldsOfPods(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "Pod")
	spec := func(more string) string { return `{"metadata":{"name":"p"},"spec":{` + more + `}}` }
	container := func(fields string) string {
		return spec(`"volumes":[{"name":"v"},{"name":"i","image":{"reference":"r"}}],"containers":[{"name":"c","image":"i",` + fields + `}]`)
	}
	volume := func(source string) string {
		return spec(`"volumes":[{"name":"v",` + source + `}],"containers":[{"name":"c","image":"i"}]`)
	}
	responders := func(list string) string {
		return spec(`"containers":[{"name":"c","image":"i"}],"evictionResponders":[` + list + `]`)
	}
	const c, v, e = "spec.containers[0].", "spec.volumes[0].", "spec.evictionResponders[0]."
	k.Creates(t, map[string][]string{
		container(`"volumeMounts":[{"name":"v","mountPath":"/a","bindMountOptions":["noexec","nodev"]}]`):  nil,
		container(`"volumeMounts":[{"name":"v","mountPath":"/a","bindMountOptions":["ro"]}]`):              {"NotSupported:" + c + "volumeMounts[0].bindMountOptions[0]"},
		container(`"volumeMounts":[{"name":"i","mountPath":"/a","bindMountOptions":["noexec"]}]`):          {"Forbidden:" + c + "volumeMounts[0].bindMountOptions"},
		container(`"livenessProbe":{"grpc":{"port":1,"mode":"TLS"}}`):                                      nil,
		container(`"livenessProbe":{"grpc":{"port":1,"mode":"mTLS"}}`):                                     {"NotSupported:" + c + "livenessProbe.grpc.mode"},
		container(`"livenessProbe":{"httpGet":{"port":1,"protocol":"HTTP2"}}`):                             nil,
		container(`"livenessProbe":{"httpGet":{"port":1,"protocol":"HTTP2","scheme":"HTTPS"}}`):            {"Invalid:" + c + "livenessProbe.httpGet.protocol"},
		container(`"livenessProbe":{"httpGet":{"port":1,"protocol":"HTTP3"}}`):                             {"NotSupported:" + c + "livenessProbe.httpGet.protocol"},
		volume(`"emptyDir":{"mode":1023}`):                                                                 nil,
		volume(`"emptyDir":{"mode":1024}`):                                                                 {"Invalid:" + v + "emptyDir.mode"},
		volume(`"secret":{"secretName":"s","defaultUser":1000,"items":[{"key":"k","path":"p","user":0}]}`): nil,
		volume(`"secret":{"secretName":"s","defaultUser":-1}`):                                             {"Invalid:" + v + "secret.defaultUser"},
		volume(`"configMap":{"name":"s","items":[{"key":"k","path":"p","user":-1}]}`):                      {"Invalid:" + v + "configMap.items[0].user"},
		responders(`{"name":"example.com/a","priority":10000},{"name":"example.com/b","priority":0}`):      nil,
		responders(`{"name":"a","priority":100001}`):                                                       {"Invalid:" + e + "name", "Invalid:" + e + "priority"},
		responders(`{}`): {"Required:" + e + "name", "Required:" + e + "priority"},
		responders(`{"name":"example.com/a","priority":1}],"schedulingGroup":{"podGroupName":"g"},"tolerations":[`): {"Forbidden:spec.evictionResponders"},
	})
	old, _ := k.Create(t, responders(`{"name":"example.com/a","priority":1}`))
	_, faults := k.Update(t, old, `{"spec":{"evictionResponders":null}}`, "")
	require.Equal(t, []string{"Forbidden:spec"}, faults)
	_, faults = k.Update(t, old, `{"status":{"volumeHealth":[{"name":"v","healthConditions":[{"status":"Degraded"}]}]}}`, "status")
	require.Equal(t, []string{"Required:status.volumeHealth[0].healthConditions[0].reason"}, faults)
}
