package builtin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/certificates"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/discovery"
	"orch.io/controlplane/registry/builtin/rbac"
	"orch.io/controlplane/registry/internal/kindtest"
)

// TestTexts holds the texts that clients know, word by word, where they differ
// from what a schema says of itself.
func TestTexts(t *testing.T) {
	const label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character " +
		"(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
	const request = "spec.request: Invalid value: \"\": PEM block type must be CERTIFICATE REQUEST"
	const mode = "must be a number between 0 and 0777 (octal), both inclusive"
	long := strings.Repeat("a.", 127) + "com"
	pod := func(spec string) string {
		return `{"spec":{"containers":[{"name":"c","image":"i"}],` + spec + `}}`
	}
	volume := func(source string) string {
		return pod(`"serviceAccountName":"a","volumes":[{"name":"v",` + source + `}]`)
	}
	requests := kindtest.Of(t, names.Kubernetes, certificates.Kinds(), "CertificateSigningRequest")
	role := kindtest.Of(t, names.Kubernetes, rbac.Kinds(), "Role")
	slice := kindtest.Of(t, names.Kubernetes, discovery.Kinds(), "EndpointSlice")
	pods := kindtest.Of(t, names.Kubernetes, core.Kinds(), "Pod")
	for _, c := range []struct {
		kind kindtest.Kind
		body string
		want []string
	}{
		{role, `{"rules":[{"apiGroups":[""],"resources":["pods"]}]}`, []string{"rules[0].verbs: Required value: verbs must contain at least one value"}},
		{requests, `{"spec":{"signerName":"a.com/b"}}`, []string{request, "spec.usages: Required value: usages must contain at least one value"}},
		{requests, `{"spec":{"signerName":"a.com/b","usages":["any"],"expirationSeconds":1}}`, []string{request,
			"spec.expirationSeconds: Invalid value: 1: may not specify a duration less than 600 seconds (10 minutes)"}},
		{requests, `{"spec":{"signerName":"A.com/b","usages":["any"]}}`, []string{request, `spec.signerName: Invalid value: "A.com": ` + label}},
		{requests, `{"spec":{"signerName":"com/b","usages":["any"]}}`, []string{request,
			`spec.signerName: Invalid value: "com": should be a domain with at least two segments separated by dots`}},
		{requests, `{"spec":{"signerName":"` + long + `/b","usages":["any"]}}`, []string{request, "spec.signerName: Too long: may not be more than 253 bytes"}},
		{requests, `{"spec":{"signerName":"a.com/` + strings.Repeat("b.", 300) + `c","usages":["any"]}}`, []string{request,
			"spec.signerName: Too long: may not be more than 571 bytes"}},
		{requests, `{"spec":{"signerName":"a","usages":["any"]}}`, []string{request,
			`spec.signerName: Invalid value: "a": must be a fully qualified domain and path of the form 'example.com/signer-name'`}},
		{slice, `{"addressType":"IPv4","endpoints":[{}]}`, []string{"endpoints[0].addresses: Required value: must contain at least 1 address"}},
		{pods, pod(`"topologySpreadConstraints":[{"maxSkew":1,"whenUnsatisfiable":"DoNotSchedule"}]`), []string{
			"spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty"}},
		{pods, pod(`"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[]}}}`), []string{
			"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term"}},
		{pods, pod(`"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":101,"preference":{}}]}}`), []string{
			"spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100"}},
		{pods, volume(`"secret":{"secretName":"s","defaultMode":512}`), []string{"spec.volumes[0].secret.defaultMode: Invalid value: 512: " + mode}},
		{pods, volume(`"configMap":{"name":"s","items":[{"key":"k","path":"p","mode":-1}]}`), []string{
			"spec.volumes[0].configMap.items[0].mode: Invalid value: -1: " + mode}},
		{pods, volume(`"downwardAPI":{"items":[{"path":"p","fieldRef":{"fieldPath":"metadata.name"},"mode":512}]}`), []string{
			"spec.volumes[0].downwardAPI.mode: Invalid value: 512: " + mode}},
		{pods, volume(`"projected":{"sources":[{"serviceAccountToken":{"path":"p","expirationSeconds":599}}]}`), []string{
			"spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"}},
		{pods, volume(`"projected":{"sources":[{"serviceAccountToken":{"path":"p","expirationSeconds":4294967297}}]}`), []string{
			"spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"}},
		{pods, volume(`"ephemeral":{"volumeClaimTemplate":{"spec":{"resources":{"requests":{"storage":"1"}}}}}`), []string{
			"spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: Required value: at least 1 access mode is required"}},
		{pods, volume(`"quobyte":{"volume":"v"}`), []string{
			"spec.volumes[0].quobyte.registry: Required value: must be a host:port pair or multiple pairs separated by commas"}},
		{pods, volume(`"csi":{"driver":"` + strings.Repeat("a", 64) + `"}`), []string{"spec.volumes[0].csi.driver: Too long: may not be more than 63 bytes"}},
	} {
		require.Equal(t, c.want, c.kind.Texts(t, nil, c.body, ""), c.body)
	}
	got := pods.Texts(t, nil, volume(`"csi":{"driver":"A_"}`), "")
	require.Len(t, got, 1)
	require.Contains(t, got[0], `spec.volumes[0].csi.driver: Invalid value: "a_": a lowercase RFC 1123 subdomain`)

	old, _ := requests.Create(t, `{"spec":{"signerName":"a.com/b","usages":["any"]}}`)
	require.Equal(t, []string{
		"status.conditions[0].type: Required value: must specify a condition type",
		`status.conditions[1].status: Unsupported value: "X": supported values: "True"`,
		`status.conditions[2].status: Unsupported value: "X": supported values: "True", "False", "Unknown"`,
		"status.conditions[3].status: Required value",
	}, requests.Texts(t, old, `{"status":{"conditions":[{"status":"True"},{"type":"Approved","status":"X"},{"type":"Own","status":"X"},{"type":"Other"}]}}`, "approval"))
	old, _ = slice.Create(t, `{"addressType":"IPv4"}`)
	require.Equal(t, []string{
		`addressType: Unsupported value: "X": supported values: "FQDN", "IPv4", "IPv6"`, `addressType: Invalid value: "X": field is immutable`,
	}, slice.Texts(t, old, `{"addressType":"X"}`, ""))
}
