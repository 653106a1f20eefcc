package plugins_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/testclient"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

const (
	plain   = `{containers: [{name: c, image: x}]}`
	onNode  = `{hostNetwork: true, containers: [{name: c, image: x}]}`
	guarded = `{securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}},
		containers: [{name: c, image: x, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}`
	faultsOfPlain = `: allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), ` +
		`unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]), ` +
		`runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), ` +
		`seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")`
)

func named(name, spec string) string { return `{metadata: {name: "` + name + `"}, spec: ` + spec + `}` }

// labelled returns the body of the namespace a, or of a patch of a namespace, with labels such as "enforce: baseline".
func labelled(labels string) string {
	var all []string
	for l := range strings.SplitSeq(labels, ", ") {
		all = append(all, "pod-security.kubernetes.io/"+l)
	}
	return `{metadata: {name: a, labels: {` + strings.Join(all, ", ") + `}}}`
}

// TestPodSecurity checks that the labels of a namespace select the pods to refuse and to warn of.
func TestPodSecurity(t *testing.T) {
	const pods = "/api/v1/namespaces/a/pods"
	restricted := ` forbidden: violates PodSecurity "restricted:latest"` + faultsOfPlain
	quoted := func(text string) string { return strings.ReplaceAll(text, `"`, `\"`) }
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST /api/v1/namespaces", body: labelled("enforce: baseline, warn: restricted"), want: "201"},
		step{do: "POST " + pods, body: named("x", onNode), want: `403 violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
		step{do: "POST " + pods, body: named("x", plain), want: "201", warn: quoted(`would violate PodSecurity "restricted:latest"` + faultsOfPlain)},
		step{do: "POST " + pods, body: named("y", guarded), want: "201"},
		step{do: "PATCH " + pods + "/y/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: x, securityContext: {privileged: true}}]}}`,
			want: `403 violates PodSecurity "baseline:latest": privileged (container "e" must not set securityContext.privileged=true)`},
		step{do: "PATCH " + pods + "/y/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: x}]}}`, want: "200", warn: `container \"e\" must set`},

		step{do: "PATCH /api/v1/namespaces/a", body: labelled("enforce: restricted"), want: "200",
			warn: "existing pods in namespace \\\"a\\\" violate the new PodSecurity enforce level \\\"restricted:latest\\\"\"\n299 - \"x: allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile\"\n299 - \"y: "},
		step{do: "PATCH " + pods + "/x", body: `{metadata: {labels: {a: b}}}`, want: "200"},
		step{do: "PATCH " + pods + "/x", body: `{spec: {activeDeadlineSeconds: 7}}`, want: "200"},
		step{do: "PATCH " + pods + "/x", body: `{spec: {containers: [{name: c, image: other}]}}`, want: "403" + restricted},
		step{do: "PATCH /api/v1/namespaces/a", body: labelled("enforce-version: v1.7"), want: "200", warn: `299 - "x: runAsNonRoot != true"`},
		step{do: "POST " + pods, body: named("z", plain), want: `403 violates PodSecurity "restricted:v1.7": runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)`},
		step{do: "PATCH /api/v1/namespaces/a", body: labelled("enforce: privileged, warn: privileged"), want: "200"},
		step{do: "POST " + pods, body: named("z", onNode), want: "201"},
	)
}

