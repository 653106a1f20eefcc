package autoscaling_test

import (
	"fmt"
	"strings"
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

const (
	target = `"scaleTargetRef":{"kind":"Deployment","name":"w","apiVersion":"apps/v1"}`
	object = `{"type":"Object","object":{"metric":{"name":"a"},"target":{"type":"Value","value":"1"},"describedObject":{"kind":"x","name":"y"}}}`
)

func autoscaler(t *testing.T) kindtest.Kind {
	t.Helper()
	return kindtest.Of(t, names.Kubernetes, autoscaling.Kinds(), "HorizontalPodAutoscaler")
}

func body(fields string) string { return `{"spec":{` + target + `,"maxReplicas":3` + fields + `}}` }

func metric(text string) string { return body(`,"metrics":[` + text + `]`) }

// source returns a body with one metric of type of, whose source field holds fields.
func source(of, field, fields string) string {
	return metric(`{"type":"` + of + `","` + field + `":{` + fields + `}}`)
}

func TestReplicaBounds(t *testing.T) {
	k := autoscaler(t)
	limits := func(fields string) string { return `{"spec":{` + target + fields + `}}` }
	k.Creates(t, map[string][]string{
		limits(`,"maxReplicas":1`):                                            nil,
		limits(`,"maxReplicas":4,"minReplicas":4`):                            nil,
		limits(`,"maxReplicas":3,"minReplicas":4`):                            {"Invalid:spec.maxReplicas"},
		limits(`,"maxReplicas":3,"minReplicas":0`):                            {"Forbidden:spec.metrics"},
		limits(`,"maxReplicas":3,"minReplicas":-1`):                           {"Invalid:spec.minReplicas"},
		limits(`,"maxReplicas":-1,"minReplicas":-2`):                          {"Invalid:spec.minReplicas", "Invalid:spec.maxReplicas"},
		limits(`,"maxReplicas":-1`):                                           {"Invalid:spec.maxReplicas", "Invalid:spec.maxReplicas"},
		limits(``):                                                            {"Required:spec.maxReplicas", "Invalid:spec.maxReplicas"},
		limits(`,"maxReplicas":0`):                                            {"Required:spec.maxReplicas", "Invalid:spec.maxReplicas"},
		limits(`,"maxReplicas":3,"minReplicas":0,"metrics":[` + object + `]`): nil,
		limits(`,"maxReplicas":3,"minReplicas":0,"metrics":[{"type":"External","external":{"metric":{"name":"a"},"target":{"type":"Value","value":"1"}}}]`): nil,
	})
	require.Equal(t, []string{"spec.maxReplicas: Invalid value: 3: must be greater than or equal to `minReplicas`"},
		k.Texts(t, nil, limits(`,"maxReplicas":3,"minReplicas":4`), ""))
}

func TestScaleTarget(t *testing.T) {
	k := autoscaler(t)
	const at = "spec.scaleTargetRef."
	ref := func(fields string) string { return `{"spec":{"maxReplicas":1,"scaleTargetRef":{` + fields + `}}}` }
	k.Creates(t, map[string][]string{
		ref(`"kind":"ReplicationController","name":"w","apiVersion":"v1"`):  nil,
		ref(`"kind":"ReplicationController","name":"w"`):                    nil,
		ref(`"kind":"ReplicationController","name":"w","apiVersion":"/v1"`): nil,
		ref(`"kind":"Widget","name":"w","apiVersion":"example.com/v1"`):     nil,
		ref(``): {"Required:" + at + "kind", "Required:" + at + "name", "Invalid:" + at + "apiVersion"},
		ref(`"kind":"a/b","name":"..","apiVersion":"a/b/c"`):  {"Invalid:" + at + "kind", "Invalid:" + at + "name", "Invalid:" + at + "apiVersion"},
		ref(`"kind":"a%b","name":".","apiVersion":"apps/v1"`): {"Invalid:" + at + "kind", "Invalid:" + at + "name"},
		ref(`"kind":"a","name":"w","apiVersion":"v1"`):        {"Invalid:" + at + "apiVersion"},
		ref(`"kind":"a","name":"w","apiVersion":"v2"`):        {"Invalid:" + at + "apiVersion"},
		ref(`"kind":"a","name":"w","apiVersion":"/v1"`):       {"Invalid:" + at + "apiVersion"},
	})
	for version, want := range map[string]string{
		"v2":    `"v2": apiVersion must specify API group`,
		"a/b/c": `"a/b/c": unexpected GroupVersion string: a/b/c`,
	} {
		require.Equal(t, []string{at + "apiVersion: Invalid value: " + want}, k.Texts(t, nil, ref(`"kind":"a","name":"w","apiVersion":"`+version+`"`), ""))
	}
}

// TestStoredAPIVersions checks that an update may keep an API version that the rules no longer accept.
func TestStoredAPIVersions(t *testing.T) {
	k := autoscaler(t)
	old, faults := k.Create(t, metric(object))
	require.Empty(t, faults)
	k.Updates(t, old, map[string][]string{
		`{"spec":{"scaleTargetRef":{"apiVersion":"v1"}}}`:                                   {"Invalid:spec.scaleTargetRef.apiVersion"},
		metric(strings.Replace(object, `"name":"y"`, `"name":"y","apiVersion":"a/b/c"`, 1)): {"Invalid:spec.metrics[0].object.describedObject.apiVersion"},
	})
	old.Set("v1", "spec", "scaleTargetRef", "apiVersion")
	old.Objects("spec", "metrics")[0].Set("a/b/c", "object", "describedObject", "apiVersion")
	k.Updates(t, old, map[string][]string{
		`{"metadata":{"labels":{"a":"b"}},"spec":{"scaleTargetRef":{"name":"other"}}}`: nil,
		`{"spec":{"scaleTargetRef":{"kind":"Other"}}}`:                                 {"Invalid:spec.scaleTargetRef.apiVersion"},
	})
}

// TestMetricTypes checks that a metric must have exactly the source that its type names.
func TestMetricTypes(t *testing.T) {
	k := autoscaler(t)
	const (
		at      = "spec.metrics[0]."
		to      = `"target":{"type":"Value","value":"1","averageValue":"1"}`
		to1     = `"target":{"type":"AverageValue","averageValue":"1"}`
		of      = `"metric":{"name":"a"},`
		more    = `"describedObject":{"kind":"x","name":"y"}`
		unknown = "NotSupported:" + at + "type"
	)
	bodies := map[string]string{
		"object": of + to + "," + more, "pods": of + to1, "resource": `"name":"cpu",` + to1,
		"containerResource": `"name":"cpu","container":"c",` + to1, "external": of + to1,
	}
	types := map[string]string{"Object": "object", "Pods": "pods", "Resource": "resource", "ContainerResource": "containerResource", "External": "external"}
	cases := map[string][]string{
		metric(``):                          nil, // the default
		metric(`{}`):                        {"Required:" + at + "type", unknown},
		metric(`{"type":"Foo"}`):            {unknown, unknown},
		metric(`{"type":"cpu"}`):            {unknown, unknown},
		metric(`{"resource":null}`):         {"Required:" + at + "type", unknown},
		metric(object + `,{"type":"Pods"}`): {"Required:spec.metrics[1].pods"},
	}
	for name, field := range types {
		cases[source(name, field, bodies[field])] = nil
		cases[metric(`{"type":"`+name+`"}`)] = []string{"Required:" + at + field}
		for _, other := range types {
			if other == field {
				continue
			}
			cases[source(name, other, bodies[other])] = []string{"Required:" + at + field}
			cases[metric(`{"type":"`+name+`","`+field+`":{`+bodies[field]+`},"`+other+`":{`+bodies[other]+`}}`)] = []string{"Forbidden:" + at + other}
		}
	}
	k.Creates(t, cases)
	require.Equal(t, []string{at + "resource: Required value: must populate information for the given metric source"}, k.Texts(t, nil, metric(`{"type":"Resource"}`), ""))
	require.Equal(t, []string{at + "type: Required value: must specify a metric source type"}, k.Texts(t, nil, metric(`{}`), "")[:1])
}

// TestMetricSources checks the names in each type of metric source.
func TestMetricSources(t *testing.T) {
	k := autoscaler(t)
	const (
		at   = "spec.metrics[0]."
		to   = `"target":{"type":"AverageValue","averageValue":"1"}`
		cpu  = `"name":"cpu",` + to
		seen = `"describedObject":{"kind":"x","name":"y"},` + to
	)
	cases := map[string][]string{
		source("Object", "object", `"metric":{"name":"a"},`+to): {"Required:" + at + "object.describedObject.kind", "Required:" + at + "object.describedObject.name"},
		source("Object", "object", `"metric":{"name":"a"},"describedObject":{"kind":"a/b","name":"%"},`+to): {
			"Invalid:" + at + "object.describedObject.kind", "Invalid:" + at + "object.describedObject.name"},
		// only the scale target needs a group
		source("Object", "object", `"metric":{"name":"a"},"describedObject":{"kind":"x","name":"y","apiVersion":"v2"},`+to): nil,
		source("Object", "object", `"metric":{"name":"a"},"describedObject":{"kind":"x","name":"y","apiVersion":"a/b/c"},`+to): {
			"Invalid:" + at + "object.describedObject.apiVersion"},
		source("Resource", "resource", to):                                         {"Required:" + at + "resource.name"},
		source("Resource", "resource", `"name":"example.com/gpu",`+to):             nil,
		source("ContainerResource", "containerResource", cpu):                      {"Required:" + at + "containerResource.container"},
		source("ContainerResource", "containerResource", `"container":"c",`+to):    {"Required:" + at + "containerResource.name"},
		source("ContainerResource", "containerResource", `"container":"C_1",`+cpu): {"Invalid:" + at + "containerResource.container"},
	}
	for name, want := range map[string][]string{
		"hugepages-2Mi": nil, "example.com/gpu": nil, "kubernetes.io/x": nil,
		"pods": {"Invalid:" + at + "containerResource.name"}, "requests.example.com/x": {"Invalid:" + at + "containerResource.name"},
		"a b": {"Invalid:" + at + "containerResource.name", "Invalid:" + at + "containerResource.name"},
	} {
		cases[source("ContainerResource", "containerResource", `"container":"c","name":"`+name+`",`+to)] = want
	}
	for name, c := range map[string]struct{ field, rest string }{"Object": {"object", seen}, "Pods": {"pods", to}, "External": {"external", to}} {
		in := at + c.field + ".metric.name"
		cases[source(name, c.field, c.rest)] = []string{"Required:" + in}
		cases[source(name, c.field, `"metric":{"name":"a/b"},`+c.rest)] = []string{"Invalid:" + in}
		cases[source(name, c.field, `"metric":{"name":".."},`+c.rest)] = []string{"Invalid:" + in}
		cases[source(name, c.field, `"metric":{"name":"a","selector":{"matchLabels":{"a b":"c"}}},`+c.rest)] = nil // left to the metrics server
	}
	k.Creates(t, cases)
}

// TestMetricTargets checks the targets that each type of metric allows.
func TestMetricTargets(t *testing.T) {
	k := autoscaler(t)
	kinds := []struct{ name, field, rest, missing, both string }{ // both is the field at which a second value is reported
		{"Object", "object", `"metric":{"name":"a"},"describedObject":{"kind":"x","name":"y"},`, "averageValue", ""},
		{"Pods", "pods", `"metric":{"name":"a"},`, "averageValue", ""},
		{"External", "external", `"metric":{"name":"a"},`, "averageValue", "value"},
		{"Resource", "resource", `"name":"cpu",`, "averageUtilization", ""},
		{"ContainerResource", "containerResource", `"name":"cpu","container":"c",`, "averageUtilization", ""},
	}
	cases := map[string][]string{}
	for _, m := range kinds {
		at := "spec.metrics[0]." + m.field + ".target."
		row := func(target string, want ...string) {
			for i := range want {
				reason, field, _ := strings.Cut(want[i], ":")
				want[i] = reason + ":" + at + field
			}
			cases[source(m.name, m.field, m.rest+`"target":{`+target+`}`)] = want
		}
		row(`"type":"AverageValue","averageValue":"1"`)
		row(`"type":"AverageValue"`, "Required:"+m.missing)
		row(`"type":"x","averageValue":"1"`, "Invalid:type")
		row(`"averageValue":"1"`, "Required:type", "Invalid:type")
		row(`"type":"AverageValue","averageValue":"0"`, "Invalid:averageValue")
		row(`"type":"AverageValue","averageValue":"-1m"`, "Invalid:averageValue")
		resource := m.missing == "averageUtilization"
		switch {
		case resource:
			row(`"type":"Utilization","averageUtilization":1`)
			row(`"type":"Utilization","averageUtilization":0`, "Invalid:averageUtilization")
			row(`"type":"Utilization","averageUtilization":-1`, "Invalid:averageUtilization")
			row(`"type":"Utilization","averageUtilization":1,"averageValue":"1"`, "Forbidden:averageValue")
			row(`"type":"Value","value":"1"`, "Required:averageUtilization")
			row(`"type":"AverageValue","averageValue":"1","value":"0"`, "Invalid:value")
		case m.name == "Pods":
			row(`"type":"Value","value":"1"`, "Required:averageValue")
			row(`"type":"AverageValue","averageValue":"1","value":"1"`)
		default:
			row(`"type":"Value","value":"1"`)
			row(`"type":"Value","value":"-1"`, "Invalid:value")
			row(`"type":"Utilization","averageUtilization":1`, "Required:averageValue")
			if m.both == "" {
				row(`"type":"Value","averageValue":"1","value":"1"`)
			} else {
				row(`"type":"Value","averageValue":"1","value":"1"`, "Forbidden:"+m.both)
			}
		}
	}
	k.Creates(t, cases)
}

func TestBehavior(t *testing.T) {
	k := autoscaler(t)
	const policy = `{"type":"Pods","value":1,"periodSeconds":1}`
	for _, side := range []string{"scaleUp", "scaleDown"} {
		at := "spec.behavior." + side + "."
		rules := func(fields string) string { return body(`,"behavior":{"` + side + `":{` + fields + `}}`) }
		policies := func(fields string) string { return rules(`"policies":[` + policy + `,{` + fields + `}]`) }
		k.Creates(t, map[string][]string{
			rules(``):                                  nil,
			rules(`"stabilizationWindowSeconds":0`):    nil,
			rules(`"stabilizationWindowSeconds":3600`): nil,
			rules(`"stabilizationWindowSeconds":3601`): {"Invalid:" + at + "stabilizationWindowSeconds"},
			rules(`"stabilizationWindowSeconds":-1`):   {"Invalid:" + at + "stabilizationWindowSeconds"},
			rules(`"selectPolicy":"Min"`):              nil,
			rules(`"selectPolicy":"Disabled"`):         nil,
			rules(`"selectPolicy":"min"`):              {"NotSupported:" + at + "selectPolicy"},
			rules(`"selectPolicy":""`):                 {"NotSupported:" + at + "selectPolicy"},
			rules(`"tolerance":"0"`):                   nil,
			rules(`"tolerance":"50m"`):                 nil,
			rules(`"tolerance":"-1m"`):                 {"Invalid:" + at + "tolerance"},
			rules(`"policies":null`):                   nil,
			rules(`"policies":[]`):                     nil,

			policies(`"type":"Percent","value":1000,"periodSeconds":1800`): nil,
			policies(`"type":"Percent","value":1,"periodSeconds":1801`):    {"Invalid:" + at + "policies[1].periodSeconds"},
			policies(`"type":"Percent","value":1,"periodSeconds":0`):       {"Invalid:" + at + "policies[1].periodSeconds"},
			policies(`"type":"Percent","value":1,"periodSeconds":-1`):      {"Invalid:" + at + "policies[1].periodSeconds"},
			policies(`"type":"Percent","value":0,"periodSeconds":1`):       {"Invalid:" + at + "policies[1].value"},
			policies(`"type":"Percent","value":-1,"periodSeconds":1`):      {"Invalid:" + at + "policies[1].value"},
			policies(`"type":"pods","value":1,"periodSeconds":1`):          {"NotSupported:" + at + "policies[1].type"},
			policies(``): {"NotSupported:" + at + "policies[1].type", "Invalid:" + at + "policies[1].value", "Invalid:" + at + "policies[1].periodSeconds"},
		})
	}
}

// TestUpdateKeepsStoredViolations checks that an update is not refused because of fields that were
// stored before a rule existed and that the update leaves alone.
func TestUpdateKeepsStoredViolations(t *testing.T) {
	k := autoscaler(t)
	old, faults := k.Create(t, `{"spec":{`+target+`,"maxReplicas":3}}`)
	require.Empty(t, faults)
	old.Set(int64(0), "spec", "minReplicas")
	old.Set("a/b/c", "spec", "scaleTargetRef", "apiVersion")
	_, faults = k.Update(t, old, `{"status":{"currentReplicas":2}}`, "status")
	require.Empty(t, faults)
	_, faults = k.Update(t, old, `{"status":{"currentReplicas":-1}}`, "status")
	require.Equal(t, []string{"Invalid:status.currentReplicas"}, faults)
	_, faults = k.Update(t, old, `{"spec":{"minReplicas":1}}`, "")
	require.Empty(t, faults, "a reference that stays")
	_, faults = k.Update(t, old, `{"spec":{"minReplicas":1,"scaleTargetRef":{"kind":"v"}}}`, "")
	require.Equal(t, []string{"Invalid:spec.scaleTargetRef.apiVersion"}, faults)
}
