package autoscaling

import (
	"fmt"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

func columns() []registry.Column {
	return []registry.Column{
		{Name: "Reference", Type: "string", Doc: "The scaled workload.", Cell: func(o *meta.Object) any {
			return o.String("spec", "scaleTargetRef", "kind") + "/" + o.String("spec", "scaleTargetRef", "name")
		}},
		{Name: "Targets", Type: "string", Doc: "The current and the target value of each metric.", Cell: targetsCell},
		{Name: "MinPods", Type: "string", Doc: "The lower bound of the number of pods.", Cell: func(o *meta.Object) any {
			if n, ok := o.Get("spec", "minReplicas"); ok {
				return fmt.Sprint(n)
			}
			return "<unset>"
		}},
		{Name: "MaxPods", Type: "string", Doc: "The upper bound of the number of pods.", Cell: func(o *meta.Object) any { return o.Int("spec", "maxReplicas") }},
		{Name: "Replicas", Type: "string", Doc: "The number of pods at the last observation.", Cell: func(o *meta.Object) any { return o.Int("status", "currentReplicas") }},
		registry.AgeColumn(),
	}
}

// targetsCell shows the first two metrics and the number of the others.
func targetsCell(o *meta.Object) any {
	const most = 2
	metrics, measured := o.List("spec", "metrics"), o.List("status", "currentMetrics")
	if len(metrics) == 0 {
		return "<none>"
	}
	var words []string
	for i, v := range metrics[:min(len(metrics), most)] {
		metric, _ := v.(map[string]any)
		var now map[string]any
		if i < len(measured) {
			now, _ = measured[i].(map[string]any)
		}
		words = append(words, targetText(meta.NewObject(metric), meta.NewObject(now)))
	}
	text := strings.Join(words, ", ")
	if more := len(metrics) - most; more > 0 {
		text += " + " + strconv.Itoa(more) + " more..."
	}
	return text
}

// targetText shows the measurement and the target of a metric, such as "cpu: 12%/80%". Measurements
// are matched to metrics by position; a measurement of another type counts as unknown.
func targetText(metric, now *meta.Object) string {
	kind := metric.String("type")
	switch kind {
	case "ContainerResource", "External", "Object", "Pods", "Resource":
	default:
		return "<unknown type>"
	}
	field := strings.ToLower(kind[:1]) + kind[1:]
	if now.String("type") != kind {
		now = meta.NewObject(nil)
	}
	pair := func(of, suffix string) string {
		value, ok := now.Get(field, "current", of)
		if !ok {
			value = "<unknown>"
		} else {
			value = fmt.Sprint(value, suffix)
		}
		want, ok := metric.Get(field, "target", of)
		if !ok {
			want = "<auto>"
		} else {
			want = fmt.Sprint(want, suffix)
		}
		return fmt.Sprintf("%s/%s", value, want)
	}
	_, average := metric.Get(field, "target", "averageValue")
	switch kind {
	case "Resource", "ContainerResource":
		if average {
			return metric.String(field, "name") + ": " + pair("averageValue", "")
		}
		return metric.String(field, "name") + ": " + pair("averageUtilization", "%")
	case "Pods":
		return pair("averageValue", "")
	}
	if average {
		return pair("averageValue", "") + " (avg)"
	}
	return pair("value", "")
}