// TestPodSecurityTemplates checks that objects with pod templates cause warnings for the enforced standard,
// but are not refused.
func TestPodSecurityTemplates(t *testing.T) {
	const warning = `would violate PodSecurity \"baseline:v1.24\": host namespaces (hostNetwork=true)`
	const job = `{template: {spec: {hostNetwork: true, restartPolicy: Never, containers: [{name: c, image: x}]}}}`
	of := `{metadata: {labels: {a: b}}, spec: ` + onNode + `}`
	selecting := named("x", `{selector: {matchLabels: {a: b}}, serviceName: s, template: `+of+`}`)
	steps := []step{{do: "POST /api/v1/namespaces", body: labelled("enforce: baseline, enforce-version: v1.24"), want: "201"}}
	for path, body := range map[string]string{
		"/api/v1/namespaces/a/podtemplates":           `{metadata: {name: x}, template: ` + of + `}`,
		"/api/v1/namespaces/a/replicationcontrollers": named("x", `{template: `+of+`}`),
		"/apis/apps/v1/namespaces/a/deployments":      strings.Replace(selecting, "serviceName: s, ", "", 1),
		"/apis/apps/v1/namespaces/a/daemonsets":       strings.Replace(selecting, "serviceName: s, ", "", 1),
		"/apis/apps/v1/namespaces/a/replicasets":      strings.Replace(selecting, "serviceName: s, ", "", 1),
		"/apis/apps/v1/namespaces/a/statefulsets":     selecting,
		"/apis/batch/v1/namespaces/a/jobs":            named("x", job),
		"/apis/batch/v1/namespaces/a/cronjobs":        named("x", `{schedule: "@daily", jobTemplate: {spec: `+job+`}}`),
	} {
		steps = append(steps, step{do: "POST " + path, body: body, want: "201", warn: warning})
	}
	runSteps(t, newServer(t, admission.Options{}), append(steps,
		step{do: "PATCH /apis/apps/v1/namespaces/a/deployments/x", body: `{spec: {replicas: 2}}`, want: "200", warn: warning},
		step{do: "PATCH /apis/apps/v1/namespaces/a/deployments/x/scale", body: `{spec: {replicas: 3}}`, want: "200"},
	)...)
}

// TestPodSecurityLabels checks that invalid labels are refused unless the namespace has them already.
func TestPodSecurityLabels(t *testing.T) {
	const level, version = `must be one of privileged, baseline, restricted`, `must be "latest" or "v1.x"`
	at := func(mode, value string) string {
		return `metadata.labels[pod-security.kubernetes.io/` + mode + `]: Invalid value: "` + value + `": `
	}
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST /api/v1/namespaces", body: labelled("enforce: strict"), want: `422 Namespace "a" is invalid: ` + at("enforce", "strict") + level},
		step{do: "POST /api/v1/namespaces", body: labelled(`audit-version: v9, warn: "", enforce-version: v1.024`),
			want: `422 [` + at("enforce-version", "v1.024") + version + ", " + at("audit-version", "v9") + version + ", " + at("warn", "") + level + `]`},
		step{do: "POST /api/v1/namespaces", body: labelled("enforce-version: v1.99, warn-version: latest"), want: "201"},
		step{do: "PATCH /api/v1/namespaces/a", body: labelled("warn: bogus"), want: `422 ` + at("warn", "bogus") + level},
		step{do: "POST /api/v1/namespaces", body: `{metadata: {generateName: gen-, labels: {pod-security.kubernetes.io/warn: x}}}`, want: `422 is invalid: ` + at("warn", "x") + level},
	)
}

// TestPodSecurityUnknownLabels checks the policy of a namespace that got invalid labels while the plugin was
// disabled.
func TestPodSecurityUnknownLabels(t *testing.T) {
	o := admission.Options{Disable: []string{"PodSecurity"}}
	s := newServer(t, o, func(b *server.Builder) { b.AdmissionOptions = o })
	runSteps(t, s,
		step{do: "POST /api/v1/namespaces", body: labelled("enforce: strict, enforce-version: x, warn: strict"), want: "201"})
	o.Disable = nil
	runSteps(t, s.Fork(t),
		step{do: "POST /api/v1/namespaces/a/pods", body: named("x", plain), want: `403 violates PodSecurity "restricted:latest"` + faultsOfPlain},
		step{do: "POST /api/v1/namespaces/a/podtemplates", body: `{metadata: {name: x}, template: {spec: ` + plain + `}}`, want: "201"},
		step{do: "PATCH /api/v1/namespaces/a", body: `{metadata: {labels: {other: x}}}`, want: "200"},
		step{do: "PATCH /api/v1/namespaces/a", body: labelled("audit: x"), want: `422 must be one of privileged, baseline, restricted]`},
		step{do: "PATCH /api/v1/namespaces/a", body: labelled("enforce: baseline, enforce-version: latest, warn: baseline"), want: "200"},
	)
}

