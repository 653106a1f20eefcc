package core_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/internal/kindtest"
)

const box = `{"name":"c","image":"example.com/app:1"}`

// withContainer, withVolume and withSpec return a valid pod with additional fields.
func withContainer(fields string) string {
	return `{"spec":{"containers":[{"name":"c","image":"example.com/app:1",` + fields + `}],"volumes":[{"name":"v","emptyDir":{}}]}}`
}

func withVolume(source string) string {
	return `{"spec":{"serviceAccountName":"a","containers":[` + box + `],"volumes":[{"name":"v",` + source + `}]}}`
}

func withSpec(fields string) string { return `{"spec":{"containers":[` + box + `],` + fields + `}}` }

func TestPodDefaults(t *testing.T) {
	k := kind(t, "Pod")
	obj, faults := k.Create(t, `{"spec":{"hostNetwork":true,"containers":[{"name":"c","image":"app","ports":[{"containerPort":80}],
		"livenessProbe":{"httpGet":{"port":80}},"resources":{"limits":{"cpu":"0.5","memory":"1024Mi"}}},{"name":"d","image":"app:1"}]}}`)
	require.Empty(t, faults)
	c := meta.NewObject(obj.List("spec", "containers")[0].(map[string]any))
	require.Equal(t, "Always", c.String("imagePullPolicy"))
	require.Equal(t, []any{map[string]any{"containerPort": int64(80), "hostPort": int64(80), "protocol": "TCP"}}, c.List("ports"))
	require.Equal(t, map[string]any{"cpu": "500m", "memory": "1Gi"}, c.Map("resources", "requests"), "limits are requested, canonically")
	require.Equal(t, "/", c.String("livenessProbe", "httpGet", "path"))
	require.Equal(t, int64(3), c.Int("livenessProbe", "failureThreshold"))
	require.Equal(t, "/dev/termination-log", c.String("terminationMessagePath"))
	d := meta.NewObject(obj.List("spec", "containers")[1].(map[string]any))
	require.Equal(t, "IfNotPresent", d.String("imagePullPolicy"))
	require.Equal(t, map[string]any{}, d.Map("resources"))
	old, _ := k.Create(t, withSpec(`"terminationGracePeriodSeconds":-5`))
	require.Equal(t, int64(1), old.Int("spec", "terminationGracePeriodSeconds"))
	gated, _ := k.Create(t, withSpec(`"schedulingGates":[{"name":"g"}]`))
	require.NotNil(t, gated.List("status", "conditions")[0].(map[string]any)["lastTransitionTime"])
	for field, want := range map[string]any{
		"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "enableServiceLinks": true,
		"terminationGracePeriodSeconds": int64(30), "securityContext": map[string]any{},
	} {
		require.Equal(t, want, obj.Map("spec")[field], field)
	}
	require.Equal(t, "Pending", obj.String("status", "phase"))
	require.Equal(t, "Burstable", obj.String("status", "qosClass"))
}

// TestPullPolicy checks the default pull policy: Always for images without a tag or with the tag
// latest. Malformed names and image IDs get IfNotPresent.
func TestPullPolicy(t *testing.T) {
	k := kind(t, "Pod")
	digest := "@sha256:" + strings.Repeat("a", 64)
	for policy, images := range map[string][]string{
		"Always": {"a", "a:latest", "host:80/a", "A.b/c", "a__b", "a---b", "[::1]:5/x", "localhost/a", strings.Repeat("x", 237)},
		"IfNotPresent": {"a:b" + digest, "a" + digest, "Bogus_X", "localhost/A/b", "a/b:LATEST", "a:", "a:b:c", "a..b", "a___b", "a/", "/a", "-a", "100%", "../x",
			"docker.io/X", strings.Repeat("a", 64), strings.Repeat("x", 238)},
	} {
		for _, image := range images {
			obj, _ := k.Create(t, `{"spec":{"containers":[{"name":"c","image":"`+image+`"}],"volumes":[{"name":"v","image":{"reference":"`+image+`"}}]}}`)
			require.Equal(t, policy, meta.NewObject(obj.List("spec", "containers")[0].(map[string]any)).String("imagePullPolicy"), image)
			require.Equal(t, policy, meta.NewObject(obj.List("spec", "volumes")[0].(map[string]any)).String("image", "pullPolicy"), image)
		}
	}
}

