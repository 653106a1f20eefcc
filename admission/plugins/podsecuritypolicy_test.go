package plugins_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
)

const anyone = `seLinux: {rule: RunAsAny}, runAsUser: {rule: RunAsAny}, supplementalGroups: {rule: RunAsAny}, fsGroup: {rule: RunAsAny}`

// policies returns a function that runs steps on a server with PodSecurityPolicies. Each of uses grants the
// use of a policy: "group resource policy namespace user".
func policies(t *testing.T, uses ...string) func(...step) {
	return policiesIn(t, "", uses...)
}

// policiesIn is like policies, for a server that is compatible with a release.
func policiesIn(t *testing.T, release string, uses ...string) func(...step) {
	s := newServer(t, admission.Options{Enable: []string{"PodSecurityPolicy"}, Disable: []string{"PodSecurity"}}, func(b *server.Builder) {
		b.Release = release
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			if a.Verb != "use" {
				return auth.Allow, "", nil
			}
			for _, use := range uses {
				if use == a.Group+" "+a.Resource+" "+a.Name+" "+a.Namespace+" "+a.User.Name {
					return auth.Allow, "", nil
				}
			}
			return auth.NoOpinion, "", nil
		})
	})
	return func(steps ...step) { t.Helper(); runSteps(t, s, steps...) }
}

func use(policy, user string) string {
	return "policy podsecuritypolicies " + policy + " default " + user
}

const psp = "POST /apis/policy/v1beta1/podsecuritypolicies"

// TestPodSecurityPolicy checks that the first usable policy that changes nothing admits a pod, else the first
// that allows it.
func TestPodSecurityPolicy(t *testing.T) {
	run := policies(t, use("b-tight", "ann"), use("c-free", "ann"), use("b-tight", "bob"), use("c-free", "system:serviceaccount:default:robot"))
	const none = "403 forbidden: PodSecurityPolicy: unable to admit pod: []"
	run(
		step{do: "POST serviceaccounts", body: `{metadata: {name: robot}, automountServiceAccountToken: false}`, want: "201"},
		step{as: "ann", do: "POST pods", body: named("x", plain), want: none},
		step{do: psp, body: named("a-all", `{`+anyone+`, privileged: true, volumes: ["*"], hostNetwork: true}`), want: "201"},
		step{do: psp, body: named("b-tight", `{`+anyone+`, requiredDropCapabilities: [KILL]}`), want: "201"},
		step{do: psp, body: named("c-free", `{`+anyone+`}`), want: "201"},

		step{as: "eve", do: "POST pods", body: named("x", plain), want: none},
		step{as: "ann", do: "POST pods", body: named("unchanged", plain), want: `201 {metadata: {annotations: {kubernetes.io/psp: c-free}}, spec: {containers: [{name: c, securityContext: null}]}}`},
		step{as: "bob", do: "POST pods", body: named("changed", plain), want: `201 {metadata: {annotations: {kubernetes.io/psp: b-tight}}, spec: {containers: [{securityContext: {capabilities: {drop: [KILL]}}}]}}`},
		step{as: "eve", do: "POST pods", body: named("account", `{serviceAccountName: robot, `+plain[1:]), want: `201 {metadata: {annotations: {kubernetes.io/psp: c-free}}}`},
		step{as: "ann", do: "POST pods", body: `{metadata: {name: claims, annotations: {kubernetes.io/psp: a-all}}, spec: ` + plain + `}`, want: `201 {metadata: {annotations: {kubernetes.io/psp: c-free}}}`},
		step{as: "bob", do: "POST pods", body: named("x", `{hostNetwork: true, volumes: [{name: v, hostPath: {path: /a}}], `+plain[1:]),
			want: `403 PodSecurityPolicy: unable to admit pod: [spec.securityContext.hostNetwork: Invalid value: true: Host network is not allowed to be used spec.volumes[0]: Invalid value: "hostPath": hostPath volumes are not allowed to be used]`},

		step{as: "bob", do: "PATCH pods/changed/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: x, securityContext: {privileged: true}}]}}`,
			want: `403 PodSecurityPolicy: unable to admit pod: [spec.ephemeralContainers[0].securityContext.privileged: Invalid value: true: Privileged containers are not allowed]`},
		step{as: "bob", do: "PATCH pods/changed/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: x}]}}`,
			want: `200 {spec: {ephemeralContainers: [{securityContext: {capabilities: {drop: [KILL]}}}]}}`},
		step{as: "eve", do: "PATCH pods/changed", body: `{metadata: {labels: {a: b}}}`, want: "200"},
		step{as: "eve", do: "PATCH pods/changed", body: `{spec: {activeDeadlineSeconds: 5}}`, want: "403 forbidden: PodSecurityPolicy: unable to validate pod: []"},
		step{as: "bob", do: "PATCH pods/changed", body: `{spec: {activeDeadlineSeconds: 5}}`, want: "200"},
	)
}

