package apps_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/apps"
	"orch.io/controlplane/registry/internal/kindtest"
)

const claim = `{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`

func TestStatefulSet(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, apps.Kinds(), "StatefulSet")
	k.Creates(t, badPods)
	spec := func(more string) string { return `{"spec":{` + more + `,` + pods + `}}` }
	rolling := func(settings string) string { return spec(`"updateStrategy":{"rollingUpdate":` + settings + `}`) }
	const at = "spec.updateStrategy.rollingUpdate"
	k.Creates(t, map[string][]string{
		spec(`"serviceName":""`):  nil,
		spec(`"serviceName":"9"`): nil,
		`{"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x","a b":"c"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`: {
			"Invalid:spec.template.labels", "Invalid:spec.template.labels"},
		`{"metadata":{"name":"a.b"},"spec":{` + pods + `}}`: {"Invalid:metadata.name"},
		`{"spec":{` + template + `}}`:                       {"Required:spec.selector", "Invalid:spec.template.metadata.labels"},
		spec(`"serviceName":"a.b"`):                         {"Invalid:spec.serviceName"},
		spec(`"replicas":-1`):                               {"Invalid:spec.replicas"},
		spec(`"ordinals":{"start":-1}`):                     {"Invalid:spec.ordinals.start"},
		strings.Replace(spec(`"replicas":1`), `"containers"`, `"hostname":"A_b","subdomain":"a.b","containers"`, 1): nil, // host names of pods are set by the controller
		spec(`"podManagementPolicy":"Random"`):                                                             {"Invalid:spec.podManagementPolicy"},
		spec(`"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"x","whenScaled":"Delete"}`):           {"NotSupported:spec.persistentVolumeClaimRetentionPolicy.whenDeleted"},
		spec(`"updateStrategy":{"type":"Recreate"}`):                                                       {"Invalid:spec.updateStrategy"},
		spec(`"updateStrategy":{"type":"OnDelete"}`):                                                       nil,
		spec(`"updateStrategy":{"type":"OnDelete","rollingUpdate":{}}`):                                    {"Invalid:" + at},
		rolling(`{"partition":2,"maxUnavailable":"30%"}`):                                                  nil,
		rolling(`{"partition":-1}`):                                                                        {"Invalid:" + at + ".partition"},
		rolling(`{"maxUnavailable":"101%"}`):                                                               {"Invalid:" + at + ".maxUnavailable"},
		rolling(`{"maxUnavailable":0}`):                                                                    {"Invalid:" + at + ".maxUnavailable"},
		spec(`"replicas":-1,"minReadySeconds":-1,"podManagementPolicy":"x","updateStrategy":{"type":"x"}`): {"Invalid:spec.podManagementPolicy", "Invalid:spec.updateStrategy", "Invalid:spec.replicas", "Invalid:spec.minReadySeconds"},
	})
	old, _ := k.Create(t, spec(`"serviceName":"s"`))
	require.Equal(t, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"partition": int64(0), "maxUnavailable": int64(1)}}, old.Map("spec", "updateStrategy"))
	require.Equal(t, map[string]any{"whenDeleted": "Retain", "whenScaled": "Retain"}, old.Map("spec", "persistentVolumeClaimRetentionPolicy"))
	require.Equal(t, "OrderedReady", old.String("spec", "podManagementPolicy"))
	require.Empty(t, k.Warn(k.NewChange(t.Context(), old, nil, "")))
	k.Updates(t, old, map[string][]string{
		`{"spec":{"replicas":3,"ordinals":{"start":1},"minReadySeconds":1,"revisionHistoryLimit":-1}}`:     nil,
		`{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}}`:                       nil,
		`{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`:                             nil,
		`{"spec":{"serviceName":"x y"}}`:                                                                   {"Invalid:spec.serviceName"},
		`{"spec":{"podManagementPolicy":"Parallel"}}`:                                                      {"Invalid:spec.podManagementPolicy"},
		`{"spec":{"volumeClaimTemplates":[` + claim + `]}}`:                                                {"Invalid:spec.volumeClaimTemplates"},
		`{"spec":{"selector":{"matchLabels":{"app":"y"}},"template":{"metadata":{"labels":{"app":"y"}}}}}`: {"Invalid:spec.selector"},
	})
	obj, _ := k.Update(t, old, `{"spec":{"revisionHistoryLimit":-1}}`, "")
	require.Len(t, k.Warn(k.NewChange(t.Context(), obj, old, "")), 1)
	obj, _ = k.Update(t, old, `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`, "")
	obj, _ = k.Update(t, obj, `{"spec":{"updateStrategy":{"type":"RollingUpdate"}}}`, "")
	require.Equal(t, map[string]any{"type": "RollingUpdate"}, obj.Map("spec", "updateStrategy"))
}

