package autoscaling_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/internal/kindtest"
)

const (
	shownBase       = "autoscaling.alpha.kubernetes.io/"
	shownMetrics    = shownBase + "metrics"
	shownMeasured   = shownBase + "current-metrics"
	shownConditions = shownBase + "conditions"
	shownBehavior   = shownBase + "behavior"
)

// older returns a v1 object with the annotation, unless its name is empty, and its conversion to the
// hub.
func older(t *testing.T, annotation, text, spec, status string) (obj, hub *meta.Object) {
	t.Helper()
	k := autoscaler(t)
	v1 := kindtest.Kind{Version: k.ByAPIVersion("autoscaling/v1")}
	annotations := map[string]string{"k": "v"}
	if annotation != "" {
		annotations[annotation] = text
	}
	set, err := json.Marshal(annotations)
	require.NoError(t, err)
	obj = v1.Object(t, `{"metadata":{"annotations":`+string(set)+`},"spec":{`+target+`,"maxReplicas":3`+spec+`},"status":{`+status+`}}`)
	hub, err = k.Convert(t.Context(), obj)
	require.NoError(t, err)
	return obj, hub
}

// newer converts an object of the hub to v1.
func newer(t *testing.T, body string) *meta.Object {
	t.Helper()
	k := autoscaler(t)
	shown, err := k.ByAPIVersion("autoscaling/v1").Convert(t.Context(), k.Object(t, body))
	require.NoError(t, err)
	return shown
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// TestFieldsOfV1 checks that the CPU fields of v1 become a metric of the hub and back.
func TestFieldsOfV1(t *testing.T) {
	const used = `{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":7}}}`
	obj, hub := older(t, "", "", `,"minReplicas":2,"targetCPUUtilizationPercentage":50`,
		`"currentReplicas":1,"desiredReplicas":2,"observedGeneration":4,"lastScaleTime":"2026-01-02T03:04:05Z","currentCPUUtilizationPercentage":7`)
	require.JSONEq(t, `{`+target+`,"minReplicas":2,"maxReplicas":3,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":50}}}]}`,
		asJSON(t, hub.Map("spec")))
	require.JSONEq(t, `{"currentReplicas":1,"desiredReplicas":2,"observedGeneration":4,"lastScaleTime":"2026-01-02T03:04:05Z","currentMetrics":[`+used+`]}`, asJSON(t, hub.Map("status")))
	require.JSONEq(t, asJSON(t, obj.Tree()), asJSON(t, newer(t, asJSON(t, hub.Tree())).Tree()))

	_, hub = older(t, "", "", ``, ``)
	require.Empty(t, hub.List("spec", "metrics"), "the default is the hub's")
	require.Empty(t, hub.List("status", "currentMetrics"))
	k := autoscaler(t)
	for percent, want := range map[string][]string{"1": {}, "0": {"Invalid:spec.metrics[0].resource.target.averageUtilization"}} {
		_, hub = older(t, "", "", `,"targetCPUUtilizationPercentage":`+percent, ``)
		_, faults := k.Create(t, asJSON(t, hub.Tree()))
		require.Equal(t, want, faults, percent)
	}
}

// TestMetricsInV1 checks that each metric except the CPU target is kept in the annotation and comes
// back from it.
func TestMetricsInV1(t *testing.T) {
	const selector = `"selector":{"matchLabels":{"a":"b"}}`
	for _, c := range []struct{ hub, shown string }{
		{`{"type":"Pods","pods":{"metric":{"name":"q",` + selector + `},"target":{"type":"AverageValue","averageValue":"5"}}}`,
			`{"type":"Pods","pods":{"metricName":"q",` + selector + `,"targetAverageValue":"5"}}`},
		{`{"type":"Object","object":{"describedObject":{"kind":"x","name":"y","apiVersion":"v1"},"metric":{"name":"q",` + selector + `},"target":{"type":"Value","value":"5"}}}`,
			`{"type":"Object","object":{"target":{"kind":"x","name":"y","apiVersion":"v1"},"metricName":"q",` + selector + `,"targetValue":"5"}}`},
		{`{"type":"Object","object":{"describedObject":{"kind":"x","name":"y"},"metric":{"name":"q"},"target":{"type":"AverageValue","averageValue":"5"}}}`,
			`{"type":"Object","object":{"target":{"kind":"x","name":"y"},"metricName":"q","targetValue":"0","averageValue":"5"}}`},
		{`{"type":"Object","object":{"describedObject":{"kind":"x","name":"y"},"metric":{"name":"q"},"target":{"type":"AverageValue","value":"1","averageValue":"5"}}}`,
			`{"type":"Object","object":{"target":{"kind":"x","name":"y"},"metricName":"q","targetValue":"1","averageValue":"5"}}`},
		{`{"type":"Resource","resource":{"name":"memory","target":{"type":"Utilization","averageUtilization":5}}}`,
			`{"type":"Resource","resource":{"name":"memory","targetAverageUtilization":5}}`},
		{`{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"5"}}}`,
			`{"type":"Resource","resource":{"name":"cpu","targetAverageValue":"5"}}`},
		{`{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","target":{"type":"Utilization","averageUtilization":5}}}`,
			`{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","targetAverageUtilization":5}}`},
		{`{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","target":{"type":"AverageValue","averageValue":"5"}}}`,
			`{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","targetAverageValue":"5"}}`},
		{`{"type":"External","external":{"metric":{"name":"q",` + selector + `},"target":{"type":"Value","value":"5"}}}`,
			`{"type":"External","external":{"metricName":"q","metricS` + selector[2:] + `,"targetValue":"5"}}`},
		{`{"type":"External","external":{"metric":{"name":"q"},"target":{"type":"AverageValue","averageValue":"5"}}}`,
			`{"type":"External","external":{"metricName":"q","targetAverageValue":"5"}}`},
	} {
		shown := newer(t, metric(c.hub))
		assert.JSONEq(t, `[`+c.shown+`]`, shown.Annotation(shownMetrics), c.hub)
		assert.False(t, has(shown, "spec", "targetCPUUtilizationPercentage"), c.hub)
		_, hub := older(t, shownMetrics, `[`+c.shown+`]`, ``, ``)
		assert.JSONEq(t, `[`+c.hub+`]`, asJSON(t, hub.List("spec", "metrics")), c.shown)
		assert.Equal(t, map[string]any{"k": "v"}, hub.Map("metadata", "annotations"))
	}

	const first, last = `{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":1}}}`, `{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":2}}}`
	shown := newer(t, metric(first+`,`+last))
	require.Equal(t, int64(2), shown.Int("spec", "targetCPUUtilizationPercentage"), "the field shows the last metric")
	require.JSONEq(t, `[{"type":"Resource","resource":{"name":"cpu","targetAverageUtilization":1}}]`, shown.Annotation(shownMetrics))
	require.Empty(t, newer(t, metric(last)).Annotations(), "the field holds all of it")
	_, hub := older(t, shownMetrics, shown.Annotation(shownMetrics), `,"targetCPUUtilizationPercentage":2`, ``)
	require.JSONEq(t, `[`+first+`,`+last+`]`, asJSON(t, hub.List("spec", "metrics")))
}

// TestCurrentMetricsInV1 checks that measurements are kept in the annotation unless the field of v1
// holds all of them.
func TestCurrentMetricsInV1(t *testing.T) {
	const selector = `"selector":{"matchLabels":{"a":"b"}}`
	status := func(metrics string) string {
		return `{"spec":{` + target + `,"maxReplicas":1},"status":{"currentMetrics":[` + metrics + `]}}`
	}
	for _, c := range []struct{ hub, shown string }{
		{`{"type":"Pods","pods":{"metric":{"name":"q",` + selector + `},"current":{"averageValue":"5"}}}`,
			`{"type":"Pods","pods":{"metricName":"q",` + selector + `,"currentAverageValue":"5"}}`},
		{`{"type":"Object","object":{"describedObject":{"kind":"x","name":"y"},"metric":{"name":"q",` + selector + `},"current":{"value":"5","averageValue":"1"}}}`,
			`{"type":"Object","object":{"target":{"kind":"x","name":"y"},"metricName":"q",` + selector + `,"currentValue":"5","averageValue":"1"}}`},
		{`{"type":"Resource","resource":{"name":"memory","current":{"averageUtilization":5,"averageValue":"1"}}}`,
			`{"type":"Resource","resource":{"name":"memory","currentAverageUtilization":5,"currentAverageValue":"1"}}`},
		{`{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":5,"averageValue":"1"}}}`,
			`{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":5,"currentAverageValue":"1"}}`},
		{`{"type":"Resource","resource":{"name":"cpu","current":{"averageValue":"1"}}}`,
			`{"type":"Resource","resource":{"name":"cpu","currentAverageValue":"1"}}`},
		{`{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","current":{"averageUtilization":5,"averageValue":"1"}}}`,
			`{"type":"ContainerResource","containerResource":{"name":"cpu","container":"c","currentAverageUtilization":5,"currentAverageValue":"1"}}`},
		{`{"type":"External","external":{"metric":{"name":"q",` + selector + `},"current":{"value":"5","averageValue":"1"}}}`,
			`{"type":"External","external":{"metricName":"q","metricS` + selector[2:] + `,"currentValue":"5","currentAverageValue":"1"}}`},
	} {
		assert.JSONEq(t, `[`+c.shown+`]`, newer(t, status(c.hub)).Annotation(shownMeasured), c.hub)
		_, hub := older(t, shownMeasured, `[`+c.shown+`]`, ``, ``)
		assert.JSONEq(t, `[`+c.hub+`]`, asJSON(t, hub.List("status", "currentMetrics")), c.shown)
	}

	const used = `{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":5}}}`
	shown := newer(t, status(used))
	require.Empty(t, shown.Annotations(), "the field holds all of it")
	require.Equal(t, int64(5), shown.Int("status", "currentCPUUtilizationPercentage"))
	_, hub := older(t, shownMeasured, `[{"type":"Pods"},{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":1,"currentAverageValue":"3"}}]`, ``, `"currentCPUUtilizationPercentage":5`)
	require.JSONEq(t, `[{"type":"Pods"},{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":5,"averageValue":"3"}}}]`, asJSON(t, hub.List("status", "currentMetrics")), "the field overrides the annotation")
	_, hub = older(t, shownMeasured, `[{"type":"Pods"}]`, ``, `"currentCPUUtilizationPercentage":5`)
	require.JSONEq(t, `[{"type":"Pods"},`+used+`]`, asJSON(t, hub.List("status", "currentMetrics")))
}

func TestConditionsAndBehaviorInV1(t *testing.T) {
	const (
		condition = `[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"R","message":"m","observedGeneration":3}]`
		behavior  = `{"scaleUp":{"stabilizationWindowSeconds":0,"selectPolicy":"Min","tolerance":"50m","policies":[{"type":"Pods","value":1,"periodSeconds":2}]}}`
		shownAs   = `{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Min","Tolerance":"50m","Policies":[{"Type":"Pods","Value":1,"PeriodSeconds":2}]},"ScaleDown":null}`
		down      = `{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":null,"Policies":null,"Tolerance":null}}`
	)
	shown := newer(t, `{"spec":{`+target+`,"maxReplicas":1,"behavior":`+behavior+`},"status":{"conditions":`+condition+`}}`)
	require.JSONEq(t, condition, shown.Annotation(shownConditions))
	require.JSONEq(t, shownAs, shown.Annotation(shownBehavior))
	require.JSONEq(t, down, newer(t, body(`,"behavior":{"scaleDown":{}}`)).Annotation(shownBehavior))
	_, hub := older(t, shownConditions, condition, ``, ``)
	require.JSONEq(t, condition, asJSON(t, hub.List("status", "conditions")))
	for text, want := range map[string]string{shownAs: behavior, behavior: behavior, down: `{"scaleDown":{}}`, `{}`: `{}`} {
		_, hub = older(t, shownBehavior, text, ``, ``)
		require.JSONEq(t, want, asJSON(t, hub.Map("spec", "behavior")), text)
	}
}

// TestMalformedAnnotations checks that an annotation that does not decode is ignored as a whole, and
// that the contents of a decodable annotation are validated.
func TestMalformedAnnotations(t *testing.T) {
	for _, name := range []string{shownMetrics, shownMeasured, shownConditions, shownBehavior} {
		_, plain := older(t, "", "", ``, ``)
		for _, text := range []string{``, `null`, `no json`, `"text"`, `7`, `[7]`, `[{"type":7}]`, `[{"type":"Pods"}`, `[{"type":"Pods"}] more`, `{"ScaleUp":7}`,
			`[{"type":"A","lastTransitionTime":"never"},{"type":"Pods","pods":{"targetAverageValue":"a lot","currentAverageValue":"a lot"}}]`} {
			_, hub := older(t, name, text, ``, ``)
			assert.Equal(t, plain.Tree(), hub.Tree(), name+" "+text)
		}
	}
	k := autoscaler(t)
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{shownMetrics, `[null]`, []string{"Required:spec.metrics[0].type", "NotSupported:spec.metrics[0].type"}},
		{shownMetrics, `[{"type":"Foo"}]`, []string{"NotSupported:spec.metrics[0].type", "NotSupported:spec.metrics[0].type"}},
		{shownMetrics, `[{"type":"Pods"}]`, []string{"Required:spec.metrics[0].pods"}},
		{shownMetrics, `[{"type":"Pods","pods":{}}]`, []string{"Required:spec.metrics[0].pods.metric.name", "Required:spec.metrics[0].pods.target.averageValue"}},
		{shownMetrics, `[{"type":"Object","object":{"metricName":"q","targetValue":"1"}}]`, []string{"Required:spec.metrics[0].object.describedObject.kind", "Required:spec.metrics[0].object.describedObject.name"}},
		{shownMetrics, `[{"type":"Object","object":{"target":{"kind":"x","name":"y"},"metricName":"q","targetValue":"0"}}]`, []string{"Invalid:spec.metrics[0].object.target.value"}},
		{shownBehavior, `{"ScaleUp":{"SelectPolicy":"x"}}`, []string{"NotSupported:spec.behavior.scaleUp.selectPolicy"}},
		{shownBehavior, `{"ScaleUp":{"Policies":[]}}`, nil},
	} {
		_, hub := older(t, c.name, c.text, ``, ``)
		_, faults := k.Create(t, asJSON(t, hub.Tree()))
		assert.ElementsMatch(t, c.want, faults, c.text)
	}
}

func has(o *meta.Object, path ...string) bool {
	_, ok := o.Get(path...)
	return ok
}
