package plugins_test

import (
	"strconv"
	"testing"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/auth/serviceaccount"
	"orch.io/controlplane/server"
)

// TestServiceAccount checks that a pod needs an existing account, and gets its token and pull secrets unless
// pod or account opt out.
func TestServiceAccount(t *testing.T) {
	const mount = `/var/run/secrets/kubernetes.io/serviceaccount`
	const mounted = `volumeMounts: [{readOnly: true, mountPath: ` + mount + `}]`
	s := newServer(t, admission.Options{}, func(b *server.Builder) { b.Controllers = append(b.Controllers, serviceaccount.DefaultAccounts()) })
	runSteps(t, s,
		step{do: "POST /api/v1/namespaces", body: `{metadata: {name: new}}`, want: `201`},
		step{do: "POST /api/v1/namespaces/new/pods", body: podSpec("a", ``), want: `201 {spec: {serviceAccountName: default, serviceAccount: default, imagePullSecrets: null,
			containers: [{` + mounted + `}], volumes: [{projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: token, expirationSeconds: 3607, audience: null}},
				{configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}},
				{downwardAPI: {items: [{path: namespace, fieldRef: {apiVersion: v1, fieldPath: metadata.namespace}}]}}]}}]}}`},
		step{do: "POST pods", body: podSpec("a", `, serviceAccountName: robot`), want: `403 error looking up service account default/robot: serviceaccount "robot" not found`},
		step{do: "POST serviceaccounts", body: `{metadata: {name: robot}, imagePullSecrets: [{name: pull}]}`, want: `201`},
		step{do: "POST serviceaccounts", body: `{metadata: {name: quiet}, automountServiceAccountToken: false}`, want: `201`},
		step{do: "POST pods", body: podSpec("a", `, serviceAccountName: robot, initContainers: [{name: i, image: i}]`),
			want: `201 {spec: {imagePullSecrets: [{name: pull}], initContainers: [{` + mounted + `}], containers: [{` + mounted + `}]}}`},
		step{do: "POST pods", body: podSpec("b", `, serviceAccountName: robot, imagePullSecrets: [{name: own}], automountServiceAccountToken: false`),
			want: `201 {spec: {imagePullSecrets: [{name: own}], containers: [{volumeMounts: null}], volumes: null}}`},
		step{do: "POST pods", body: podSpec("d", `, serviceAccountName: quiet`), want: `201 {spec: {volumes: null}}`},
		step{do: "POST pods", body: podSpec("e", `, serviceAccountName: quiet, automountServiceAccountToken: true`), want: `201 {spec: {containers: [{` + mounted + `}]}}`},
		step{do: "POST pods", body: `{metadata: {name: f}, spec: {serviceAccountName: robot, volumes: [{name: v, emptyDir: {}}],
			containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: ` + mount + `}]}]}}`, want: `201 {spec: {volumes: [{name: v}], containers: [{volumeMounts: [{name: v}]}]}}`},
		step{do: "POST serviceaccounts", body: `{metadata: {name: strict, annotations: {kubernetes.io/enforce-mountable-secrets: "true"}}, secrets: [{name: mine}], automountServiceAccountToken: false}`, want: `201`},
		step{do: "POST pods", body: podSpec("g", `, serviceAccountName: strict, volumes: [{name: v, secret: {secretName: mine}}]`), want: `201`},
		step{do: "POST pods", body: podSpec("h", `, serviceAccountName: strict, volumes: [{name: v, secret: {secretName: other}}]`),
			want: `403 volume or variable with secret "other" is not allowed because service account strict does not reference that secret`},
		step{do: "POST pods", body: podSpec("h", `, serviceAccountName: strict, imagePullSecrets: [{name: other}]`),
			want: `403 imagePullSecrets with secret "other" is not allowed because service account strict does not reference that imagePullSecret`},
		step{do: "PATCH pods/g/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: i, envFrom: [{secretRef: {name: other}}]}]}}`,
			want: `403 volume or variable with secret "other" is not allowed because service account strict does not reference that secret`},
		step{do: "POST pods", body: `{metadata: {name: m, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}`,
			want: `201 {spec: {serviceAccountName: null, volumes: null}}`},
		step{do: "POST pods", body: `{metadata: {name: m2, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n1, serviceAccountName: robot, containers: [{name: c, image: i}]}}`,
			want: `403 a mirror pod may not reference service accounts`},
		step{do: "POST pods", body: `{metadata: {name: m2, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n1, containers: [{name: c, image: i, envFrom: [{secretRef: {name: s}}]}]}}`,
			want: `403 a mirror pod may not reference secrets`},
		step{do: "POST pods", body: `{metadata: {name: m2, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: n1, containers: [{name: c, image: i}], volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}}`,
			want: `403 a mirror pod may not use ServiceAccountToken volume projections`},
	)
}

// TestServiceAccountWithoutController checks that pods need no default account if no controller creates it.
func TestServiceAccountWithoutController(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{}),
		step{do: "POST pods", body: `{metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}`, want: `201 {spec: {serviceAccountName: default, volumes: null}}`},
		step{do: "POST pods", body: `{metadata: {name: b}, spec: {serviceAccountName: robot, containers: [{name: c, image: i}]}}`,
			want: `403 error looking up service account default/robot: serviceaccount "robot" not found`},
	)
}

// TestEnforceMountableSecretsIsABoolean checks that the annotation accepts every spelling of a boolean.
func TestEnforceMountableSecretsIsABoolean(t *testing.T) {
	s := newServer(t, admission.Options{})
	for i, value := range []string{"true", "True", "TRUE", "t", "T", "1", "false", "0", "yes", ""} {
		name, want := "a"+strconv.Itoa(i), `403 because service account a`+strconv.Itoa(i)+` does not reference that secret`
		if i > 5 {
			want = "201"
		}
		runSteps(t, s,
			step{do: "POST serviceaccounts", want: "201",
				body: `{metadata: {name: ` + name + `, annotations: {kubernetes.io/enforce-mountable-secrets: "` + value + `"}}}`},
			step{do: "POST pods?dryRun=All", body: podSpec("p", ", serviceAccountName: "+name+", volumes: [{name: v, secret: {secretName: s}}]"), want: want},
		)
	}
}
