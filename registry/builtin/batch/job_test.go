package batch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/batch"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range batch.Kinds() {
		fmt.Println(k)
	}
	// Output:
	// kind Job.batch (Go type batch.Job)
	// kind CronJob.batch (Go type batch.CronJob)
}

const (
	pod      = `{"restartPolicy":"Never","containers":[{"name":"c","image":"example.com/app:1"}]}`
	template = `"template":{"spec":` + pod + `}`
	byIndex  = `"completionMode":"Indexed","completions":5`
	newUID   = `"uid":"u-1"`
)

// body returns a Job with the given fields in its spec, besides the template.
func body(fields string) string {
	if fields != "" {
		fields += ","
	}
	return `{"metadata":{"name":"a",` + newUID + `},"spec":{` + fields + template + `}}`
}

func rule(text string) string { return body(`"podFailurePolicy":{"rules":[` + text + `]}`) }

func success(rules string) string {
	return body(byIndex + `,"successPolicy":{"rules":[` + rules + `]}`)
}

func TestJobDefaults(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "Job")
	obj, faults := k.Create(t, body(""))
	require.Empty(t, faults)
	const uid, name = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
	labels := map[string]string{uid: "u-1", "controller-uid": "u-1", name: "a", "job-name": "a"}
	require.Equal(t, labels, obj.Labels())
	require.Equal(t, "u-1", obj.String("spec", "template", "metadata", "labels", uid))
	require.Equal(t, map[string]any{uid: "u-1"}, obj.Map("spec", "selector", "matchLabels"))
	for field, want := range map[string]any{"parallelism": int64(1), "completions": int64(1), "backoffLimit": int64(6), "completionMode": "NonIndexed",
		"suspend": false, "manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed"} {
		require.Equal(t, want, obj.Map("spec")[field], field)
	}
	for fields, want := range map[string]string{
		`"parallelism":2`:                     "2 <nil> 6 TerminatingOrFailed",
		byIndex + `,"backoffLimitPerIndex":1`: "1 5 2147483647 TerminatingOrFailed",
		`"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"Ready"}]}]}`: "1 1 6 Failed",
	} {
		obj, faults := k.Create(t, body(fields))
		require.Empty(t, faults, fields)
		s := obj.Map("spec")
		require.Equal(t, want, fmt.Sprint(s["parallelism"], " ", s["completions"], " ", s["backoffLimit"], " ", s["podReplacementPolicy"]))
	}
	obj, _ = k.Create(t, `{"metadata":{"labels":{"own":"1"}},"spec":{"manualSelector":true,"selector":{"matchLabels":{"x":"y"}},"template":{"metadata":{"labels":{"x":"y"}},"spec":`+pod+`}}}`)
	require.Equal(t, map[string]string{"own": "1"}, obj.Labels())
	require.Equal(t, map[string]any{"x": "y"}, obj.Map("spec", "selector", "matchLabels"))
}

func TestJobRules(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "Job")
	k.Creates(t, map[string][]string{
		body(`"parallelism":-1,"completions":-1,"activeDeadlineSeconds":-1,"backoffLimit":-1,"ttlSecondsAfterFinished":-1`): {"Invalid:spec.parallelism",
			"Invalid:spec.completions", "Invalid:spec.activeDeadlineSeconds", "Invalid:spec.backoffLimit", "Invalid:spec.ttlSecondsAfterFinished"},
		body(`"completionMode":"Random"`):                                {"NotSupported:spec.completionMode"},
		body(`"completionMode":"Indexed","parallelism":2`):               {"Required:spec.completions"},
		body(byIndex + `,"parallelism":100001`):                          {"Invalid:spec.parallelism"},
		body(`"backoffLimitPerIndex":1`):                                 {"Invalid:spec.backoffLimitPerIndex"},
		body(`"maxFailedIndexes":1`):                                     {"Required:spec.backoffLimitPerIndex", "Invalid:spec.maxFailedIndexes"},
		body(byIndex + `,"backoffLimitPerIndex":1,"maxFailedIndexes":6`): {"Invalid:spec.maxFailedIndexes"},
		body(`"completionMode":"Indexed","completions":100001,"backoffLimitPerIndex":1,"parallelism":10001`): {"Required:spec.maxFailedIndexes", "Invalid:spec.parallelism"},
		body(`"manualSelector":true`):                                                                       {"Required:spec.selector", "Invalid:spec.template.metadata.labels"},
		body(`"selector":{"matchLabels":{"a":"b"}}`):                                                        {"Invalid:spec.selector", "Invalid:spec.template.metadata.labels"},
		body(`"selector":{"matchExpressions":[{"key":"a","operator":"Foo"}]}`):                              {"Invalid:spec.selector.matchExpressions[0].operator"},
		body(`"managedBy":""`):                                                                              {"Required:spec.managedBy"},
		body(`"managedBy":"a"`):                                                                             {"Invalid:spec.managedBy"},
		body(`"managedBy":"example.com/x"`):                                                                 nil,
		body(`"managedBy":"example.com/` + strings.Repeat("x", 60) + `"`):                                   {"TooLong:spec.managedBy"},
		body(`"podReplacementPolicy":"x"`):                                                                  {"NotSupported:spec.podReplacementPolicy"},
		`{"spec":{"template":{"metadata":{"labels":{"job-name":"other"}},"spec":` + pod + `}}}`:             {"Invalid:spec.template.metadata.labels[job-name]"},
		`{"metadata":{"name":"x.y"},"spec":{` + byIndex + `,` + template + `}}`:                             {"Invalid:metadata.name"},
		`{"spec":{"template":{"spec":{"restartPolicy":"Always","containers":[{"name":"c","image":"i"}]}}}}`: {"Required:spec.template.spec.restartPolicy"},
		`{"spec":{}}`: {"Required:spec.template.spec.containers", "Required:spec.template.spec.restartPolicy"},
	})
}

