package securitypolicy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/admission/internal/securitypolicy"
	"orch.io/controlplane/api/meta"
)

func tree(t *testing.T, text string) *meta.Object {
	t.Helper()
	var m map[string]any
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &m), text)
	return meta.NewObject(m)
}

// container returns a spec with a single container with the security context.
func container(context string) string {
	return `{containers: [{name: c, securityContext: ` + context + `}]}`
}

func pod(context string) string { return `{securityContext: ` + context + `}` }

// TestCheckRefusesForbiddenValues checks allowed and forbidden values for each field of a policy.
func TestCheckRefusesForbiddenValues(t *testing.T) {
	const c = "spec.containers[0].securityContext."
	const ca = "kube-root-ca.crt"
	token := func(source string) string { return `{volumes: [{name: v, projected: {sources: [` + source + `]}}]}` }
	for _, tc := range []struct{ policy, pod, want string }{
		{`{}`, container(`{privileged: true}`), c + "privileged: Invalid value: true: Privileged containers are not allowed"},
		{`{privileged: true}`, container(`{privileged: true}`), ""},
		{`{}`, `{initContainers: [{securityContext: {privileged: true}}]}`, "spec.initContainers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed"},
		{`{}`, `{hostPID: true}`, "spec.securityContext.hostPID: Invalid value: true: Host PID is not allowed to be used"},
		{`{hostPID: true, hostIPC: true, hostNetwork: true}`, `{hostPID: true, hostIPC: true, hostNetwork: true}`, ""},
		{`{}`, `{hostIPC: true}`, "spec.securityContext.hostIPC: Invalid value: true: Host IPC is not allowed to be used"},

		{`{}`, container(`{capabilities: {add: [A]}}`), c + `capabilities.add: Invalid value: "A": capability may not be added`},
		{`{allowedCapabilities: [A], defaultAddCapabilities: [B]}`, container(`{capabilities: {add: [A, B]}}`), ""},
		{`{allowedCapabilities: ["*"]}`, container(`{capabilities: {add: [A]}}`), ""},
		{`{requiredDropCapabilities: [A]}`, container(`{}`), c + `capabilities.drop: Invalid value: null: A is required to be dropped but was not found`},
		{`{requiredDropCapabilities: [A]}`, container(`{capabilities: {drop: [B, A]}}`), ""},

		{`{hostPorts: [{min: 80, max: 81}]}`, `{containers: [{ports: [{hostPort: 81}, {containerPort: 7}, {hostPort: 82}]}]}`,
			"spec.containers[0].hostPort: Invalid value: 82: Host port 82 is not allowed to be used. Allowed ports: [80-81]"},
		{`{}`, container(`{procMount: Unmasked}`), c + `procMount: Invalid value: "Unmasked": ProcMountType is not allowed`},
		{`{allowedProcMountTypes: [Unmasked]}`, container(`{procMount: Unmasked}`), ""},
		{`{readOnlyRootFilesystem: true}`, container(`{readOnlyRootFilesystem: false}`), c + "readOnlyRootFilesystem: Invalid value: false: ReadOnlyRootFilesystem must be set to true"},
		{`{readOnlyRootFilesystem: true}`, container(`{readOnlyRootFilesystem: true}`), ""},
		{`{allowPrivilegeEscalation: false}`, container(`{}`), c + "allowPrivilegeEscalation: Invalid value: null: Allowing privilege escalation for containers is not allowed"},
		{`{allowPrivilegeEscalation: true}`, container(`{allowPrivilegeEscalation: true}`), ""},

		{`{runAsUser: {rule: MustRunAs, ranges: [{min: 5, max: 9}]}}`, container(`{}`), c + "runAsUser: Required value"},
		{`{runAsUser: {rule: MustRunAs, ranges: [{min: 1, max: 2}, {min: 5, max: 9}]}}`, container(`{runAsUser: 4}`), c + "runAsUser: Invalid value: 4: must be in the ranges: [{1 2} {5 9}]"},
		{`{runAsUser: {rule: MustRunAs, ranges: [{min: 5, max: 9}]}}`, `{securityContext: {runAsUser: 9}, containers: [{name: c}]}`, ""},
		{`{runAsUser: {rule: MustRunAsNonRoot}}`, container(`{}`), c + "runAsNonRoot: Required value: must be true"},
		{`{runAsUser: {rule: MustRunAsNonRoot}}`, container(`{runAsNonRoot: false, runAsUser: 7}`), c + "runAsNonRoot: Invalid value: false: must be true"},
		{`{runAsUser: {rule: MustRunAsNonRoot}}`, container(`{runAsUser: 0}`), c + "runAsUser: Invalid value: 0: running with the root UID is forbidden"},
		{`{runAsUser: {rule: MustRunAsNonRoot}}`, container(`{runAsUser: 7}`), ""},
		{`{runAsGroup: {rule: MustRunAs, ranges: [{min: 5, max: 9}]}}`, container(`{}`), c + "runAsGroup: Required value"},
		{`{runAsGroup: {rule: MayRunAs, ranges: [{min: 5, max: 9}]}}`, container(`{}`), ""},
		{`{runAsGroup: {rule: MayRunAs, ranges: [{min: 5, max: 9}]}}`, container(`{runAsGroup: 1}`), c + "runAsGroup: Invalid value: 1: must be in the ranges: [{5 9}]"},
		{`{fsGroup: {rule: MustRunAs, ranges: [{min: 5, max: 9}]}}`, `{}`, "spec.securityContext.fsGroup: Invalid value: null: unable to validate empty groups against required ranges"},
		{`{fsGroup: {rule: MayRunAs, ranges: [{min: 5, max: 9}]}}`, pod(`{fsGroup: 1}`), "spec.securityContext.fsGroup: Invalid value: [1]: group 1 must be in the ranges: [{5 9}]"},
		{`{supplementalGroups: {rule: MustRunAs, ranges: [{min: 5, max: 9}]}}`, pod(`{supplementalGroups: [5, 9]}`), ""},
		{`{supplementalGroups: {rule: MayRunAs, ranges: [{min: 5, max: 9}]}}`, `{}`, ""},
		{`{supplementalGroups: {rule: MustRunAs, ranges: [{min: 5, max: 9}]}}`, pod(`{supplementalGroups: [5, 10]}`), "spec.securityContext.supplementalGroups: Invalid value: [5,10]: group 10 must be in the ranges: [{5 9}]"},

		{`{seLinux: {rule: MustRunAs, seLinuxOptions: {level: "s0:c2,c1", user: u}}}`, `{}`, "spec.securityContext.seLinuxOptions: Required value"},
		{`{seLinux: {rule: MustRunAs, seLinuxOptions: {level: "s0:c2,c1", user: u}}}`, pod(`{seLinuxOptions: {level: "s0:c1,c2", user: u}}`), ""},
		{`{seLinux: {rule: MustRunAs, seLinuxOptions: {user: u}}}`, `{securityContext: {seLinuxOptions: {user: u}}, containers: [{securityContext: {seLinuxOptions: {user: u, type: x}}}]}`,
			c + `seLinuxOptions.type: Invalid value: "x": must be `},

		{`{}`, pod(`{sysctls: [{name: net.a}]}`), `pod.spec.securityContext.sysctls[0]: Forbidden: unsafe sysctl "net.a" is not allowed`},
		{`{allowedUnsafeSysctls: ["net.*"]}`, pod(`{sysctls: [{name: net.a}, {name: kernel.shm_rmid_forced}]}`), ""},
		{`{forbiddenSysctls: ["kernel.*"]}`, pod(`{sysctls: [{name: kernel.shm_rmid_forced}]}`), `pod.spec.securityContext.sysctls[0]: Forbidden: sysctl "kernel.shm_rmid_forced" is not allowed`},

		{`{volumes: [secret]}`, `{volumes: [{name: v, secret: {}}, {name: w, emptyDir: {}}]}`, `spec.volumes[1]: Invalid value: "emptyDir": emptyDir volumes are not allowed to be used`},
		{`{volumes: ["*"]}`, `{volumes: [{name: v, hostPath: {path: /a}}]}`, ""},
		{`{volumes: [secret]}`, token(`{serviceAccountToken: {path: t}}, {configMap: {name: ` + ca + `}}, {downwardAPI: {items: [{fieldRef: {fieldPath: metadata.namespace}}]}}`), ""},
		{`{volumes: [secret]}`, token(`{configMap: {name: other}}`), `spec.volumes[0]: Invalid value: "projected": projected volumes are not allowed to be used`},
		{`{volumes: [hostPath], allowedHostPaths: [{pathPrefix: /a}]}`, `{volumes: [{name: v, hostPath: {path: /a/b}}, {name: w, hostPath: {path: /ab}}]}`,
			`spec.volumes[1].hostPath.pathPrefix: Invalid value: "/ab": is not allowed to be used`},
		{`{volumes: [hostPath], allowedHostPaths: [{pathPrefix: /a}]}`, `{volumes: [{name: v, hostPath: {path: /a/../b}}]}`, `spec.volumes[0].hostPath.pathPrefix: Invalid value: "/a/../b": is not allowed to be used`},
		{`{volumes: [hostPath], allowedHostPaths: [{pathPrefix: /, readOnly: true}]}`, `{volumes: [{name: v, hostPath: {path: /a}}], containers: [{volumeMounts: [{name: v, readOnly: true}, {name: v}]}]}`,
			"spec.containers[0].volumeMounts[1].readOnly: Invalid value: false: must be read-only"},
		{`{volumes: [flexVolume], allowedFlexVolumes: [{driver: a/b}]}`, `{volumes: [{name: v, flexVolume: {driver: a/c}}]}`, `spec.volumes[0].driver: Invalid value: "a/c": Flexvolume driver is not allowed to be used`},
		{`{volumes: [csi], allowedCSIDrivers: [{name: a}]}`, `{volumes: [{name: v, csi: {driver: a}}, {name: w, csi: {driver: b}}]}`, `spec.volumes[1].csi.driver: Invalid value: "b": Inline CSI driver is not allowed to be used`},

		{`{runtimeClass: {allowedRuntimeClassNames: [a]}}`, `{runtimeClassName: b}`, `spec.runtimeClassName: Unsupported value: "b": supported values: "a"`},
		{`{runtimeClass: {allowedRuntimeClassNames: ["*"]}}`, `{runtimeClassName: b}`, ""},
		{`{runtimeClass: {allowedRuntimeClassNames: []}}`, `{}`, ""},
		{`{}`, `{runtimeClassName: b}`, ""},
	} {
		found := securitypolicy.Check(tree(t, tc.policy), tree(t, tc.pod), ca)
		text := ""
		if err := found.Err(); err != nil {
			text = err.Error()
		}
		assert.Equal(t, tc.want, text, "%s %s", tc.policy, tc.pod)
	}
}

