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

const questionablePod = `"serviceAccountName":"default","nodeSelector":{"app.kubernetes.io/created-by":"x","node-role.kubernetes.io/master":"","scheduler.alpha.kubernetes.io/preferAvoidPods":"x","beta.kubernetes.io/os":"l"},
	"affinity":{"nodeAffinity":{
		"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"failure-domain.beta.kubernetes.io/zone","operator":"In","values":["a"]}]}]},
		"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{"matchExpressions":[{"key":"failure-domain.beta.kubernetes.io/region","operator":"In","values":["a b"]}]}}]}},
	"volumes":[{"name":"v","gitRepo":{"repository":"r"}},{"name":"c","cephfs":{"monitors":["a"]}},
		{"name":"cm","configMap":{"name":"m","items":[{"key":"a","path":"p"},{"key":"b","path":"p/q"}]}},
		{"name":"eph","ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1500m"}}}}}},
		{"name":"pr","projected":{"sources":[{"secret":{"name":"y","items":[{"key":"a","path":"k"}]}},{"serviceAccountToken":{"path":"k/j"}}]}}],
	"hostAliases":[{"ip":"1.2.3.4","hostnames":["a"]},{"ip":"1.2.3.4","hostnames":["b"]},{"ip":"2001:DB8::1"}],"dnsConfig":{"nameservers":["1::0:1"]},
	"containers":[{"name":"c","image":"i","env":[{"name":"A","value":"1"},{"name":"A","value":"$(A)2"},{"name":"A","value":"$(A)"}],
		"ports":[{"name":"http","containerPort":80,"hostIP":"1.1.1.1"},{"containerPort":80},{"containerPort":81,"hostPort":81},{"containerPort":81,"hostPort":81,"hostIP":"1.1.1.1"}]},
		{"name":"d","image":"i","ports":[{"name":"http","containerPort":80,"hostPort":80}]}]`

// questionableWarnings are kube-apiserver's warnings about questionablePod, recorded with release
// 1.37.2.
const questionableWarnings = `SPEC.nodeSelector[app.kubernetes.io/created-by]: deprecated since v1.9
SPEC.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead
SPEC.nodeSelector[node-role.kubernetes.io/master]: use "node-role.kubernetes.io/control-plane" instead
SPEC.nodeSelector[scheduler.alpha.kubernetes.io/preferAvoidPods]: deprecated since v1.22; use Taints and Tolerations instead
SPEC.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead
SPEC.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: failure-domain.beta.kubernetes.io/region is deprecated since v1.17; use "topology.kubernetes.io/region" instead
SPEC.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[0]: a b is invalid, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
METADATA.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead
METADATA.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the "sysctls" field instead
SPEC.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+
SPEC.volumes[1].cephfs: deprecated in v1.28, non-functional in v1.31+
SPEC.volumes[3].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer
volume "cm" (ConfigMap "m"): overlapping paths: "p/q" with "p"
volume "pr" (Projected): overlapping paths: "k/j" (ServiceAccountToken) with "k" (Secret "y")
SPEC.hostAliases[1].ip: duplicate ip "1.2.3.4"
SPEC.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply
SPEC.containers[0].ports[0]: hostIP set without hostPort: {Name:http HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}
SPEC.containers[0].ports[1]: overlapping port definition with SPEC.containers[0].ports[0]
SPEC.containers[0].ports[3]: dangerously ambiguous port definition with SPEC.containers[0].ports[2]
SPEC.containers[1].ports[0]: overlapping port definition with SPEC.containers[0].ports[0]
SPEC.containers[1].ports[0]: overlapping port definition with SPEC.containers[0].ports[1]
SPEC.containers[1].ports[0]: duplicate port name "http" with SPEC.containers[0].ports[0], services and probes that select ports by name will use SPEC.containers[0].ports[0]
SPEC.dnsConfig.nameservers[0]: IPv6 address "1::0:1" should be in RFC 5952 canonical format ("1::1")
SPEC.hostAliases[2].ip: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")`

// TestPodWarningTexts compares the warnings about a pod and about a template with those of
// kube-apiserver.
func TestPodWarningTexts(t *testing.T) {
	const metadata = `"annotations":{"scheduler.alpha.kubernetes.io/critical-pod":"","security.alpha.kubernetes.io/sysctls":"a=b"}`
	warnings := func(at string) []string {
		owner := strings.TrimSuffix(at, "spec")
		return strings.Split(strings.NewReplacer("SPEC", at, "METADATA", owner+"metadata").Replace(questionableWarnings), "\n")
	}
	pods := kindtest.Of(t, names.Kubernetes, core.Kinds(), "Pod")
	got := pods.Warnings(t, nil, `{"metadata":{"name":"p.a",`+metadata+`},"spec":{`+questionablePod+`}}`, "")
	require.NotEmpty(t, got)
	assert.Equal(t, "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]", got[0])
	assert.Equal(t, warnings("spec"), got[1:])

	templates := kindtest.Of(t, names.Kubernetes, core.Kinds(), "PodTemplate")
	body := `{"metadata":{"name":"p.a"},"template":{"metadata":{` + metadata + `},"spec":{` + questionablePod + `}}}`
	assert.Equal(t, warnings("template.spec"), templates.Warnings(t, nil, body, ""))
}

// TestTemplateWarningsAtEachGeneration checks that an update returns all warnings about the template if
// it changes the generation, else none.
func TestTemplateWarningsAtEachGeneration(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "ReplicationController")
	old, faults := k.Create(t, `{"spec":{"replicas":1,"selector":{"a":"b"},"template":{"metadata":{"labels":{"a":"b"}},"spec":{
		"hostAliases":[{"ip":"1.2.3.4"},{"ip":"1.2.3.4"}],"containers":[{"name":"c","image":"i"}]}}}}`)
	require.Empty(t, faults)
	duplicate := []string{`spec.template.spec.hostAliases[1].ip: duplicate ip "1.2.3.4"`}
	for patch, want := range map[string][]string{
		`{"spec":{"replicas":2}}`:           duplicate,
		`{"metadata":{"labels":{"x":"y"}}}`: nil,
		`{}`:                                nil,
		`{"spec":{"template":{"metadata":{"annotations":{"seccomp.security.alpha.kubernetes.io/pod":"unconfined"}}}}}`: append(duplicate,
			`spec.template.metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead`),
	} {
		assert.ElementsMatch(t, want, k.Warnings(t, old, patch, ""), patch)
	}
	assert.Empty(t, k.Warnings(t, old, `{"status":{"replicas":1}}`, "status"))
}

// TestVolumeWarningTexts checks that warnings about volumes and claims contain the release of the
// deprecation.
func TestVolumeWarningTexts(t *testing.T) {
	volumes := kindtest.Of(t, names.Kubernetes, core.Kinds(), "PersistentVolume")
	assert.Equal(t, []string{
		`metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use "storageClassName" attribute instead`,
		"spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.",
		"spec.rbd: deprecated in v1.28, non-functional in v1.31+",
		`spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead`,
	}, volumes.Warnings(t, nil, `{"metadata":{"annotations":{"volume.beta.kubernetes.io/storage-class":"s"}},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{"storage":"1Gi"},
		"persistentVolumeReclaimPolicy":"Recycle","rbd":{"monitors":["a"],"image":"i"},
		"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"beta.kubernetes.io/os","operator":"In","values":["l"]}]}]}}}}`, ""))
	claims := kindtest.Of(t, names.Kubernetes, core.Kinds(), "PersistentVolumeClaim")
	assert.Equal(t, []string{`spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer`},
		claims.Warnings(t, nil, `{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1500m"}}}}`, ""))
}
