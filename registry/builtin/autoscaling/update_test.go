package autoscaling_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	k := autoscaler(t)
	usual := []any{map[string]any{"type": "Resource", "resource": map[string]any{"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": int64(80)}}}}
	for _, fields := range []string{``, `,"metrics":null`, `,"metrics":[]`, `,"minReplicas":null`} {
		obj, faults := k.Create(t, body(fields))
		require.Empty(t, faults)
		require.Equal(t, int64(1), obj.Int("spec", "minReplicas"), fields)
		require.Equal(t, usual, obj.List("spec", "metrics"), fields)
		require.Nil(t, obj.Map("spec", "behavior"), fields)
	}
	obj, _ := k.Create(t, metric(object))
	require.Len(t, obj.List("spec", "metrics"), 1, "there is one")

	policy := func(of string, value int64) map[string]any {
		return map[string]any{"type": of, "value": value, "periodSeconds": int64(15)}
	}
	up := map[string]any{"stabilizationWindowSeconds": int64(0), "selectPolicy": "Max", "policies": []any{policy("Pods", 4), policy("Percent", 100)}}
	down := map[string]any{"selectPolicy": "Max", "policies": []any{policy("Percent", 100)}}
	own := map[string]any{"stabilizationWindowSeconds": int64(9), "selectPolicy": "Min", "tolerance": "50m", "policies": []any{map[string]any{"type": "Pods", "value": int64(1), "periodSeconds": int64(2)}}}
	const set = `{"stabilizationWindowSeconds":9,"selectPolicy":"Min","tolerance":"0.05","policies":[{"type":"Pods","value":1,"periodSeconds":2}]}`
	for behavior, want := range map[string]map[string]any{
		`{}`:                              {"scaleUp": up, "scaleDown": down},
		`{"scaleUp":{},"scaleDown":null}`: {"scaleUp": up, "scaleDown": down},
		`{"scaleUp":{"policies":[]}}`:     {"scaleUp": up, "scaleDown": down}, // an empty list gets the default policies
		`{"scaleUp":` + set + `}`:         {"scaleUp": own, "scaleDown": down},
		`{"scaleDown":` + set + `}`:       {"scaleUp": up, "scaleDown": own},
	} {
		obj, faults := k.Create(t, body(`,"behavior":`+behavior))
		require.Empty(t, faults)
		require.Equal(t, want, obj.Map("spec", "behavior"), behavior)
	}
}

func TestUpdates(t *testing.T) {
	k := autoscaler(t)
	old, _ := k.Create(t, body(`,"behavior":{}`))
	k.Updates(t, old, map[string][]string{
		`{"spec":{"minReplicas":2,"maxReplicas":5}}`:                                    nil,
		`{"spec":{"scaleTargetRef":{"kind":"StatefulSet","name":"v"}}}`:                 nil,
		`{"spec":{"metrics":[` + object + `]}}`:                                         nil,
		`{"spec":{"metrics":null,"behavior":null}}`:                                     nil,
		`{"spec":{"maxReplicas":0}}`:                                                    {"Required:spec.maxReplicas", "Invalid:spec.maxReplicas"},
		`{"spec":{"minReplicas":4}}`:                                                    {"Invalid:spec.maxReplicas"},
		`{"spec":{"scaleTargetRef":{"apiVersion":"v2"}}}`:                               {"Invalid:spec.scaleTargetRef.apiVersion"},
		`{"spec":{"metrics":[{"type":"Pods"}]}}`:                                        {"Required:spec.metrics[0].pods"},
		`{"spec":{"behavior":{"scaleUp":{"policies":[{}]}}}}`:                           {"NotSupported:spec.behavior.scaleUp.policies[0].type", "Invalid:spec.behavior.scaleUp.policies[0].value", "Invalid:spec.behavior.scaleUp.policies[0].periodSeconds"},
		`{"status":{"currentReplicas":-1}}`:                                             nil, // an update of the object ignores the status
		`{"metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"no"}}}`: nil,
	})
	for patch, want := range map[string][]string{
		`{"currentReplicas":2,"desiredReplicas":3,"observedGeneration":1}`: {},
		`{"currentReplicas":-1}`: {"Invalid:status.currentReplicas"},
		`{"desiredReplicas":-1}`: {"Invalid:status.desiredReplicas"},
		`{"currentMetrics":[{"type":"Foo"},{"type":"Object","object":{"metric":{"selector":{"matchLabels":{"a b":"c"}}}}}]}`: {},
		`{"conditions":[{"type":"AbleToScale","status":"True"},{"type":"AbleToScale","status":"False"}]}`:                    {},
	} {
		_, faults := k.Update(t, old, `{"status":`+patch+`}`, "status")
		require.Equal(t, want, faults, patch)
	}
	same, faults := k.Update(t, old, `{"spec":{"maxReplicas":0},"status":{"currentReplicas":7}}`, "status")
	require.Empty(t, faults)
	require.Equal(t, []int64{3, 7}, []int64{same.Int("spec", "maxReplicas"), same.Int("status", "currentReplicas")})
	kept, _ := k.Update(t, same, `{"status":{"currentReplicas":8}}`, "")
	require.Equal(t, int64(7), kept.Int("status", "currentReplicas"))
}