func TestPodViolations(t *testing.T) {
	kind(t, "Pod").Creates(t, map[string][]string{
		`{"spec":{"containers":[]}}`:                                                                             {"Required:spec.containers"},
		`{"spec":{"containers":[{"name":"Bad_Name","image":"a"}]}}`:                                              {"Invalid:spec.containers[0].name"},
		`{"spec":{"containers":[{"name":"c"}]}}`:                                                                 {"Required:spec.containers[0].image"},
		`{"spec":{"containers":[` + box + `,` + box + `]}}`:                                                      {"Duplicate:spec.containers[1].name"},
		withSpec(`"restartPolicy":"Sometimes"`):                                                                  {"NotSupported:spec.restartPolicy"},
		withSpec(`"dnsPolicy":"None"`):                                                                           {"Required:spec.dnsConfig"},
		withSpec(`"nodeSelector":{"a b":"c"}`):                                                                   {"Invalid:spec.nodeSelector"},
		withSpec(`"activeDeadlineSeconds":0`):                                                                    {"Invalid:spec.activeDeadlineSeconds"},
		withSpec(`"hostname":"a.b"`):                                                                             {"Invalid:spec.hostname"},
		withSpec(`"tolerations":[{"operator":"Equal","value":"x"}]`):                                             {"Invalid:spec.tolerations[0].operator"},
		withSpec(`"tolerations":[{"key":"k","effect":"Never"}]`):                                                 {"NotSupported:spec.tolerations[0].effect"},
		withSpec(`"topologySpreadConstraints":[{"maxSkew":0,"topologyKey":"","whenUnsatisfiable":"X"}]`):         {"Invalid:spec.topologySpreadConstraints[0].maxSkew", "Required:spec.topologySpreadConstraints[0].topologyKey", "NotSupported:spec.topologySpreadConstraints[0].whenUnsatisfiable"},
		withSpec(`"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{}]}}`):           {"Required:spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey", "Invalid:spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey", "Invalid:spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"},
		withSpec(`"ephemeralContainers":[{"name":"e","image":"x"}]`):                                             {"Forbidden:spec.ephemeralContainers"},
		withSpec(`"securityContext":{"runAsUser":-1}`):                                                           {"Invalid:spec.securityContext.runAsUser"},
		withContainer(`"imagePullPolicy":"Maybe"`):                                                               {"NotSupported:spec.containers[0].imagePullPolicy"},
		withContainer(`"ports":[{"containerPort":0}]`):                                                           {"Required:spec.containers[0].ports[0].containerPort"},
		withContainer(`"ports":[{"containerPort":70000,"protocol":"ICMP"}]`):                                     {"Invalid:spec.containers[0].ports[0].containerPort", "NotSupported:spec.containers[0].ports[0].protocol"},
		withContainer(`"resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}`):                               {"Invalid:spec.containers[0].resources.requests"},
		withContainer(`"resources":{"limits":{"gold":"1"}}`):                                                     {"Invalid:spec.containers[0].resources.limits[gold]", "Invalid:spec.containers[0].resources.limits[gold]", "Invalid:spec.containers[0].resources.requests[gold]", "Invalid:spec.containers[0].resources.requests[gold]"},
		withContainer(`"env":[{"name":"A","value":"x","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]`): {"Invalid:spec.containers[0].env[0].valueFrom"},
		withContainer(`"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"spec.x"}}}]`):                    {"Invalid:spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
		withContainer(`"livenessProbe":{}`):                                                                      {"Required:spec.containers[0].livenessProbe"},
		withContainer(`"livenessProbe":{"tcpSocket":{"port":1},"successThreshold":2}`):                           {"Invalid:spec.containers[0].livenessProbe.successThreshold"},
		withContainer(`"volumeMounts":[{"name":"none","mountPath":"/x"}]`):                                       {"NotFound:spec.containers[0].volumeMounts[0].name"},
		withContainer(`"volumeMounts":[{"name":"v","mountPath":""}]`):                                            {"Required:spec.containers[0].volumeMounts[0].mountPath"},
		withContainer(`"volumeMounts":[{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/a"}]`):            {"Invalid:spec.containers[0].volumeMounts[1].mountPath"},
		withContainer(`"volumeMounts":[{"name":"v","mountPath":"/a","subPath":"../x"}]`):                         {"Invalid:spec.containers[0].volumeMounts.subPath"},
		withContainer(`"volumeMounts":[{"name":"v","mountPath":"/a","subPath":"x","subPathExpr":"$(A)"}]`):       {"Invalid:spec.containers[0].volumeMounts[0].subPathExpr"},
		withContainer(`"securityContext":{"privileged":true,"allowPrivilegeEscalation":false}`):                  {"Invalid:spec.containers[0].securityContext"},
	})
}

// TestVolumeSources checks the rules of each volume source, under its wire name.
func TestVolumeSources(t *testing.T) {
	const at = ":spec.volumes[0]."
	const claim = at + "ephemeral.volumeClaimTemplate.spec."
	withClaim := func(fields string) string {
		return withVolume(`"ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},` + fields + `}}}`)
	}
	kind(t, "Pod").Creates(t, map[string][]string{
		withVolume(`"persistentVolumeClaim":{}`):                                                                                                                     {"Required" + at + "persistentVolumeClaim.claimName"},
		withVolume(`"configMap":{}`):                                                                                                                                 {"Required" + at + "configMap.name"},
		withVolume(`"configMap":{"name":"a","defaultMode":512}`):                                                                                                     {"Invalid" + at + "configMap.defaultMode"},
		withVolume(`"configMap":{"name":"a","items":[{"key":"k","path":"../p"}]}`):                                                                                   {"Invalid" + at + "configMap.items[0].path"},
		withVolume(`"configMap":{"name":"a","items":[{"key":"k","path":"/abs"}]}`):                                                                                   {"Invalid" + at + "configMap.items[0].path"},
		withVolume(`"secret":{"secretName":"a","items":[{"key":"","path":"p"}]}`):                                                                                    {"Required" + at + "secret.items[0].key"},
		withVolume(`"secret":{"secretName":"a","items":[{"key":"k","path":"p","mode":1000}]}`):                                                                       {"Invalid" + at + "secret.items[0].mode"},
		withVolume(`"downwardAPI":{"items":[{"path":"p","fieldRef":{"fieldPath":"spec.nodeName"}}]}`):                                                                {"NotSupported" + at + "downwardAPI.fieldRef.fieldPath"},
		withVolume(`"projected":{"sources":[{"serviceAccountToken":{"path":"t","expirationSeconds":599}}]}`):                                                         {"Invalid" + at + "projected.sources[0].serviceAccountToken.expirationSeconds"},
		withVolume(`"projected":{"sources":[{"serviceAccountToken":{"path":""}}]}`):                                                                                  {"Required" + at + "projected.path"},
		withVolume(`"projected":{"sources":[{"configMap":{"name":"a","items":[{"key":"k","path":"p"}]}},{"secret":{"name":"b","items":[{"key":"k","path":"p"}]}}]}`): {"Invalid" + at + "projected"},
		withVolume(`"emptyDir":{"sizeLimit":"-1"}`):                                                                                                                  {"Forbidden" + at + "emptyDir.sizeLimit"},
		withVolume(`"hostPath":{"path":""}`):                                                                                                                         {"Required" + at + "hostPath.path"},
		withVolume(`"ephemeral":{}`):                                                                                                                                 {"Required" + at + "ephemeral.volumeClaimTemplate"},
		withVolume(`"ephemeral":{"volumeClaimTemplate":{"metadata":{"name":"x"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}`): {"Forbidden" + at + "ephemeral.volumeClaimTemplate.metadata.name"},
		withVolume(`"csi":{}`):                                 {"Required" + at + "csi.driver"},
		withVolume(`"awsElasticBlockStore":{"partition":300}`): {"Required" + at + "awsElasticBlockStore.volumeID", "Invalid" + at + "awsElasticBlockStore.partition"},
		withVolume(`"azureDisk":{"kind":"X"}`):                 {"Required" + at + "azureDisk.diskName", "Required" + at + "azureDisk.diskURI", "NotSupported" + at + "azureDisk.diskURI", "NotSupported" + at + "azureDisk.kind"},
		withVolume(`"azureFile":{}`):                           {"Required" + at + "azureFile.secretName", "Required" + at + "azureFile.shareName"},
		withVolume(`"gcePersistentDisk":{}`):                   {"Required" + at + "persistentDisk.pdName"},
		withVolume(`"vsphereVolume":{}`):                       {"Required" + at + "vsphereVolume.volumePath"},
		withVolume(`"photonPersistentDisk":{}`):                {"Required" + at + "photonPersistentDisk.pdID"},
		withVolume(`"cinder":{}`):                              {"Required" + at + "cinder.volumeID"},
		withVolume(`"cephfs":{}`):                              {"Required" + at + "cephfs.monitors"},
		withVolume(`"rbd":{}`):                                 {"Required" + at + "rbd.monitors", "Required" + at + "rbd.image"},
		withVolume(`"glusterfs":{}`):                           {"Required" + at + "glusterfs.endpoints", "Required" + at + "glusterfs.path"},
		withVolume(`"portworxVolume":{}`):                      {"Required" + at + "portworxVolume.volumeID"},
		withVolume(`"quobyte":{}`):                             {"Required" + at + "quobyte.registry", "Required" + at + "quobyte.volume"},
		withVolume(`"scaleIO":{}`):                             {"Required" + at + "scaleIO.gateway", "Required" + at + "scaleIO.system", "Required" + at + "scaleIO.volumeName", "Required" + at + "scaleIO.secretRef"},
		withVolume(`"storageos":{}`):                           {"Required" + at + "storageos.volumeName"},
		withVolume(`"flocker":{}`):                             {"Required" + at + "flocker"},
		withVolume(`"fc":{}`):                                  {"Required" + at + "fc.targetWWNs"},
		withVolume(`"flexVolume":{}`):                          {"Required" + at + "flexVolume.driver"},
		withVolume(`"iscsi":{}`):                               {"Required" + at + "iscsi.targetPortal", "Required" + at + "iscsi.iqn"},
		withVolume(`"iscsi":{"targetPortal":"t","iqn":"iqn.2001-04.com.example:x","secretRef":{}}`):                                    nil,
		withVolume(`"iscsi":{"targetPortal":"` + strings.Repeat("t", 63) + `","iqn":"iqn.2001-04.com.example:x","initiatorName":"A"}`): {"Invalid" + at + "iscsi.initiatorname", "Invalid" + at + "name"},
		withVolume(`"csi":{"driver":"d","nodePublishSecretRef":{"name":"A"}}`):                                                         {"Invalid" + at + "csi.name"},
		withVolume(`"storageos":{"volumeName":"A","volumeNamespace":"a"}`):                                                             {"Invalid" + at + "storageos.volumeName"},
		withVolume(`"storageos":{"volumeName":"a","volumeNamespace":"a/b"}`):                                                           {"Invalid" + at + "storageos.volumeNamespace"},
		withClaim(`"dataSource":{}`):                                                                                                                                   {"Required" + claim + "dataSource.kind", "Required" + claim + "dataSource.name", "Invalid" + claim + "dataSource"},
		withClaim(`"dataSource":{"kind":"PersistentVolumeClaim","name":"x"}`):                                                                                          nil,
		withClaim(`"dataSource":{"kind":"X","name":"x","apiGroup":"a b"}`):                                                                                             {"Invalid" + claim + "dataSource.apiGroup"},
		withClaim(`"dataSourceRef":{"kind":"X","name":"x","apiGroup":"a b","namespace":"A"}`):                                                                          {"Invalid" + claim + "dataSourceRef.apiGroup", "Invalid" + claim + "dataSourceRef.namespace"},
		withClaim(`"dataSource":{"kind":"X","name":"y","apiGroup":"a"},"dataSourceRef":{"kind":"X","name":"x","apiGroup":"a"}`):                                        {"Invalid:spec.volumes[0].ephemeral.volumeClaimTemplate.spec"},
		withClaim(`"dataSource":{"kind":"X","name":"x","apiGroup":"a"},"dataSourceRef":{"kind":"X","name":"x","apiGroup":"a"}`):                                        nil,
		withVolume(`"nfs":{"server":"s","path":"p"}`):                                                                                                                  {"Invalid" + at + "nfs.path"},
		withVolume(`"azureDisk":{"diskName":"d","diskURI":"https://x"}`):                                                                                               nil,
		withVolume(`"azureDisk":{"diskName":"d","diskURI":"https://x","kind":"Managed"}`):                                                                              {"NotSupported" + at + "azureDisk.diskURI"},
		withVolume(`"iscsi":{"targetPortal":"p","iqn":"iqn.2001-04.com.example:a"}`):                                                                                   nil,
		withVolume(`"iscsi":{"targetPortal":"p","iqn":"iqn.01-04.com.example:a"}`):                                                                                     {"Invalid" + at + "iscsi.iqn"},
		withVolume(`"iscsi":{"targetPortal":"p","iqn":"eui.0123456789abcdef","initiatorName":"x","chapAuthSession":true}`):                                             {"Required" + at + "iscsi.secretRef", "Invalid" + at + "iscsi.initiatorname"},
		withVolume(`"fc":{"targetWWNs":["a"],"wwids":["b"]}`):                                                                                                          {"Invalid" + at + "fc.targetWWNs", "Required" + at + "fc.lun"},
		withVolume(`"flexVolume":{"driver":"d","options":{"x.k8s.io/a":"b","x.io/a":"b"}}`):                                                                            {"Invalid" + at + "flexVolume.options[x.k8s.io/a]"},
		withVolume(`"projected":{"sources":[{"configMap":{"name":"a"},"secret":{"name":"b"}}]}`):                                                                       {"Forbidden" + at + "projected.sources[0]"},
		withVolume(`"projected":{"sources":[{}]}`):                                                                                                                     nil,
		withVolume(`"projected":{"sources":[{"serviceAccountToken":{"path":"t"}},{"downwardAPI":{"items":[{"path":"t","fieldRef":{"fieldPath":"metadata.name"}}]}}]}`): nil,
		withVolume(`"projected":{"sources":[{"clusterTrustBundle":{"path":".."}}]}`): {
			"Invalid" + at + "projected.sources[0].clusterTrustBundle.path", "Invalid" + at + "projected.sources[0].clusterTrustBundle.path", "Required" + at + "projected.sources[0].clusterTrustBundle"},
		withVolume(`"image":{}`):                             {"Required" + at + "image.reference"},
		withVolume(`"gitRepo":{}`):                           {"Required" + at + "gitRepo.repository"},
		withVolume(`"emptyDir":{},"hostPath":{"path":"/a"}`): {"Forbidden" + at + "hostPath"},
	})
}

func TestVolumeFieldsHaveTheProfilesNames(t *testing.T) {
	orch := kindtest.Of(t, names.Orch, core.Kinds(), "Pod")
	_, got := orch.Create(t, withVolume(`"storeAblock":{"monitors":["m"]}`))
	require.Equal(t, []string{"Required:spec.volumes[0].storeAblock.image"}, got)
	obj, got := orch.Create(t, withVolume(`"storeAblock":{"monitors":["m"],"image":"i"}`))
	require.Empty(t, got)
	require.Len(t, orch.Warn(orch.NewChange(t.Context(), obj, nil, "")), 1)
}

func TestPodUpdates(t *testing.T) {
	k := kind(t, "Pod")
	old, _ := k.Create(t, withSpec(`"activeDeadlineSeconds":100`))
	for patch, want := range map[string][]string{
		`{"spec":{"containers":[{"name":"c","image":"example.com/app:2"}]}}`:                 {},
		`{"metadata":{"labels":{"a":"b"}},"status":{"phase":"Running"}}`:                     {},
		`{"spec":{"activeDeadlineSeconds":50}}`:                                              {},
		`{"spec":{"activeDeadlineSeconds":200}}`:                                             {"Invalid:spec.activeDeadlineSeconds"},
		`{"spec":{"activeDeadlineSeconds":null}}`:                                            {"Invalid:spec.activeDeadlineSeconds"},
		`{"spec":{"nodeName":"n1"}}`:                                                         {"Forbidden:spec"},
		`{"spec":{"containers":[{"name":"c","image":"example.com/app:1","command":["x"]}]}}`: {"Forbidden:spec"},
		`{"spec":{"containers":[` + box + `,{"name":"d","image":"d"}]}}`:                     {"Forbidden:spec.containers"},
		`{"spec":{"terminationGracePeriodSeconds":1}}`:                                       {"Forbidden:spec"},
		`{"spec":{"ephemeralContainers":[{"name":"e","image":"x"}]}}`:                        {"Forbidden:spec"},
	} {
		obj, got := k.Update(t, old, patch, "")
		require.Equal(t, want, got, patch)
		require.Equal(t, "Pending", obj.String("status", "phase"), "the status has its own endpoint")
	}
	more, faults := k.Update(t, old, `{"spec":{"tolerations":[{"key":"k","operator":"Exists"}]}}`, "")
	require.Empty(t, faults)
	_, faults = k.Update(t, more, `{"spec":{"tolerations":[]}}`, "")
	require.Equal(t, []string{"Forbidden:spec.tolerations"}, faults)
}

func TestEphemeralContainers(t *testing.T) {
	k := kind(t, "Pod")
	old, _ := k.Create(t, withSpec(`"hostNetwork":false`))
	const sub = "ephemeralcontainers"
	obj, faults := k.Update(t, old, `{"spec":{"nodeName":"n","ephemeralContainers":[{"name":"debug","image":"busybox","targetContainerName":"c"}]}}`, sub)
	require.Empty(t, faults)
	require.Empty(t, obj.String("spec", "nodeName"))
	for patch, want := range map[string][]string{
		`{"spec":{"ephemeralContainers":[{"name":"debug","image":"other"}]}}`:                                {"Forbidden:spec.ephemeralContainers"},
		`{"spec":{"ephemeralContainers":[]}}`:                                                                {"Forbidden:spec.ephemeralContainers"},
		`{"spec":{"ephemeralContainers":[{"name":"debug","image":"busybox","targetContainerName":"none"}]}}`: {"NotFound:spec.ephemeralContainers[0].targetContainerName", "Forbidden:spec.ephemeralContainers"},
	} {
		_, got := k.Update(t, obj, patch, sub)
		require.Equal(t, want, got, patch)
	}
}

func TestPodGrace(t *testing.T) {
	k := kind(t, "Pod")
	five, minus := int64(5), int64(-1)
	for _, c := range []struct {
		node, phase string
		asked       *int64
		want        int64
	}{
		{"", "Pending", &five, 0}, {"n", "Pending", nil, 30}, {"n", "Running", &five, 5}, {"n", "Failed", &five, 0}, {"n", "Running", &minus, 1},
	} {
		obj := meta.NewObject(map[string]any{})
		obj.Set(c.node, "spec", "nodeName")
		obj.Set(int64(30), "spec", "terminationGracePeriodSeconds")
		obj.Set(c.phase, "status", "phase")
		require.Equal(t, c.want, k.GracePeriod(obj, c.asked), "%+v", c)
	}
}

func TestPodColumns(t *testing.T) {
	k := kind(t, "Pod")
	const running = `"state":{"running":{}},"ready":true`
	const waiting = `"state":{"waiting":{"reason":"ContainerCreating"}}`
	ended := func(fields string) string { return `"state":{"terminated":{` + fields + `}}` }
	two := `"containers":[{"name":"a"},{"name":"b"}],"initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}]`
	for _, c := range []struct{ metadata, spec, status, want string }{
		{``, two, `"phase":"Pending"`, "0/3 Pending 0"},
		{``, two, `"phase":"Pending","reason":"Unschedulable"`, "0/3 Unschedulable 0"},
		{``, two, `"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]`, "0/3 SchedulingGated 0"},
		{``, two, `"phase":"Pending","initContainerStatuses":[{"name":"i","restartCount":2,` + waiting + `}]`, "0/3 Init:ContainerCreating 2"},
		{``, two, `"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"PodInitializing"}}}]`, "0/3 Init:0/2 0"},
		{``, two, `"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"running":{}}}]`, "0/3 Init:0/2 0"},
		{``, two, `"phase":"Pending","initContainerStatuses":[{"name":"i",` + ended(`"exitCode":3`) + `}]`, "0/3 Init:ExitCode:3 0"},
		{``, two, `"phase":"Pending","initContainerStatuses":[{"name":"i",` + ended(`"exitCode":3,"signal":9`) + `}]`, "0/3 Init:Signal:9 0"},
		{``, two, `"phase":"Pending","initContainerStatuses":[{"name":"i",` + ended(`"exitCode":3,"reason":"Error"`) + `}]`, "0/3 Init:Error 0"},
		{``, two, `"phase":"Pending","initContainerStatuses":[{"name":"i","restartCount":1,` + ended(`"exitCode":0`) + `},{"name":"s","restartCount":1,` + running + `}]`, "0/3 Init:1/2 2"},
		{``, two, `"phase":"Running","initContainerStatuses":[{"name":"i","restartCount":1,` + ended(`"exitCode":0`) + `},{"name":"s","restartCount":4,"started":true,` + running + `}],
			"containerStatuses":[{"name":"a","restartCount":1,` + running + `},{"name":"b",` + running + `}]`, "3/3 Running 5"},
		{``, two, `"phase":"Pending","conditions":[{"type":"Initialized","status":"True"}],"initContainerStatuses":[{"name":"s",` + running + `}],
			"containerStatuses":[{"name":"a",` + waiting + `}]`, "0/3 ContainerCreating 0"},
		{``, two, `"phase":"Running","containerStatuses":[{"name":"a",` + waiting + `},{"name":"b",` + ended(`"reason":"Error"`) + `}]`, "0/3 ContainerCreating 0"},
		{``, two, `"phase":"Running","containerStatuses":[{"name":"a",` + running + `},{"name":"b",` + ended(`"exitCode":1`) + `}]`, "1/3 ExitCode:1 0"},
		{``, two, `"phase":"Running","containerStatuses":[{"name":"a",` + ended(`"reason":"Completed"`) + `},{"name":"b",` + running + `}]`, "1/3 NotReady 0"},
		{``, two, `"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"a",` + ended(`"reason":"Completed"`) + `},{"name":"b",` + running + `}]`, "1/3 Running 0"},
		{`"deletionTimestamp":"2024-01-01T00:00:00Z"`, two, `"phase":"Running"`, "0/3 Terminating 0"},
		{`"deletionTimestamp":"2024-01-01T00:00:00Z"`, two, `"phase":"Failed"`, "0/3 Failed 0"},
		{`"deletionTimestamp":"2024-01-01T00:00:00Z"`, two, `"phase":"Running","reason":"NodeLost"`, "0/3 Unknown 0"},
	} {
		obj := k.Object(t, `{"metadata":{`+c.metadata+`},"spec":{`+c.spec+`},"status":{`+c.status+`}}`)
		got := fmt.Sprint(k.Cell(t, obj, "Ready"), " ", k.Cell(t, obj, "Status"), " ", k.Cell(t, obj, "Restarts"))
		require.Equal(t, c.want, got, c.status)
	}
	obj := k.Object(t, `{"spec":{"nodeName":"n","readinessGates":[{"conditionType":"g"},{"conditionType":"h"}]},
		"status":{"podIPs":[{"ip":"10.0.0.1"}],"conditions":[{"type":"g","status":"True"}],
		"containerStatuses":[{"restartCount":1,"lastState":{"terminated":{"finishedAt":"2024-01-01T00:00:00Z"}}}]}}`)
	for name, want := range map[string]any{"IP": "10.0.0.1", "Node": "n", "Nominated Node": "<none>", "Readiness Gates": "1/2"} {
		require.Equal(t, want, k.Cell(t, obj, name), name)
	}
	require.Regexp(t, `^1 \(.* ago\)$`, k.Cell(t, obj, "Restarts"))
}

func TestGatedPodUpdates(t *testing.T) {
	k := kind(t, "Pod")
	const term = `{"matchExpressions":[{"key":"a","operator":"Exists"}]}`
	affinity := func(terms string) string {
		return `"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[` + terms + `]}}}`
	}
	old, faults := k.Create(t, withSpec(`"schedulingGates":[{"name":"g"},{"name":"h"}],"nodeSelector":{"a":"1"},`+affinity(term)))
	require.Empty(t, faults)
	const terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
	for patch, want := range map[string][]string{
		`"schedulingGates":[{"name":"h"}]`:                                 {},
		`"schedulingGates":[{"name":"h"},{"name":"new"}]`:                  {"Forbidden:spec.schedulingGates[1].name"},
		`"nodeSelector":{"a":"1","b":"2"}`:                                 {},
		`"nodeSelector":{"a":"2"}`:                                         {"Invalid:spec.nodeSelector"},
		`"nodeSelector":null`:                                              {"Invalid:spec.nodeSelector"},
		`"affinity":null`:                                                  {"Invalid:" + terms},
		affinity(term + `,` + term):                                        {"Invalid:" + terms},
		affinity(`{"matchExpressions":[{"key":"b","operator":"Exists"}]}`): {"Invalid:" + terms + "[0]"},
		affinity(`{"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"b","operator":"Exists"}]}`): {},
		`"hostNetwork":true`: {"Forbidden:spec"},
	} {
		_, got := k.Update(t, old, `{"spec":{`+patch+`}}`, "")
		require.Equal(t, want, got, patch)
	}
	free, _ := k.Create(t, withSpec(`"hostNetwork":false`))
	for patch, want := range map[string][]string{
		`"nodeSelector":{"a":"1"}`:                          {"Forbidden:spec"},
		affinity(term):                                      {"Forbidden:spec"},
		`"containers":[{"name":"c","image":""}]`:            {"Required:spec.containers[0].image", "Required:spec.containers[0].image"},
		`"tolerations":[{"key":"a b","operator":"Exists"}]`: {"Invalid:spec.tolerations[0].key", "Invalid:spec.tolerations[0].key"},
		`"initContainers":[{"name":"i","image":"i"}]`:       {"Forbidden:spec.initContainers"},
	} {
		_, got := k.Update(t, free, `{"spec":{`+patch+`}}`, "")
		require.Equal(t, want, got, patch)
	}
}

func TestPodStatus(t *testing.T) {
	k := kind(t, "Pod")
	old, _ := k.Create(t, withSpec(`"restartPolicy":"OnFailure"`))
	old.SetFinalizers([]string{"x.io/f"})
	obj, faults := k.Update(t, old, `{"metadata":{"labels":{"a":"b"},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"u"}]},
		"spec":{"nodeName":"n"},"status":{"phase":"Running","qosClass":null,"containerStatuses":[{"name":"c","state":{"terminated":{"exitCode":0}}}]}}`, "status")
	require.Empty(t, faults)
	require.Equal(t, "b", obj.Labels()["a"])
	require.Empty(t, obj.OwnerReferences())
	require.Empty(t, obj.String("spec", "nodeName"))
	require.Equal(t, "BestEffort", obj.String("status", "qosClass"))
	for patch, want := range map[string][]string{
		`"conditions":[{"type":"a b","status":"True"},{"type":"Ready","status":"True"}]`: {"Invalid:status.conditions[0].Type"},
		`"conditions":[{"type":"Ready","status":"True","observedGeneration":-1}]`:        {"Invalid:status.conditions[0].observedGeneration"},
		`"nominatedNodeName":"A"`:                                           {"Invalid:status.nominatedNodeName"},
		`"observedGeneration":-1`:                                           {"Invalid:status.observedGeneration"},
		`"qosClass":"Guaranteed"`:                                           {"Invalid:status.qosClass"},
		`"containerStatuses":[{"name":"c","state":{"running":{}}}]`:         {"Forbidden:status.containerStatuses[0].state"},
		`"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"10.0.0.2"}]`: {"Invalid:status.podIPs"},
		`"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]`:  {},
		`"hostIP":"1.1.1.1","hostIPs":[{"ip":"1.1.1.2"},{"ip":"x"}]`:        {"Invalid:status.hostIPs[0].ip", "Invalid:status.hostIPs[1]", "Invalid:status.hostIPs"},
		`"resourceClaimStatuses":[{"name":"x"}]`:                            {"Invalid:status.resourceClaimStatuses[0].name"},
	} {
		_, got := k.Update(t, obj, `{"status":{`+patch+`}}`, "status")
		require.Equal(t, want, got, patch)
	}
	bound, _ := k.Create(t, withSpec(`"nodeName":"n"`))
	_, faults = k.Update(t, bound, `{"status":{"nominatedNodeName":"m"}}`, "status")
	require.Equal(t, []string{"Forbidden:status.nominatedNodeName"}, faults)
}
