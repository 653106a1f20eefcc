package autoscaling_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/autoscaling"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range autoscaling.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind HorizontalPodAutoscaler.autoscaling (Go type autoscaling.HorizontalPodAutoscaler)
}

const target = `"scaleTargetRef":{"kind":"Deployment","name":"w","apiVersion":"apps/v1"}`

func body(fields string) string { return `{"spec":{` + target + `,"maxReplicas":3` + fields + `}}` }

func metric(text string) string { return body(`,"metrics":[` + text + `]`) }

func TestAutoscaler(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, autoscaling.Kinds(), "HorizontalPodAutoscaler")
	const m = "spec.metrics[0]"
	k.Creates(t, map[string][]string{
		body(``):                 {},
		body(`,"minReplicas":0`): {"Invalid:spec.minReplicas", "Forbidden:spec.metrics"},
		body(`,"minReplicas":4`): {"Invalid:spec.maxReplicas"},
		`{"spec":{"maxReplicas":0}}`: {"Required:spec.scaleTargetRef.kind", "Required:spec.scaleTargetRef.name", "Required:spec.maxReplicas",
			"Invalid:spec.maxReplicas", "Invalid:spec.scaleTargetRef.apiVersion"},
		`{"spec":{"maxReplicas":1,"scaleTargetRef":{"kind":"a/b","name":"..","apiVersion":"a/b/c"}}}`: {"Invalid:spec.scaleTargetRef.kind", "Invalid:spec.scaleTargetRef.name", "Invalid:spec.scaleTargetRef.apiVersion"},
		metric(`{"type":"Resource"}`): {"Required:" + m + ".resource"},
		metric(`{"type":"Foo"}`):      {"NotSupported:" + m + ".type", "NotSupported:" + m + ".type"},
		metric(`{"type":"Resource","resource":{"name":"cpu","target":{"type":"Value"}}}`): {"Required:" + m + ".resource.target.averageUtilization"},
		metric(`{"type":"Pods","pods":{"metric":{"name":"a/b"},"target":{"type":"x","averageValue":"-1"}}}`): {"Invalid:" + m + ".pods.metric.name",
			"Invalid:" + m + ".pods.target.type", "Invalid:" + m + ".pods.target.averageValue"},
		metric(`{"type":"External","external":{"metric":{"name":"a"},"target":{"type":"Value","value":"1","averageValue":"1"}}}`):        {"Forbidden:" + m + ".external.target.value"},
		metric(`{"type":"Object","object":{"metric":{"name":"a"},"target":{"type":"Value"},"describedObject":{"kind":"x","name":"y"}}}`): {"Required:" + m + ".object.target.averageValue"},
		body(`,"behavior":{"scaleUp":{"stabilizationWindowSeconds":4000},"scaleDown":{"selectPolicy":"x","tolerance":"-1","policies":[{"type":"x","value":0,"periodSeconds":1801}]}}`): {
			"Invalid:spec.behavior.scaleUp.stabilizationWindowSeconds", "NotSupported:spec.behavior.scaleDown.selectPolicy", "Invalid:spec.behavior.scaleDown.tolerance",
			"NotSupported:spec.behavior.scaleDown.policies[0].type", "Invalid:spec.behavior.scaleDown.policies[0].value", "Invalid:spec.behavior.scaleDown.policies[0].periodSeconds"},
	})
	obj, _ := k.Create(t, body(`,"behavior":{}`))
	require.Equal(t, "cpu: <unknown>/80%", k.Cell(t, obj, "Targets"))
	require.Equal(t, "Deployment/w", k.Cell(t, obj, "Reference"))
	require.Equal(t, "1", k.Cell(t, obj, "MinPods"))
	require.Len(t, obj.List("spec", "behavior", "scaleUp", "policies"), 2)
	require.Len(t, obj.List("spec", "behavior", "scaleDown", "policies"), 1)
	_, faults := k.Update(t, obj, `{"status":{"currentReplicas":-1}}`, "status")
	require.Equal(t, []string{"Invalid:status.currentReplicas"}, faults)
}