// TestPodSecurityConfig checks that defaults apply to namespaces without labels and that exemptions work.
func TestPodSecurityConfig(t *testing.T) {
	o := admission.Options{Config: map[string]any{"PodSecurity": plugins.PodSecurityConfig{
		Defaults:   plugins.PodSecurityDefaults{Enforce: "baseline", EnforceVersion: "v1.24", Warn: "restricted", WarnVersion: "v1.7"},
		Exemptions: plugins.PodSecurityExemptions{Usernames: []string{"ann"}, Namespaces: []string{"a"}, RuntimeClasses: []string{"vm"}},
	}}}
	runSteps(t, newServer(t, o),
		step{do: "POST pods", body: named("x", onNode), want: `403 violates PodSecurity "baseline:v1.24": host namespaces (hostNetwork=true)`},
		step{do: "POST pods", body: named("x", plain), want: "201", warn: `would violate PodSecurity \"restricted:v1.7\": runAsNonRoot`},
		step{as: "ann," + auth.Masters, do: "POST pods", body: named("y", onNode), want: "201"},
		step{do: "POST /apis/node.k8s.io/v1/runtimeclasses", body: `{metadata: {name: vm}, handler: h}`, want: "201"},
		step{do: "POST pods", body: named("z", `{runtimeClassName: vm, `+onNode[1:]), want: "201"},
		step{do: "POST /api/v1/namespaces", body: labelled("enforce: restricted"), want: "201",
			warn: `namespace \"a\" is exempt from Pod Security, and the policy (enforce=restricted:v1.24) will be ignored`},
		step{do: "POST /api/v1/namespaces/a/pods", body: named("x", onNode), want: "201"},
		step{do: "PATCH /api/v1/namespaces/a", body: `{metadata: {labels: {pod-security.kubernetes.io/enforce-version: v1.25}}}`, want: "200",
			warn: `namespace \"a\" is exempt from Pod Security, and the policy (enforce=restricted:v1.25) will be ignored`},
	)
	_, err := admission.New(plugins.Table(), admission.Options{Config: map[string]any{"PodSecurity": plugins.PodSecurityConfig{
		Defaults:   plugins.PodSecurityDefaults{Enforce: "strict", AuditVersion: "1.2"},
		Exemptions: plugins.PodSecurityExemptions{Usernames: []string{""}, Namespaces: []string{"a", "a", "B"}},
	}}}, admission.PluginContext{})
	for _, text := range []string{"admission plugin PodSecurity", `defaults.enforce "strict" must be one of privileged, baseline, restricted`,
		`defaults.audit-version "1.2" must be "latest" or "v1.x"`, `exemptions.usernames[0] "" must not be empty`, `exemptions.namespaces[1] "a" is a duplicate`, `exemptions.namespaces[2] "B"`} {
		assert.ErrorContains(t, err, text)
	}
}

// TestPodSecurityFile checks that a file can configure the plugin in each version of its kind.
func TestPodSecurityFile(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		path := filepath.Join(t.TempDir(), "admission.yaml")
		require.NoError(t, os.WriteFile(path, []byte(`{apiVersion: apiserver.config.k8s.io/v1, kind: AdmissionConfiguration, plugins: [{name: PodSecurity, configuration: {
			apiVersion: pod-security.admission.config.k8s.io/`+version+`, kind: PodSecurityConfiguration,
			defaults: {enforce: baseline, enforce-version: latest, audit: restricted, audit-version: v1.24, warn: restricted, warn-version: v1.25},
			exemptions: {usernames: [ann], runtimeClasses: [vm], namespaces: [kube-system]}}}]}`), 0o600))
		config, warnings, err := admission.LoadConfig(path, plugins.Table(), names.Kubernetes)
		require.NoError(t, err)
		assert.Equal(t, version != "v1", len(warnings) == 1)
		assert.Equal(t, map[string]any{"PodSecurity": plugins.PodSecurityConfig{
			Defaults:   plugins.PodSecurityDefaults{Enforce: "baseline", EnforceVersion: "latest", Audit: "restricted", AuditVersion: "v1.24", Warn: "restricted", WarnVersion: "v1.25"},
			Exemptions: plugins.PodSecurityExemptions{Usernames: []string{"ann"}, Namespaces: []string{"kube-system"}, RuntimeClasses: []string{"vm"}},
		}}, config)
		_, err = admission.New(plugins.Table(), admission.Options{Config: config}, admission.PluginContext{})
		assert.NoError(t, err)
	}
}