// TestHubDropsAnnotationsOfV1 checks that the hub does not keep the annotations in which v1 shows
// fields.
func TestHubDropsAnnotationsOfV1(t *testing.T) {
	k := autoscaler(t)
	obj, faults := k.Create(t, `{"metadata":{"annotations":{"k":"v","autoscaling.alpha.kubernetes.io/metrics":"1","autoscaling.alpha.kubernetes.io/current-metrics":"2",
		"autoscaling.alpha.kubernetes.io/conditions":"3","autoscaling.alpha.kubernetes.io/behavior":"4"}},`+body(``)[1:])
	require.Empty(t, faults)
	require.Equal(t, map[string]any{"k": "v"}, obj.Map("metadata", "annotations"))
}

func TestColumns(t *testing.T) {
	k := autoscaler(t)
	obj, _ := k.Create(t, body(``))
	for column, want := range map[string]any{"Reference": "Deployment/w", "MinPods": "1", "MaxPods": int64(3), "Replicas": int64(0)} {
		require.Equal(t, want, k.Cell(t, obj, column), column)
	}
	obj, _ = k.Update(t, obj, `{"status":{"currentReplicas":2}}`, "status")
	require.Equal(t, int64(2), k.Cell(t, obj, "Replicas"))
	require.Equal(t, "<unset>", k.Cell(t, k.Object(t, body(``)), "MinPods"), "stored before there was a default")
}

func TestTargetsColumn(t *testing.T) {
	k := autoscaler(t)
	const (
		average = `"averageValue":"500m"`
		percent = `"averageUtilization":50`
		value   = `"value":"5"`
	)
	m := func(of, field, name, target string) string {
		return `{"type":"` + of + `","` + field + `":{` + name + `"target":{` + target + `}}}`
	}
	now := func(of, field, current string) string {
		return `{"type":"` + of + `","` + field + `":{"current":{` + current + `}}}`
	}
	cpu := m("Resource", "resource", `"name":"cpu",`, percent)
	for _, c := range []struct{ metrics, measured, want string }{
		{``, ``, "<none>"},
		{cpu, ``, "cpu: <unknown>/50%"},
		{cpu, now("Resource", "resource", `"averageUtilization":0`), "cpu: 0%/50%"},
		{cpu, now("Resource", "resource", average), "cpu: <unknown>/50%"},
		{cpu, now("Pods", "pods", percent), "cpu: <unknown>/50%"},
		{m("Resource", "resource", `"name":"cpu",`, ``), ``, "cpu: <unknown>/<auto>"},
		{m("Resource", "resource", `"name":"memory",`, average), now("Resource", "resource", `"averageValue":"0.2"`), "memory: 200m/500m"},
		{m("Resource", "resource", `"name":"memory",`, average), ``, "memory: <unknown>/500m"},
		{m("ContainerResource", "containerResource", `"name":"cpu",`, percent), now("ContainerResource", "containerResource", `"averageUtilization":7`), "cpu: 7%/50%"},
		{m("ContainerResource", "containerResource", `"name":"cpu",`, average), ``, "cpu: <unknown>/500m"},
		{m("Pods", "pods", ``, average), now("Pods", "pods", `"averageValue":"1"`), "1/500m"},
		{m("Pods", "pods", ``, average), ``, "<unknown>/500m"},
		{m("Object", "object", ``, value), now("Object", "object", `"value":"4"`), "4/5"},
		{m("Object", "object", ``, average), now("Object", "object", `"averageValue":"4"`), "4/500m (avg)"},
		{m("External", "external", ``, value), now("External", "external", `"averageValue":"4"`), "<unknown>/5"},
		{m("External", "external", ``, average), now("External", "external", `"averageValue":"4","value":"9"`), "4/500m (avg)"},
		{`{"type":"Foo"}`, ``, "<unknown type>"},
		{`{}`, ``, "<unknown type>"},
		{cpu + `,{"type":"Foo"}`, `{"type":"Foo"},` + now("Resource", "resource", percent), "cpu: <unknown>/50%, <unknown type>"},
		{cpu + "," + m("Pods", "pods", ``, average) + "," + cpu + "," + cpu, now("Resource", "resource", percent) + "," + now("Pods", "pods", average), "cpu: 50%/50%, 500m/500m + 2 more..."},
	} {
		obj := k.Object(t, `{"spec":{"metrics":[`+c.metrics+`]},"status":{"currentMetrics":[`+c.measured+`]}}`)
		require.Equal(t, c.want, k.Cell(t, obj, "Targets"), c.metrics+c.measured)
	}
}