// TestPodSecurityPolicyUseInGroups checks that the right to use a policy can be granted in each group in
// which the release serves policies.
func TestPodSecurityPolicyUseInGroups(t *testing.T) {
	for release, want := range map[string]string{"1.15": "201", "1.16": "403 PodSecurityPolicy: unable to admit pod: []"} {
		run := policiesIn(t, release, "extensions podsecuritypolicies p default ann", use("p", "bob"))
		run(
			step{do: psp, body: named("p", `{`+anyone+`}`), want: "201"},
			step{as: "bob", do: "POST pods", body: named("policy", plain), want: "201"},
			step{as: "ann", do: "POST pods", body: named("extensions", plain), want: want},
			step{as: "eve", do: "POST pods", body: named("neither", plain), want: "403 PodSecurityPolicy: unable to admit pod: []"},
		)
	}
}

// TestPodSecurityPolicyFills checks that the defaults of a policy are filled in, and that the resulting pod
// is valid and allowed.
func TestPodSecurityPolicyFills(t *testing.T) {
	run := policies(t, use("p", "ann"))
	run(
		step{do: psp, body: named("p", `{seLinux: {rule: MustRunAs, seLinuxOptions: {level: "s0:c1"}}, runAsUser: {rule: MustRunAs, ranges: [{min: 5, max: 9}]},
			runAsGroup: {rule: MustRunAs, ranges: [{min: 6, max: 9}]}, supplementalGroups: {rule: MustRunAs, ranges: [{min: 7, max: 9}]},
			fsGroup: {rule: MustRunAs, ranges: [{min: 8, max: 9}]}, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, defaultAddCapabilities: [CHOWN],
			requiredDropCapabilities: [KILL], runtimeClass: {allowedRuntimeClassNames: [vm], defaultRuntimeClassName: vm}}`), want: "201"},
		step{do: "POST /apis/node.k8s.io/v1/runtimeclasses", body: `{metadata: {name: vm}, handler: h}`, want: "201"},
		step{as: "ann", do: "POST pods", body: named("x", plain), want: `201 {spec: {runtimeClassName: vm,
			securityContext: {seLinuxOptions: {level: "s0:c1"}, supplementalGroups: [7], fsGroup: 8},
			containers: [{securityContext: {runAsUser: 5, runAsGroup: 6, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {add: [CHOWN], drop: [KILL]}}}]}}`},
		step{as: "ann", do: "POST pods", body: named("z", `{securityContext: {runAsUser: 0}, `+plain[1:]),
			want: `403 PodSecurityPolicy: unable to admit pod: [spec.containers[0].securityContext.runAsUser: Invalid value: 0: must be in the ranges: [{5 9}]]`},
	)
}

// TestPodSecurityPolicyProfiles checks the annotations of a policy for seccomp and AppArmor profiles.
func TestPodSecurityPolicyProfiles(t *testing.T) {
	run := policies(t, use("p", "ann"))
	run(
		step{do: psp, body: `{metadata: {name: p, annotations: {seccomp.security.alpha.kubernetes.io/defaultProfileName: runtime/default,
			seccomp.security.alpha.kubernetes.io/allowedProfileNames: 'runtime/default,localhost/a', apparmor.security.beta.kubernetes.io/defaultProfileName: runtime/default,
			apparmor.security.beta.kubernetes.io/allowedProfileNames: runtime/default}}, spec: {` + anyone + `}}`, want: "201"},
		step{as: "ann", do: "POST pods", body: named("x", plain), want: `201 {spec: {securityContext: {seccompProfile: {type: RuntimeDefault}},
			containers: [{securityContext: {appArmorProfile: {type: RuntimeDefault}}}]}}`},
		step{as: "ann", do: "POST pods", body: named("y", `{securityContext: {seccompProfile: {type: Localhost, localhostProfile: a}}, `+plain[1:]),
			want: `201 {spec: {securityContext: {seccompProfile: {type: Localhost}}}}`},
		step{as: "ann", do: "POST pods", body: named("z", `{securityContext: {appArmorProfile: {type: Unconfined}}, `+plain[1:]),
			want: `403 PodSecurityPolicy: unable to admit pod: [metadata.annotations.container.apparmor.security.beta.kubernetes.io/c: Invalid value: "unconfined": unconfined is not an allowed profile. Valid values are runtime/default]`},
		step{as: "ann", do: "PATCH pods/x/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: x}]}}`,
			want: `200 {spec: {ephemeralContainers: [{securityContext: {appArmorProfile: {type: RuntimeDefault}}}]}}`},
	)
}

// TestPodSecurityPolicyNeedsItsKind checks that every pod is refused if the server does not serve policies.
func TestPodSecurityPolicyNeedsItsKind(t *testing.T) {
	b := &server.Builder{Names: names.Kubernetes, Authorizer: auth.AllowAll,
		AdmissionOptions: admission.Options{Enable: []string{"PodSecurityPolicy"}, Disable: []string{"ServiceAccount"}}}
	b.Register(core.Kinds()...)
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Shutdown(t.Context())) }()
	w := httptest.NewRecorder()
	body := `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	r := httptest.NewRequest("POST", "/api/v1/namespaces/default/pods", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	s.ServeHTTP(w, r)
	require.Equal(t, 403, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "the server does not serve podsecuritypolicies")
}