// TestPodSecurityAudit checks that audit events have the applied policy and the violations.
func TestPodSecurityAudit(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{}
	watching := admission.Plugin{Name: "Watching", Rules: []admission.Rule{{Resources: []string{"pods", "podtemplates"}}}, Mutate: func(_ context.Context, r *admission.Request) error {
		annotate := r.Annotate
		r.Annotate = func(key, value string) {
			mu.Lock()
			seen[r.Name+" "+strings.TrimPrefix(key, "pod-security.kubernetes.io/")] = value
			mu.Unlock()
			annotate(key, value)
		}
		return nil
	}}
	o := admission.Options{Config: map[string]any{"PodSecurity": plugins.PodSecurityConfig{Exemptions: plugins.PodSecurityExemptions{Usernames: []string{"ann"}}}}}
	runSteps(t, newServer(t, o, func(b *server.Builder) { b.Admission = append(b.Admission, watching) }),
		step{do: "POST /api/v1/namespaces", body: labelled("enforce: privileged, enforce-version: v1.3, audit: baseline, audit-version: v1.24"), want: "201"},
		step{do: "POST /api/v1/namespaces/a/pods", body: named("judged", onNode), want: "201"},
		step{do: "POST /api/v1/namespaces/a/podtemplates", body: `{metadata: {name: template}, template: {spec: ` + onNode + `}}`, want: "201"},
		step{as: "ann," + auth.Masters, do: "POST /api/v1/namespaces/a/pods", body: named("exempt", onNode), want: "201"},
		step{do: "POST pods", body: named("free", onNode), want: "201"},
	)
	const violation = `would violate PodSecurity "baseline:v1.24": host namespaces (hostNetwork=true)`
	assert.Equal(t, map[string]string{
		"judged enforce-policy": "privileged:v1.3", "judged audit-violations": violation, "template audit-violations": violation,
		"exempt exempt": "user", "free enforce-policy": "privileged:latest",
	}, seen)
}

// TestPodSecurityBounded checks that only the first maxJudged pods of a namespace are checked when its labels
// change.
func TestPodSecurityBounded(t *testing.T) {
	client := &testclient.Client{}
	for i := range 3001 {
		client.Put("pods", map[string]any{
			"metadata": map[string]any{"namespace": "a", "name": fmt.Sprintf("p%04d", i)}, "spec": map[string]any{"hostPID": true},
		})
	}
	c, err := admission.New(plugins.Table(), admission.Options{}, admission.PluginContext{
		Names: names.Kubernetes, Client: client, Type: func(meta.GroupResource) *registry.Type { return &registry.Type{} },
	})
	require.NoError(t, err)
	var told []string
	r := &admission.Request{Operation: admission.Update, Resource: meta.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Name: "a",
		Old: meta.NewObject(nil), Object: meta.NewObject(nil), Warn: func(text string) { told = append(told, text) }}
	r.Object.Set("baseline", "metadata", "labels", "pod-security.kubernetes.io/enforce")
	require.NoError(t, c.Validate(t.Context(), r))
	assert.Equal(t, []string{
		"new PodSecurity enforce level only checked against the first 3000 of 3001 existing pods",
		`existing pods in namespace "a" violate the new PodSecurity enforce level "baseline:latest"`,
		"p0000 (and 2999 other pods): host namespaces",
	}, told)
}

// Namespaces without labels enforce baseline; the system namespace is exempt.
func ExamplePodSecurityConfig() {
	o := admission.Options{Config: map[string]any{"PodSecurity": plugins.PodSecurityConfig{
		Defaults:   plugins.PodSecurityDefaults{Enforce: "baseline", Warn: "restricted"},
		Exemptions: plugins.PodSecurityExemptions{Namespaces: []string{"kube-system"}},
	}}} // for AdmissionOptions of a server.Builder
	_, err := admission.New(plugins.Table(), o, admission.PluginContext{})
	fmt.Println(err)
	// Output: <nil>
}
