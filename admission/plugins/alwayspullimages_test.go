package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestAlwaysPullImages checks that pods get the pull policy Always, but neither pod templates nor ephemeral
// containers do.
func TestAlwaysPullImages(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{Enable: []string{"AlwaysPullImages"}}),
		step{do: "POST pods", body: `{metadata: {name: a}, spec: {
			initContainers: [{name: i, image: "i:1", imagePullPolicy: Never}], containers: [{name: c, image: "c:1", imagePullPolicy: IfNotPresent}],
			volumes: [{name: v, image: {reference: "v:1", pullPolicy: Never}}]}}`,
			want: `201 {spec: {initContainers: [{imagePullPolicy: Always}], containers: [{imagePullPolicy: Always}], volumes: [{image: {pullPolicy: Always}}]}}`},
		step{do: "PATCH pods/a/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: "e:1", imagePullPolicy: Never}]}}`,
			want: `200 {spec: {ephemeralContainers: [{imagePullPolicy: Never}]}}`},
		step{do: "PATCH pods/a/ephemeralcontainers", body: `{spec: {ephemeralContainers: [{name: e, image: "e:1", imagePullPolicy: Never}, {name: f, image: "c:1"}]}}`,
			want: `200 {spec: {ephemeralContainers: [{imagePullPolicy: Never}, {imagePullPolicy: IfNotPresent}]}}`},
		step{do: "PATCH pods/a", body: `{metadata: {labels: {a: b}}}`, want: `200`},
		step{do: "POST podtemplates", body: `{metadata: {name: t}, template: {spec: {containers: [{name: c, image: "c:1", imagePullPolicy: Never}]}}}`,
			want: `201 {template: {spec: {containers: [{imagePullPolicy: Never}]}}}`},
	)
}