func TestStatefulSetClaims(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, apps.Kinds(), "StatefulSet")
	spec := func(volumes, mount, claims string) string {
		return `{"spec":{"selector":{"matchLabels":{"app":"x"}},"template":{"metadata":{"labels":{"app":"x"}},"spec":{"volumes":[` + volumes +
			`],"containers":[{"name":"c","image":"i","volumeMounts":[` + mount + `]}]}},"volumeClaimTemplates":[` + claims + `]}}`
	}
	const mount, volumes, templates = `{"name":"data","mountPath":"/d"}`, "spec.template.spec.volumes", "spec.volumeClaimTemplates[0].spec."
	k.Creates(t, map[string][]string{
		spec(``, mount, claim):                                 nil,
		spec(``, mount, claim+`,`+claim):                       nil,
		spec(`{"name":"data","emptyDir":{}}`, mount, claim):    nil,
		spec(`{"name":"other","emptyDir":{}}`, mount, ``):      {"NotFound:spec.template.spec.containers[0].volumeMounts[0].name"},
		spec(`{"name":"other","emptyDir":{}}`, ``, `{}`):       {"Required:" + templates + "accessModes", "Required:" + templates + "resources[storage]", "Required:" + volumes + "[1].persistentVolumeClaim.claimName", "Required:" + volumes + "[1].name"},
		spec(``, ``, `{"metadata":{"name":"A_b"},`+claim[28:]): {"Invalid:" + volumes + "[0].name"},
		spec(``, ``, `{"metadata":{"name":"a"},"spec":{"accessModes":["x"],"volumeMode":"y","resources":{"requests":{"storage":"0"}}}}`): {"NotSupported:" + templates + "accessModes", "Invalid:" + templates + "resources[storage]", "NotSupported:" + templates + "volumeMode"},
	})
	old, _ := k.Create(t, spec(``, mount, `{"apiVersion":"x","kind":"y","status":{"phase":"Bound"},`+claim[1:]+`,`+claim))
	made := old.Objects("spec", "volumeClaimTemplates")
	require.Equal(t, []string{"v1", "PersistentVolumeClaim", "Bound"}, []string{made[0].String("apiVersion"), made[0].String("kind"), made[0].String("status", "phase")})
	require.Equal(t, []string{"Pending", "Filesystem"}, []string{made[1].String("status", "phase"), made[1].String("spec", "volumeMode")})
	k.Updates(t, old, map[string][]string{
		`{"spec":{"replicas":2}}`:                nil,
		`{"spec":{"volumeClaimTemplates":null}}`: {"NotFound:spec.template.spec.containers[0].volumeMounts[0].name", "Invalid:spec.volumeClaimTemplates"},
	})
	part, _ := k.Create(t, spec(``, ``, `{"metadata":{"name":"a"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"100m"}}}}`))
	require.Len(t, k.Warn(k.NewChange(t.Context(), part, nil, "")), 1, "a part of a byte")
}

// TestStoredTemplates checks that a template that was stored before a rule existed prevents neither
// scaling nor changes of labels and finalizers, and that a change of the template is checked.
func TestStoredTemplates(t *testing.T) {
	for _, kind := range []string{"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"} {
		k := kindtest.Of(t, names.Kubernetes, apps.Kinds(), kind)
		old, faults := k.Create(t, `{"spec":{`+pods+`}}`)
		require.Empty(t, faults)
		c := old.Objects("spec", "template", "spec", "containers")[0]
		c.Set("Not A Label", "name")                                                    // violates a rule of the schema
		c.Set([]any{map[string]any{"name": "gone", "mountPath": "/x"}}, "volumeMounts") // violates a rule in code
		k.Updates(t, old, map[string][]string{
			`{"metadata":{"labels":{"a":"b"}},"spec":{"minReadySeconds":2}}`:     nil,
			`{"spec":{"template":{"spec":{"restartPolicy":"Always"}}}}`:          nil,
			`{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":1}}}}`: {"Invalid:spec.template.spec.containers[0].name", "NotFound:spec.template.spec.containers[0].volumeMounts[0].name"},
		})
	}
}

func TestStatefulSetStatus(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, apps.Kinds(), "StatefulSet")
	old, _ := k.Create(t, `{"spec":{"replicas":3,`+pods+`},"status":{}}`)
	old.Set(int64(2), "status", "collisionCount")
	for status, want := range map[string][]string{
		`{"replicas":3,"readyReplicas":2,"currentReplicas":1,"updatedReplicas":3,"availableReplicas":2}`: {},
		`{"replicas":2,"readyReplicas":1,"currentReplicas":3,"updatedReplicas":3,"availableReplicas":2}`: {"Invalid:status.currentReplicas", "Invalid:status.updatedReplicas", "Invalid:status.availableReplicas"},
		`{"observedGeneration":-1}`: {"Invalid:status.observedGeneration"},
		`{"collisionCount":1}`:      {"Invalid:status.collisionCount"},
		`{"collisionCount":null}`:   {"Invalid:status.collisionCount"},
		`{"collisionCount":3}`:      {},
	} {
		_, faults := k.Update(t, old, `{"status":`+status+`}`, "status")
		require.Equal(t, want, faults, status)
	}
	obj, _ := k.Update(t, old, `{"status":{"replicas":2,"readyReplicas":1}}`, "status")
	for column, want := range map[string]any{"Ready": "1/3", "Containers": "c", "Images": "example.com/app:1"} {
		require.Equal(t, want, k.Cell(t, obj, column), column)
	}
}
