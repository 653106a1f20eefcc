package core_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/internal/kindtest"
)

const (
	view      = "!" // prefix of causes that only the events group has
	eventTime = `"eventTime":"2026-01-02T03:04:05.000006Z"`
	viewGroup = "events.k8s.io/v1"
)

// goodEvent returns an event that both groups accept, with fields replaced; null removes a field.
func goodEvent(t *testing.T, fields string) string {
	t.Helper()
	all := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(`{`+eventTime+`,"involvedObject":{"kind":"Pod","name":"p","namespace":"ns"},
		"reportingComponent":"example.com/c","reportingInstance":"i","action":"A","reason":"R","type":"Normal","message":"m"}`), &all))
	require.NoError(t, json.Unmarshal([]byte(`{`+fields+`}`), &all))
	body, err := json.Marshal(all)
	require.NoError(t, err)
	return string(body)
}

// written returns the causes of a write through a group, in the form reason:field.
func written(t *testing.T, k kindtest.Kind, apiVersion, body string, old *meta.Object) []string {
	t.Helper()
	w := k.NewChange(t.Context(), k.Object(t, body), old, "")
	w.Version = k.ByAPIVersion(apiVersion).GroupVersion()
	require.NoError(t, k.Defaults(w))
	require.NoError(t, k.PrepareForWrite(w))
	causes, err := k.ValidateWrite(w)
	require.NoError(t, err)
	out := []string{}
	for _, c := range causes {
		out = append(out, strings.TrimPrefix(string(c.Reason), "FieldValue")+":"+c.Field)
	}
	return out
}

// inBothGroups creates an event through each group.
func inBothGroups(t *testing.T, k kindtest.Kind, fields string, want []string) {
	t.Helper()
	for apiVersion, controller := range map[string]string{"v1": "reportingComponent", viewGroup: "reportingController"} {
		all := []string{}
		for _, c := range want {
			if c == view && apiVersion == "v1" {
				break
			}
			if c != view {
				all = append(all, strings.Replace(c, ":reportingC", ":"+controller, 1))
			}
		}
		assert.ElementsMatch(t, all, written(t, k, apiVersion, goodEvent(t, fields), nil), apiVersion+" "+fields)
	}
}

// TestNewEvents checks that an event with an eventTime needs a reporter, and the stricter rules of the
// events group.
func TestNewEvents(t *testing.T) {
	k := kind(t, "Event")
	long := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	for fields, want := range map[string][]string{
		``:                               nil,
		`"type":"Warning"`:               nil,
		`"type":"Foo"`:                   {view, "Invalid:type"},
		`"type":null`:                    {view, "Invalid:type"},
		`"eventTime":null`:               {view, "Required:eventTime"},
		`"involvedObject":{}`:            {"Invalid:involvedObject.namespace"},
		`"related":{"namespace":"else"}`: nil,

		`"involvedObject":{"namespace":"else"}`:                  nil,
		`"involvedObject":{"namespace":"else"},"eventTime":null`: {"Invalid:involvedObject.namespace", view, "Required:eventTime"},

		`"reportingComponent":null`:                              {"Required:reportingC", "Invalid:reportingC", "Invalid:reportingC"},
		`"reportingComponent":"a b"`:                             {"Invalid:reportingC"},
		`"reportingComponent":"a/b/c"`:                           {"Invalid:reportingC"},
		`"reportingComponent":"plain"`:                           nil,
		`"reportingComponent":` + long(63):                       nil,
		`"reportingComponent":` + long(64):                       {"Invalid:reportingC"},
		`"reportingComponent":"Example.com/c"`:                   {"Invalid:reportingC"},
		`"reportingComponent":null,"eventTime":null,"type":null`: {view, "Required:eventTime", "Invalid:type"},

		`"reportingInstance":null`:                     {"Required:reportingInstance"},
		`"reportingInstance":` + long(128):             nil,
		`"reportingInstance":` + long(129):             {"Invalid:reportingInstance"},
		`"action":null`:                                {"Required:action"},
		`"action":` + long(128):                        nil,
		`"action":` + long(129):                        {"Invalid:action"},
		`"reason":null`:                                {"Required:reason"},
		`"reason":` + long(128):                        nil,
		`"reason":` + long(129):                        {"Invalid:reason"},
		`"message":null`:                               nil,
		`"message":` + long(1024):                      nil,
		`"message":` + long(1025):                      {"Invalid:message"},
		`"message":"` + strings.Repeat("é", 513) + `"`: {"Invalid:message"}, // the limit is in bytes
	} {
		inBothGroups(t, k, fields, want)
	}
}

// TestNewEventsSeries checks the rules of the events group for the series and the deprecated fields.
func TestNewEventsSeries(t *testing.T) {
	k := kind(t, "Event")
	for fields, want := range map[string][]string{
		`"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000000Z"}`:  nil,
		`"series":{"count":1,"lastObservedTime":"2026-01-02T03:04:05.000000Z"}`:  {view, "Invalid:series.count"},
		`"series":{"count":-1,"lastObservedTime":"2026-01-02T03:04:05.000000Z"}`: {view, "Invalid:series.count"},
		`"series":{"count":2}`: {view, "Required:series.lastObservedTime"},
		`"series":{}`:          {view, "Invalid:series.count", "Required:series.lastObservedTime"},

		`"firstTimestamp":"2026-01-02T03:04:05Z"`: {view, "Invalid:firstTimestamp"},
		`"lastTimestamp":"2026-01-02T03:04:05Z"`:  {view, "Invalid:lastTimestamp"},
		`"count":1`:                               {view, "Invalid:count"},
		`"count":-1`:                              {view, "Invalid:count"},
		`"source":{"component":"c"}`:              {view, "Invalid:source"},
		`"source":{"host":"h"}`:                   {view, "Invalid:source"},
		`"source":{}`:                             nil,
	} {
		inBothGroups(t, k, fields, want)
	}
}