func TestJobPolicies(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "Job")
	const at = "spec.podFailurePolicy.rules[0]"
	k.Creates(t, map[string][]string{
		rule(`{"action":"FailJob","onExitCodes":{"operator":"In","values":[1,2],"containerName":"c"}}`): nil,
		rule(`{"action":"FailJob"}`):                                                                                                           {"Invalid:" + at},
		rule(`{"action":"","onExitCodes":{"operator":"","values":[1]}}`):                                                                       {"Required:" + at + ".action", "Required:" + at + ".onExitCodes.operator"},
		rule(`{"action":"x","onExitCodes":{"operator":"x","values":[1]}}`):                                                                     {"NotSupported:" + at + ".action", "NotSupported:" + at + ".onExitCodes.operator"},
		rule(`{"action":"FailIndex","onPodConditions":[{"type":"a b","status":"x"}]}`):                                                         {"Invalid:" + at + ".action", "Invalid:" + at + ".onPodConditions[0].type", "NotSupported:" + at + ".onPodConditions[0].status"},
		rule(`{"action":"Ignore","onExitCodes":{"operator":"In","values":[1]},"onPodConditions":[{"type":"Ready"}]}`):                          {"Invalid:" + at},
		rule(`{"action":"Ignore","onExitCodes":{"operator":"In","values":[]}}`):                                                                {"Invalid:" + at + ".onExitCodes.values"},
		rule(`{"action":"Ignore","onExitCodes":{"operator":"In","values":[0,3,2,2],"containerName":"z"}}`):                                     {"Invalid:" + at + ".onExitCodes.containerName", "Invalid:" + at + ".onExitCodes.values[0]", "Duplicate:" + at + ".onExitCodes.values[3]", "Invalid:" + at + ".onExitCodes.values"},
		body(`"podReplacementPolicy":"TerminatingOrFailed","podFailurePolicy":{"rules":[]}`):                                                   {"NotSupported:spec.podReplacementPolicy"},
		`{"spec":{"podFailurePolicy":{"rules":[]},"template":{"spec":{"restartPolicy":"OnFailure","containers":[{"name":"c","image":"i"}]}}}}`: {"Invalid:spec.template.spec.restartPolicy"},

		success(``):   {"Required:spec.successPolicy.rules"},
		success(`{}`): {"Required:spec.successPolicy.rules[0]"},
		success(`{"succeededIndexes":"0,2-3","succeededCount":3}`): nil,
		success(`{"succeededIndexes":"0,2-3","succeededCount":4}`): {"Invalid:spec.successPolicy.rules[0].succeededCount"},
		success(`{"succeededCount":6}`):                            {"Invalid:spec.successPolicy.rules[0].succeededCount"},
		success(`{"succeededIndexes":"3-1"}`):                      {"Invalid:spec.successPolicy.rules[0].succeededIndexes"},
		success(`{"succeededIndexes":"5"}`):                        {"Invalid:spec.successPolicy.rules[0].succeededIndexes"},
		success(`{"succeededIndexes":"0-1-2"}`):                    {"Invalid:spec.successPolicy.rules[0].succeededIndexes"},
		body(`"successPolicy":{"rules":[]}`):                       {"Invalid:spec.successPolicy"},
	})
}

