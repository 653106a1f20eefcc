package batch_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/batch"
	"orch.io/controlplane/registry/internal/kindtest"
)

// cron returns a CronJob with the given fields in its spec and in the spec of its Job template.
func cron(fields, job string) string {
	if job != "" {
		job += ","
	}
	return `{"spec":{` + fields + `,"jobTemplate":{"spec":{` + job + template + `}}}}`
}

func TestCronJob(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "CronJob")
	const hourly = `"schedule":"0 * * * *"`
	old, faults := k.Create(t, cron(hourly, ""))
	require.Empty(t, faults)
	s := old.Map("spec")
	require.Equal(t, "Allow 3 1 false", fmt.Sprint(s["concurrencyPolicy"], " ", s["successfulJobsHistoryLimit"], " ", s["failedJobsHistoryLimit"], " ", s["suspend"]))
	require.Len(t, old.Map("spec", "jobTemplate", "spec"), 1, "the jobs have the defaults, not the template")
	const job = "spec.jobTemplate.spec"
	k.Creates(t, map[string][]string{
		cron(`"schedule":""`, ""): {"Required:spec.schedule"},
		cron(hourly+`,"startingDeadlineSeconds":-1,"concurrencyPolicy":"x","successfulJobsHistoryLimit":-1,"failedJobsHistoryLimit":-1`, ""): {
			"Invalid:spec.startingDeadlineSeconds", "NotSupported:spec.concurrencyPolicy", "Invalid:spec.successfulJobsHistoryLimit", "Invalid:spec.failedJobsHistoryLimit"},
		cron(`"schedule":"TZ=UTC 0 * * * *"`, ""):                                                        {"Invalid:spec.schedule"},
		cron(`"schedule":"TZ=Nowhere 0 * * * *"`, ""):                                                    {"Invalid:spec.schedule", "Invalid:spec.schedule"},
		cron(hourly, `"manualSelector":true,"selector":{"matchLabels":{"a":"b"}}`):                       {"Invalid:" + job + ".selector", "NotSupported:" + job + ".manualSelector"},
		cron(hourly, `"completions":-1,"completionMode":"Indexed"`):                                      {"Invalid:" + job + ".completions"},
		cron(hourly, `"completionMode":"Indexed"`):                                                       {"Required:" + job + ".completions"},
		strings.Replace(cron(hourly, ""), "{", `{"metadata":{"name":"`+strings.Repeat("x", 53)+`"},`, 1): {"Invalid:metadata.name"},
	})
	k.Updates(t, old, map[string][]string{
		`{"spec":{"suspend":true,"timeZone":"UTC"}}`: nil,
		`{"spec":{"timeZone":"Nowhere"}}`:            {"Invalid:spec.timeZone"},
	})
	require.Equal(t, "False", k.Cell(t, old, "Suspend"))
	require.Equal(t, "<none>", k.Cell(t, old, "Timezone"))
	require.Equal(t, "<none>", k.Cell(t, old, "Last Schedule"))
	require.Equal(t, "<none>", k.Cell(t, old, "Selector"))
	require.Equal(t, int64(0), k.Cell(t, old, "Active"))
}

func TestSchedules(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, batch.Kinds(), "CronJob")
	for _, s := range []string{"*/5 * * * *", "0 0 31 2 *", "@hourly", "@every 5m", "* * * JAN sun-sat", "1,,2 * ? * *", "1-5/2 * * * *", "  1 2 3 4 5 "} {
		require.Empty(t, k.Texts(t, nil, cron(`"schedule":`+strconv.Quote(s), ""), ""), s)
	}
	for s, want := range map[string]string{
		"* * * *":       "expected exactly 5 fields, found 4: [* * * *]",
		"60 * * * *":    "end of range (60) above maximum (59): 60",
		"* * 0 * *":     "beginning of range (0) below minimum (1): 0",
		"5-1 * * * *":   "beginning of range (5) beyond end of range (1): 5-1",
		"*/0 * * * *":   "step of range should be a positive number: */0",
		"*/-1 * * * *":  "negative number (-1) not allowed: -1",
		"1-2-3 * * * *": "too many hyphens: 1-2-3",
		"1/2/3 * * * *": "too many slashes: 1/2/3",
		"* * * Foo *":   `failed to parse int from Foo: strconv.Atoi: parsing "Foo": invalid syntax`,
		"@reboot":       "unrecognized descriptor: @reboot",
		"@every x":      `failed to parse duration @every x: time: invalid duration "x"`,
	} {
		require.Equal(t, []string{"spec.schedule: Invalid value: " + strconv.Quote(s) + ": " + want}, k.Texts(t, nil, cron(`"schedule":`+strconv.Quote(s), ""), ""))
	}
	for zone, want := range map[string]int{"UTC": 0, "America/New_York": 0, "": 1, "Local": 1, "LOCAL": 2, "utc": 1, "../UTC": 1, "America//New_York": 1} {
		require.Len(t, k.Texts(t, nil, cron(`"schedule":"@daily","timeZone":`+strconv.Quote(zone), ""), ""), want, zone)
	}
}
