package podsecuritypolicy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/podsecuritypolicy"
	"orch.io/controlplane/registry/internal/kindtest"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// A program that has policies for pods registers their kind: no server has it by itself.
func ExamplePolicies() {
	k := podsecuritypolicy.Policies() // for Register of a server.Builder
	fmt.Println(k, k.ShortNames)
	// Output: kind PodSecurityPolicy.policy (Go type podsecuritypolicy.PodSecurityPolicy) [psp]
}

func TestPodSecurityPolicy(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, []*registry.Kind{podsecuritypolicy.Policies()}, "PodSecurityPolicy")
	const rules = `"seLinux":{"rule":"RunAsAny"},"runAsUser":{"rule":"RunAsAny"},"supplementalGroups":{"rule":"RunAsAny"},"fsGroup":{"rule":"RunAsAny"}`
	with := func(more string) string { return `{"spec":{` + rules + more + `}}` }
	k.Creates(t, map[string][]string{
		with(""): nil,
		`{}`:     {"NotSupported:spec.seLinux.rule", "NotSupported:spec.runAsUser.rule", "Required:spec.supplementalGroups.rule", "Required:spec.fsGroup.rule"},
		`{"spec":{"seLinux":{"rule":"MayRunAs"},"runAsUser":{"rule":"MustRunAs","ranges":[{"min":2,"max":1}]},"supplementalGroups":{"rule":"MustRunAs","ranges":[{"min":-1,"max":1}]},"fsGroup":{"rule":"MayRunAs","ranges":[{"min":1,"max":1}]}}}`: {
			"NotSupported:spec.seLinux.rule", "Invalid:spec.runAsUser.ranges[0]", "Invalid:spec.supplementalGroups.ranges[0].min",
		},
		with(`,"runAsGroup":{"rule":"MustRunAsNonRoot","ranges":[{"min":2,"max":1}]}`):                               {"NotSupported:spec.runAsGroup.rule", "Invalid:spec.runAsGroup.ranges[0]"},
		with(`,"hostPorts":[{"min":2,"max":1},{"min":0,"max":65536}]`):                                               {"Invalid:spec.hostPorts[0]", "Invalid:spec.hostPorts[1].max"},
		with(`,"defaultAddCapabilities":["A"],"allowedCapabilities":["B","*"],"requiredDropCapabilities":["A","B"]`): {"Invalid:spec.defaultAddCapabilities", "Invalid:spec.allowedCapabilities"},
		with(`,"defaultAllowPrivilegeEscalation":true,"allowPrivilegeEscalation":false`):                             {"Invalid:spec.defaultAllowPrivilegeEscalation"},
		with(`,"allowedHostPaths":[{},{"pathPrefix":"/a/../b"},{"pathPrefix":"/a","readOnly":true}]`):                {"Required:spec.allowedHostPaths[0].pathPrefix", "Invalid:spec.allowedHostPaths[1].pathPrefix"},
		with(`,"allowedFlexVolumes":[{}],"allowedCSIDrivers":[{},{"name":"a_"}]`):                                    {"Required:spec.allowedFlexVolumes[0].driver", "Required:spec.allowedCSIDrivers[0].name", "Invalid:spec.allowedCSIDrivers[1].name"},
		with(`,"allowedProcMountTypes":["Bare"]`):                                                                    {"NotSupported:spec.allowedProcMountTypes[0]"},
		with(`,"allowedUnsafeSysctls":["net.*","kernel.shm*","a/b"],"forbiddenSysctls":["vm.*","*"]`):                {"Invalid:spec.allowedUnsafeSysctls[0]", "Invalid:spec.allowedUnsafeSysctls[1]", "Invalid:spec.allowedUnsafeSysctls[2]"},
		with(`,"forbiddenSysctls":["","A b"]`):                                                                       {"Invalid:spec.forbiddenSysctls[0]", "Invalid:spec.forbiddenSysctls[1]"},
		with(`,"runtimeClass":{"allowedRuntimeClassNames":["*","a","a","B_"],"defaultRuntimeClassName":"c"}`):        {"Invalid:spec.runtimeClass.allowedRuntimeClassNames", "Invalid:spec.runtimeClass.allowedRuntimeClassNames[3]", "Duplicate:spec.runtimeClass.allowedRuntimeClassNames[2]"},
		with(`,"runtimeClass":{"allowedRuntimeClassNames":["a"],"defaultRuntimeClassName":"c"}`):                     {"Required:spec.runtimeClass.allowedRuntimeClassNames"},
	})
	obj, _ := k.Create(t, with(`,"privileged":true,"allowedCapabilities":["A","B"],"volumes":["configMap","secret"]`))
	assert.True(t, obj.Bool("spec", "allowPrivilegeEscalation"))
	var row []any
	for _, column := range []string{"Priv", "Caps", "Selinux", "RunAsUser", "FsGroup", "SupGroup", "ReadOnlyRootFs", "Volumes"} {
		row = append(row, k.Cell(t, obj, column))
	}
	assert.Equal(t, []any{"true", "A,B", "RunAsAny", "RunAsAny", "RunAsAny", "RunAsAny", "false", "configMap,secret"}, row)
}

// TestSysctlsAreBounded: each of those that are allowed is compared with each that is
// forbidden, so lists that are too long are not.
func TestSysctlsAreBounded(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, []*registry.Kind{podsecuritypolicy.Policies()}, "PodSecurityPolicy")
	with := func(allowed, forbidden int) string {
		list := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"a",`, n), ",") }
		return `{"spec":{"seLinux":{"rule":"RunAsAny"},"runAsUser":{"rule":"RunAsAny"},"supplementalGroups":{"rule":"RunAsAny"},"fsGroup":{"rule":"RunAsAny"},
			"allowedUnsafeSysctls":[` + list(allowed) + `],"forbiddenSysctls":[` + list(forbidden) + `]}}`
	}
	k.Creates(t, map[string][]string{
		with(1024, 0): nil,
		with(0, 1024): nil,
		with(1025, 1): {"TooMany:spec.allowedUnsafeSysctls"},
		with(1, 1025): {"TooMany:spec.forbiddenSysctls"},
		with(1, 1):    {"Invalid:spec.allowedUnsafeSysctls[0]"},
	})
}

// TestServed: with its plugin, the kind stands beside the newer ones of its group in every
// release.
func TestServed(t *testing.T) {
	s := servertest.New(t, func(b *server.Builder) { b.AdmissionOptions.Enable = []string{"PodSecurityPolicy"} })
	body := strings.NewReader(`{"metadata":{"name":"x"},"spec":{"seLinux":{"rule":"RunAsAny"},"runAsUser":{"rule":"RunAsAny"},"supplementalGroups":{"rule":"RunAsAny"},"fsGroup":{"rule":"RunAsAny"}}}`)
	answer, err := s.Client().Post(s.Host()+"/apis/policy/v1beta1/podsecuritypolicies", "application/json", body)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	assert.Equal(t, 201, answer.StatusCode)
	assert.Equal(t, `299 - "policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+"`, answer.Header.Get("Warning"))
	list, err := s.Client().Get(s.Host() + "/apis/policy/v1/poddisruptionbudgets")
	require.NoError(t, err)
	defer func() { _ = list.Body.Close() }()
	assert.Equal(t, 200, list.StatusCode)
}