func TestJobUpdates(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "Job")
	old, _ := k.Create(t, body(""))
	k.Updates(t, old, map[string][]string{
		`{"spec":{"parallelism":3,"suspend":true,"backoffLimit":9}}`:                 nil,
		`{"spec":{"parallelism":-3}}`:                                                {"Invalid:spec.parallelism", "Invalid:spec.parallelism"},
		`{"spec":{"completions":3}}`:                                                 {"Invalid:spec.completions"},
		`{"spec":{"completionMode":"Indexed"}}`:                                      {"Invalid:spec.completionMode"},
		`{"spec":{"managedBy":"a.b/c"}}`:                                             {"Invalid:spec.managedBy"},
		`{"spec":{"template":{"spec":{"nodeSelector":{"a":"b"}}}}}`:                  {"Invalid:spec.template"},
		`{"spec":{"template":{"metadata":{"labels":{"job-name":null}}}}}`:            {"Required:spec.template.metadata.labels[job-name]", "Invalid:spec.template"},
		`{"spec":{"podFailurePolicy":{"rules":[]},"podReplacementPolicy":"Failed"}}`: {"Invalid:spec.podFailurePolicy"},
	})
	idle, _ := k.Create(t, body(`"suspend":true`))
	k.Updates(t, idle, map[string][]string{
		`{"spec":{"template":{"metadata":{"annotations":{"a":"b"}},"spec":{"nodeSelector":{"a":"b"},"affinity":{"nodeAffinity":{}}}}}}`: nil,
		`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"example.com/app:1","resources":{"requests":{"cpu":"1"}}}]}}}}`: nil,
		`{"spec":{"template":{"spec":{"priorityClassName":"x"}}}}`:                                                                      {"Invalid:spec.template.spec"},
	})
	parts, _ := k.Create(t, body(byIndex+`,"parallelism":5`))
	k.Updates(t, parts, map[string][]string{
		`{"spec":{"completions":3}}`:                 {"Invalid:spec.completions"},
		`{"spec":{"completions":3,"parallelism":3}}`: nil,
		`{"spec":{"completions":null}}`:              {"Required:spec.completions", "Required:spec.completions"},
	})
}

func TestJobStatus(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "Job")
	new, _ := k.Create(t, body(""))
	const began = `"startTime":"2024-01-01T00:00:00Z"`
	on := func(types ...string) string {
		for i, c := range types {
			types[i] = `{"type":"` + c + `","status":"True"}`
		}
		return `"conditions":[` + strings.Join(types, ",") + `]`
	}
	status := func(fields ...string) string { return `{"status":{` + strings.Join(fields, ",") + `}}` }
	done, faults := k.Update(t, new, status(began, `"completionTime":"2024-01-02T00:00:00Z"`, `"succeeded":1`, on("Complete", "SuccessCriteriaMet")), "status")
	require.Empty(t, faults)
	require.Equal(t, "Complete 1/1 24h", fmt.Sprint(k.Cell(t, done, "Status"), " ", k.Cell(t, done, "Completions"), " ", k.Cell(t, done, "Duration")))
	for patch, want := range map[string][]string{
		status(`"active":-1`):                             {"Invalid:status.active"},
		status(`"ready":2`):                               {"Invalid:status.ready"},
		status(`"completedIndexes":"0"`):                  {"Invalid:status.completedIndexes"},
		status(`"failedIndexes":"0"`):                     {"Invalid:status.failedIndexes"},
		status(`"completionTime":"2024-01-01T00:00:00Z"`): {"Invalid:status.completionTime"},
		status(began, on("Complete")):                     {"Required:status.completionTime", "Invalid:status.conditions"},
		status(`"active":1`, `"terminating":1`, `"uncountedTerminatedPods":{"failed":["a"]}`, on("Failed", "FailureTarget")): {"Invalid:status.active", "Required:status.startTime",
			"Invalid:status.terminating", "Invalid:status.uncountedTerminatedPods"},
		status(`"uncountedTerminatedPods":{"succeeded":["a",""],"failed":["a"]}`): {"Invalid:status.uncountedTerminatedPods.succeeded[1]", "Duplicate:status.uncountedTerminatedPods.failed[0]"},
		status(on("SuccessCriteriaMet", "FailureTarget")):                         {"Invalid:status.conditions"},
	} {
		_, got := k.Update(t, new, patch, "status")
		require.ElementsMatch(t, want, got, patch)
	}
	for patch, want := range map[string][]string{
		status(`"succeeded":0`):                           {"Invalid:status.succeeded"},
		status(`"startTime":"2024-01-01T12:00:00Z"`):      {"Invalid:status.startTime"},
		status(`"completionTime":"2024-01-03T00:00:00Z"`): {"Invalid:status.completionTime"},
		status(`"completionTime":null`, on()):             {"Invalid:status.conditions", "Invalid:status.conditions"},
	} {
		_, got := k.Update(t, done, patch, "status")
		require.ElementsMatch(t, want, got, patch)
	}
	parts, _ := k.Create(t, body(byIndex+`,"backoffLimitPerIndex":1`))
	for patch, want := range map[string][]string{
		status(`"completedIndexes":"0,2-3"`, `"failedIndexes":"1"`):   nil,
		status(`"completedIndexes":"0,2-3"`, `"failedIndexes":"1,3"`): {"Invalid:status.failedIndexes"},
		status(`"completedIndexes":"9"`, `"failedIndexes":"x"`):       {"Invalid:status.completedIndexes", "Invalid:status.failedIndexes"},
	} {
		_, got := k.Update(t, parts, patch, "status")
		require.ElementsMatch(t, want, got, patch)
	}
}

