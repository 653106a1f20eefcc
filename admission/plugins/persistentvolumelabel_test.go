package plugins_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/plugins"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// TestPersistentVolumeLabel checks that a new volume gets topology labels and the matching node affinity.
func TestPersistentVolumeLabel(t *testing.T) {
	const region, zone = "topology.kubernetes.io/region", "topology.kubernetes.io/zone"
	var cloud plugins.VolumeLabels = func(_ context.Context, volume *meta.Object) (map[string]string, error) {
		switch volume.String("spec", "csi", "driver") {
		case "cloud":
			return map[string]string{region: "r", zone: "b__a"}, nil
		case "broken":
			return nil, errors.New("no such disk")
		}
		return nil, nil
	}
	volume := func(name, driver, labels, more string) string {
		return `{metadata: {name: ` + name + `, labels: {` + labels + `}}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: ` + driver + `, volumeHandle: h}` + more + `}}`
	}
	affinity := func(terms string) string {
		return `, nodeAffinity: {required: {nodeSelectorTerms: [` + terms + `]}}`
	}
	const post, labels = "POST /api/v1/persistentvolumes", `{metadata: {labels: {a: null, ` + region + `: r, ` + zone + `: b__a}}, spec: {nodeAffinity: `
	const rules = `{key: ` + region + `, operator: In, values: [r]}, {key: ` + zone + `, operator: In, values: [a, b]}]}`
	runSteps(t, newServer(t, admission.Options{Enable: []string{"PersistentVolumeLabel"}, Config: map[string]any{"PersistentVolumeLabel": cloud}}),
		step{do: post, body: volume("a", "cloud", zone+`: forged`, ``), want: `201 ` + labels + `{required: {nodeSelectorTerms: [{matchExpressions: [` + rules + `]}}}}`},
		step{do: post, body: volume("b", "cloud", ``, affinity(`{matchExpressions: [{key: a, operator: Exists}]}, {matchExpressions: [{key: b, operator: Exists}]}`)),
			want: `201 ` + labels + `{required: {nodeSelectorTerms: [{matchExpressions: [{key: a}, ` + rules + `, {matchExpressions: [{key: b}, ` + rules + `]}}}}`},
		step{do: post, body: volume("c", "cloud", ``, affinity(`{matchExpressions: [{key: `+zone+`, operator: In, values: [z]}]}`)),
			want: `201 ` + labels + `{required: {nodeSelectorTerms: [{matchExpressions: [{key: ` + zone + `, values: [z]}]}]}}}}`},
		step{do: post, body: volume("d", "other", ``, ``), want: `201 {metadata: {labels: null}, spec: {nodeAffinity: null}}`},
		step{do: post, body: volume("e", "broken", ``, ``), want: `403 error querying volume e: no such disk`},
		step{do: "PATCH /api/v1/persistentvolumes/d", body: `{metadata: {labels: {a: b}}}`, want: `200`},
	)

	_, err := admission.New(plugins.Table(), admission.Options{Enable: []string{"PersistentVolumeLabel"}}, admission.PluginContext{Names: names.Kubernetes})
	assert.EqualError(t, err, "admission plugin PersistentVolumeLabel: no cloud provider: configure the plugin with a plugins.VolumeLabels function")
}
