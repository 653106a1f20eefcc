package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestAutoscalerInBothVersions: v1 represents in annotations the metrics for which it has no field, and reads them
// from there. v2 has only fields.
func TestAutoscalerInBothVersions(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Names = names.Kubernetes }))
	const v1, v2 = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
	const spec = `"scaleTargetRef":{"kind":"Deployment","name":"w","apiVersion":"apps/v1"},"maxReplicas":3`
	pods := apitest.ParseObject(t, `{"type":"Pods","pods":{"metric":{"name":"qps"},"target":{"type":"AverageValue","averageValue":"5"}}}`)
	cpu := func(percent float64) map[string]any {
		return map[string]any{"type": "Resource", "resource": map[string]any{"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": percent}}}
	}
	metrics := func(name string) []any {
		list, _ := apitest.Nested(a.Must(200, "GET", v2+"/"+name, nil).Body, "spec", "metrics").([]any)
		return list
	}

	a.Must(201, "POST", v2, map[string]any{"metadata": map[string]any{"name": "a", "annotations": map[string]any{
		"k": "v", "autoscaling.alpha.kubernetes.io/metrics": "not this way",
	}}, "spec": map[string]any{
		"scaleTargetRef": map[string]any{"kind": "Deployment", "name": "w", "apiVersion": "apps/v1"}, "maxReplicas": 3,
		"metrics":  []any{cpu(70), pods},
		"behavior": map[string]any{"scaleDown": map[string]any{"selectPolicy": "Disabled"}},
	}})
	hub := a.Must(200, "GET", v2+"/a", nil).Body
	assert.Equal(t, map[string]any{"k": "v"}, apitest.Nested(hub, "metadata", "annotations"))
	shown := a.Must(200, "GET", v1+"/a", nil).Body
	assert.Equal(t, 70.0, apitest.Nested(shown, "spec", "targetCPUUtilizationPercentage"))
	assert.JSONEq(t, `[{"type":"Pods","pods":{"metricName":"qps","targetAverageValue":"5"}}]`, apitest.NestedString(shown, "metadata", "annotations", "autoscaling.alpha.kubernetes.io/metrics"))
	assert.Contains(t, apitest.NestedString(shown, "metadata", "annotations", "autoscaling.alpha.kubernetes.io/behavior"), `"SelectPolicy":"Disabled"`)

	a.Must(200, "PUT", v1+"/a", shown)
	assert.Equal(t, apitest.Nested(hub, "spec"), apitest.Nested(a.Must(200, "GET", v2+"/a", nil).Body, "spec"), "a PUT of the object as it was read must not change it")
	a.Must(200, "PATCH", v1+"/a", `{"spec":{"targetCPUUtilizationPercentage":50}}`)
	assert.Equal(t, []any{pods, cpu(50)}, metrics("a"), "only the metric of the changed field may change")
	a.Must(200, "PATCH", v1+"/a", `{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":null,"autoscaling.alpha.kubernetes.io/behavior":null}}}`)
	hub = a.Must(200, "GET", v2+"/a", nil).Body
	assert.Equal(t, []any{cpu(50)}, apitest.Nested(hub, "spec", "metrics"))
	assert.Nil(t, apitest.Nested(hub, "spec", "behavior"))

	a.Must(200, "PATCH", v2+"/a/status", `{"status":{"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":30,"averageValue":"3m"}}}],
		"conditions":[{"type":"AbleToScale","status":"True","reason":"Ready"}]}}`)
	shown = a.Must(200, "PATCH", v1+"/a/status", `{"status":{"currentCPUUtilizationPercentage":33}}`).Body
	assert.Contains(t, apitest.NestedString(shown, "metadata", "annotations", "autoscaling.alpha.kubernetes.io/conditions"), `"reason":"Ready"`)
	hub = a.Must(200, "GET", v2+"/a", nil).Body
	assert.Equal(t, []any{apitest.ParseObject(t, `{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":33,"averageValue":"3m"}}}`)}, apitest.Nested(hub, "status", "currentMetrics"))
	assert.Len(t, apitest.Nested(hub, "status", "conditions"), 1)

	for name, c := range map[string]struct {
		annotation string
		want       []any
	}{
		"b": {`[{\"type\":\"Pods\",\"pods\":{\"metricName\":\"qps\",\"targetAverageValue\":\"5\"}}]`, []any{pods}},
		"c": {`no json`, []any{cpu(80)}}, // the default
	} {
		got := a.Must(201, "POST", v1, `{"metadata":{"name":"`+name+`","annotations":{"autoscaling.alpha.kubernetes.io/metrics":"`+c.annotation+`"}},"spec":{`+spec+`}}`)
		require.Equal(t, c.want, metrics(name))
		_, kept := apitest.Nested(got.Body, "metadata", "annotations").(map[string]any)
		assert.Equal(t, name == "b", kept)
	}
}