// TestEventsOfNoNamespace checks that events about cluster-scoped objects are in the default namespace,
// and new ones optionally in the system namespace.
func TestEventsOfNoNamespace(t *testing.T) {
	k := kind(t, "Event")
	bad := []string{"Invalid:involvedObject.namespace"}
	for namespace, c := range map[string]struct{ now, before []string }{
		"default": {[]string{}, []string{}}, "kube-system": {[]string{}, bad}, "ns": {bad, bad},
	} {
		in := `"metadata":{"namespace":"` + namespace + `"},"involvedObject":{"kind":"Node","name":"n"}`
		assert.Equal(t, c.now, written(t, k, viewGroup, goodEvent(t, in), nil), namespace)
		assert.Equal(t, c.before, written(t, k, "v1", goodEvent(t, in+`,"eventTime":null`), nil), namespace)
	}
}

// TestEventsAreImmutableInEventsGroup checks that the events group changes only the series of an event,
// and the core group any field.
func TestEventsAreImmutableInEventsGroup(t *testing.T) {
	k := kind(t, "Event")
	const series = `"series":{"count":%,"lastObservedTime":"2026-01-02T03:04:05.000000Z"}`
	old := k.Object(t, goodEvent(t, ``))
	for fields, want := range map[string][]string{
		``:                                               {},
		`"metadata":{"labels":{"a":"b"}}`:                {},
		strings.Replace(series, "%", "2", 1):             {},
		strings.Replace(series, "%", "1", 1):             {"Invalid:series.count"},
		`"series":{"count":2}`:                           {"Required:series.lastObservedTime"},
		`"involvedObject":{"namespace":"ns"}`:            {"Invalid:involvedObject"},
		`"related":{"name":"r"}`:                         {"Invalid:related"},
		`"reason":"S"`:                                   {"Invalid:reason", "Invalid:reason"}, // reported twice
		`"message":"n"`:                                  {"Invalid:message"},
		`"message":null`:                                 {"Invalid:message"},
		`"source":{"component":"c"}`:                     {"Invalid:source"},
		`"firstTimestamp":"2026-01-02T03:04:05Z"`:        {"Invalid:firstTimestamp"},
		`"lastTimestamp":"2026-01-02T03:04:05Z"`:         {"Invalid:lastTimestamp"},
		`"count":1`:                                      {"Invalid:count"},
		`"type":"Warning"`:                               {"Invalid:type"},
		`"type":"Foo"`:                                   {"Invalid:type"},
		`"action":"B"`:                                   {"Invalid:action"},
		`"action":null`:                                  {"Required:action", "Invalid:action"},
		`"reportingComponent":"d"`:                       {"Invalid:reportingController"},
		`"reportingInstance":"j"`:                        {"Invalid:reportingInstance"},
		`"eventTime":"2026-01-02T03:04:05.000007Z"`:      {"Invalid:eventTime"},
		`"eventTime":"2026-01-02T04:04:05.000006+01:00"`: {},
		`"eventTime":null`:                               {"Invalid:eventTime"},
	} {
		assert.ElementsMatch(t, want, written(t, k, viewGroup, goodEvent(t, fields), old), fields)
		if !strings.Contains(fields, "null") {
			assert.Empty(t, written(t, k, "v1", goodEvent(t, fields), old), fields)
		}
	}

	// a violation that the core group accepted may stay
	was := `"eventTime":null,"reportingComponent":null,"action":null,"type":"Foo","count":3,"source":{"component":"c"},` + strings.Replace(series, "%", "1", 1)
	old = k.Object(t, goodEvent(t, was))
	for fields, want := range map[string][]string{
		``:                                   {},
		`"metadata":{"labels":{"a":"b"}}`:    {},
		`"series":null`:                      {},
		strings.Replace(series, "%", "2", 1): {},
		strings.Replace(series, "%", "0", 1): {"Invalid:series.count"},
		`"count":4`:                          {"Invalid:count"},
	} {
		body := was
		if fields != "" {
			body += "," + fields // the last field of a name wins
		}
		assert.ElementsMatch(t, want, written(t, k, viewGroup, goodEvent(t, body), old), fields)
	}
}

// TestEventsInBothForms checks that each field of an event has a field in the other form.
func TestEventsInBothForms(t *testing.T) {
	k := kind(t, "Event")
	const (
		alike = eventTime + `,"series":{"count":2,"lastObservedTime":"2026-01-02T03:04:05.000000Z"},"action":"A","reason":"R","type":"Normal","related":{"name":"r"},"reportingInstance":"i"`
		core  = `{` + alike + `,"reportingComponent":"c","involvedObject":{"name":"p"},"message":"m","source":{"component":"s","host":"h"},
			"firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":"2026-01-02T03:04:06Z","count":4}`
		shown = `{` + alike + `,"reportingController":"c","regarding":{"name":"p"},"note":"m","deprecatedSource":{"component":"s","host":"h"},
			"deprecatedFirstTimestamp":"2026-01-02T03:04:05Z","deprecatedLastTimestamp":"2026-01-02T03:04:06Z","deprecatedCount":4}`
	)
	other := kindtest.Kind{Version: k.ByAPIVersion(viewGroup)}
	for _, c := range []struct {
		from, to   kindtest.Kind
		body, want string
	}{{k, other, core, shown}, {other, k, shown, core}, {k, other, `{}`, `{}`}, {other, k, `{}`, `{}`}} {
		got, err := c.to.Convert(t.Context(), c.from.Object(t, c.body))
		require.NoError(t, err)
		require.Equal(t, c.to.Object(t, c.want).Tree(), got.Tree(), c.body)
	}
}