func TestJobColumns(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "Job")
	obj, _ := k.Create(t, body(`"parallelism":3`))
	var got []any
	for _, c := range k.Columns {
		if c.Name != "Age" {
			got = append(got, c.Cell(obj))
		}
	}
	require.Equal(t, []any{"a", "Running", "0/1 of 3", "", "c", "example.com/app:1", "batch.kubernetes.io/controller-uid=u-1"}, got)
	for _, c := range []string{"Suspended", "FailureTarget", "Failed"} {
		obj.Set([]any{map[string]any{"type": c, "status": "True"}}, "status", "conditions")
		require.Equal(t, c, k.Cell(t, obj, "Status"))
	}
}

// TestShrunkJob checks that an Indexed Job that has become smaller may drop the results of the removed
// indexes.
func TestShrunkJob(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "Job")
	large, _ := k.Create(t, body(byIndex+`,"parallelism":5,"backoffLimitPerIndex":1`))
	large, faults := k.Update(t, large, `{"status":{"startTime":"2024-01-01T00:00:00Z","succeeded":3,"completedIndexes":"0,2-3","failedIndexes":"4"}}`, "status")
	require.Empty(t, faults)
	small, faults := k.Update(t, large, `{"spec":{"completions":3,"parallelism":3}}`, "")
	require.Empty(t, faults)
	for patch, want := range map[string][]string{
		`{"succeeded":2,"completedIndexes":"0,2"}`:   {},
		`{"completedIndexes":"0,3"}`:                 {"Invalid:status.completedIndexes"},
		`{"completedIndexes":"0","succeeded":-1}`:    {"Invalid:status.succeeded"},
		`{"failedIndexes":"3"}`:                      {"Invalid:status.failedIndexes"},
		`{"failedIndexes":"2","succeeded":1}`:        {},
		`{"failedIndexes":"1","active":1,"ready":2}`: {"Invalid:status.ready"},
	} {
		_, got := k.Update(t, small, `{"status":`+patch+`}`, "status")
		require.Equal(t, want, got, patch)
	}
	narrow, _ := k.Update(t, large, `{"spec":{"parallelism":2}}`, "")
	_, got := k.Update(t, narrow, `{"status":{"succeeded":2}}`, "status")
	require.Equal(t, []string{"Invalid:status.succeeded"}, got, "its completions are what they were")
}

// TestStoredTemplates checks that a template that was stored before a rule existed prevents neither
// suspension nor changes of labels.
func TestStoredTemplates(t *testing.T) {
	for kind, c := range map[string]struct {
		body string
		path []string
	}{
		"Job":     {body(""), []string{"spec", "template", "spec", "containers"}},
		"CronJob": {cron(`"schedule":"@daily"`, ""), []string{"spec", "jobTemplate", "spec", "template", "spec", "containers"}},
	} {
		k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), kind)
		old, faults := k.Create(t, c.body)
		require.Empty(t, faults)
		old.Objects(c.path...)[0].Set("Not A Label", "name")
		old.Objects(c.path...)[0].Set([]any{map[string]any{"name": "gone", "mountPath": "/x"}}, "volumeMounts")
		k.Updates(t, old, map[string][]string{`{"metadata":{"labels":{"a":"b"}},"spec":{"suspend":true}}`: nil})
	}
}