// TestFillKeepsFieldsOfPod checks that fields of a pod stay, and that an empty policy changes nothing.
func TestFillKeepsFieldsOfPod(t *testing.T) {
	for _, tc := range []struct{ policy, pod, want string }{
		{`{seLinux: {rule: RunAsAny}, runAsUser: {rule: RunAsAny, ranges: [{min: 5}]}, fsGroup: {rule: MayRunAs, ranges: [{min: 5}]}}`, `{containers: [{name: c}]}`, `{containers: [{name: c}]}`},
		{`{runAsUser: {rule: MustRunAs, ranges: [{min: 5}]}}`, `{securityContext: {runAsUser: 0}, containers: [{name: c}]}`, `{securityContext: {runAsUser: 0}, containers: [{name: c}]}`},
		{`{runAsUser: {rule: MustRunAsNonRoot}}`, `{containers: [{name: c}, {name: d, securityContext: {runAsUser: 7}}]}`,
			`{containers: [{name: c, securityContext: {runAsNonRoot: true}}, {name: d, securityContext: {runAsUser: 7}}]}`},
		{`{defaultAllowPrivilegeEscalation: true}`, container(`{}`), container(`{allowPrivilegeEscalation: true}`)},
		{`{allowPrivilegeEscalation: false}`, container(`{allowPrivilegeEscalation: true}`), container(`{allowPrivilegeEscalation: true}`)},
		{`{defaultAddCapabilities: [A, B], requiredDropCapabilities: [C]}`, container(`{capabilities: {add: [X], drop: [A]}}`), container(`{capabilities: {add: [X, B], drop: [A, C]}}`)},
		{`{readOnlyRootFilesystem: true}`, `{ephemeralContainers: [{name: e}]}`, `{ephemeralContainers: [{name: e, securityContext: {readOnlyRootFilesystem: true}}]}`},
	} {
		policy, spec, want := tree(t, tc.policy), tree(t, tc.pod), tree(t, tc.want)
		before := policy.Clone()
		for range 2 {
			securitypolicy.Fill(policy, spec)
			assert.True(t, meta.Equal(want.Tree(), spec.Tree()), "%v is not %v", spec.Tree(), want.Tree())
		}
		assert.Equal(t, before, policy)
	}
}

// TestFillAndCheckTolerateForeignTrees checks trees that are neither pod specs nor policies.
func TestFillAndCheckTolerateForeignTrees(t *testing.T) {
	trees := []string{`{}`, `{containers: 1, volumes: x, securityContext: []}`, `{containers: [1, {securityContext: x}], volumes: [{hostPath: 7, projected: {sources: [1, {}]}}], runAsUser: 7, seLinux: {rule: MustRunAs}}`}
	for _, p := range trees {
		for _, spec := range trees {
			pod := tree(t, spec)
			securitypolicy.Fill(tree(t, p), pod)
			securitypolicy.Check(tree(t, p), pod, "")
		}
	}
}

func ExampleCheck() {
	policy, pod := meta.NewObject(nil), meta.NewObject(map[string]any{"hostPID": true})
	found := securitypolicy.Check(policy, pod, "kube-root-ca.crt")
	fmt.Println(found.Err())
	// Output: spec.securityContext.hostPID: Invalid value: true: Host PID is not allowed to be used
}
