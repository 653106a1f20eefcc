package plugins_test

import (
	"testing"

	"orch.io/controlplane/admission"
)

// TestExtendedResourceToleration checks that pods that request an extended resource tolerate its taint.
func TestExtendedResourceToleration(t *testing.T) {
	runSteps(t, newServer(t, admission.Options{Enable: []string{"ExtendedResourceToleration"}, Disable: []string{"DefaultTolerationSeconds"}}),
		step{do: "POST pods", body: `{metadata: {name: a}, spec: {initContainers: [{name: i, image: i, resources: {limits: {example.com/nic: 1}}}], containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 1, cpu: 1}}}]}}`, want: `201 {spec: {tolerations: [{key: example.com/gpu, operator: Exists, effect: NoSchedule}, {key: example.com/nic, operator: Exists, effect: NoSchedule}]}}`},
		step{do: "POST pods", body: `{metadata: {name: b}, spec: {containers: [{name: c, image: i, resources: {limits: {cpu: 1}}}]}}`, want: `201 {spec: {tolerations: null}}`},
		step{do: "POST pods", body: `{metadata: {name: d}, spec: {tolerations: [{key: example.com/gpu, operator: Exists, effect: NoSchedule}], containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 1}}}]}}`, want: `201 {spec: {tolerations: [{key: example.com/gpu}]}}`},
		step{do: "POST pods", body: `{metadata: {name: e}, spec: {tolerations: [{operator: Exists}], containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 1}}}]}}`, want: `201 {spec: {tolerations: [{key: null}, {key: example.com/gpu, operator: Exists, effect: NoSchedule}]}}`},
		step{do: "POST pods", body: `{metadata: {name: f}, spec: {tolerations: [{key: example.com/gpu, operator: Exists, effect: NoSchedule, value: ""}, {key: example.com/nic, effect: NoSchedule, value: a}], containers: [{name: c, image: i, resources: {limits: {example.com/gpu: 1, example.com/nic: 1}}}]}}`, want: `201 {spec: {tolerations: [{key: example.com/gpu}, {value: a}, {key: example.com/nic, operator: Exists}]}}`},
	)
}
