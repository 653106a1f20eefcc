package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestAlwaysPullImages: every image of a new pod is pulled; templates are not pods, and
// containers that are added later pull as they say.
func TestAlwaysPullImages(t *testing.T) {
	walk(t, with(t, admission.Options{Enable: []string{"AlwaysPullImages"}}),
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
