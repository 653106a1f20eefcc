package server_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

const (
	coreEvents = "/api/v1/namespaces/default/events"
	viewEvents = "/apis/events.k8s.io/v1/namespaces/default/events"
)

func newEvent(name, note string) string {
	return `{"metadata":{"name":"` + name + `"},"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"example.com/c","reportingInstance":"i",
		"action":"Act","reason":"Why","type":"Normal","regarding":{"kind":"Pod","name":"p","namespace":"default"},"note":"` + note + `"}`
}

// TestEventsInTwoGroups: an event is one object in both groups, whoever wrote it.
func TestEventsInTwoGroups(t *testing.T) {
	a := inProcess(t, servertest.New(t))
	core, view := a.watch(coreEvents+"?watch=1"), a.watch(viewEvents+"?watch=1&fieldSelector=regarding.name%3Dp")
	defer core.close()
	defer view.close()
	made := a.must(201, "POST", viewEvents, newEvent("new", "text")).body
	a.must(201, "POST", coreEvents, `{"metadata":{"name":"old"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"message":"text","count":3,"source":{"component":"agent"}}`)
	for group, w := range map[string]*watching{"v1": core, "events.k8s.io/v1": view} {
		for _, name := range []string{"new", "old"} {
			e := w.next()
			assert.Equal(t, "ADDED "+name, e.String())
			assert.Equal(t, group, text(e.Object, "apiVersion"))
		}
	}

	shown := a.must(200, "GET", coreEvents+"/new", nil).body
	for _, field := range []string{"uid", "resourceVersion"} {
		assert.Equal(t, at(made, "metadata", field), at(shown, "metadata", field))
	}
	assert.Equal(t, "v1", shown["apiVersion"])
	assert.Equal(t, "text", shown["message"])
	assert.Equal(t, "example.com/c", shown["reportingComponent"])
	old := a.must(200, "GET", viewEvents+"/old", nil).body
	assert.Equal(t, []any{"text", 3.0, "agent"}, []any{old["note"], old["deprecatedCount"], at(old, "deprecatedSource", "component")})

	for path, want := range map[string]int{
		coreEvents + "?fieldSelector=involvedObject.name%3Dp":               200,
		coreEvents + "?fieldSelector=regarding.name%3Dp":                    400,
		viewEvents + "?fieldSelector=regarding.name%3Dp,type%21%3Dx":        200,
		viewEvents + "?fieldSelector=involvedObject.name%3Dp":               400,
		"/apis/events.k8s.io/v1/events?fieldSelector=metadata.name%21%3Dno": 200,
	} {
		got := a.must(want, "GET", path, nil)
		if want == 200 {
			assert.Equal(t, []string{"new", "old"}, got.names(), path)
		}
	}
	a.must(201, "POST", coreEvents, `{"metadata":{"name":"hosted"},"involvedObject":{"namespace":"default"},"source":{"host":"h"},"reportingComponent":"other"}`)
	for source, want := range map[string][]string{"agent": {"old"}, "example.com/c": {"new"}, "other": {"hosted"}, "": nil} {
		path := coreEvents + "?fieldSelector=source%3D" + source
		assert.ElementsMatch(t, want, a.must(200, "GET", path, nil).names(), source)
		w := a.watch(path + "&watch=1")
		for _, name := range want {
			assert.Equal(t, "ADDED "+name, w.next().String())
		}
		w.close()
	}
	a.must(200, "DELETE", coreEvents+"/hosted", nil)
	table := a.must(200, "GET", viewEvents, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").body
	assert.Equal(t, "pod/p", at(table, "rows").([]any)[0].(map[string]any)["cells"].([]any)[3])
	assert.Equal(t, `events.events.k8s.io "no" not found`, a.must(404, "GET", viewEvents+"/no", nil).body["message"])
	assert.Equal(t, `events "no" not found`, a.must(404, "GET", coreEvents+"/no", nil).body["message"])

	a.must(200, "DELETE", viewEvents+"/old", nil)
	a.must(404, "GET", coreEvents+"/old", nil)
	a.must(200, "DELETE", coreEvents, nil)
	assert.Empty(t, a.must(200, "GET", viewEvents, nil).names())
}

// TestEventsAreRuledByTheirGroup: who writes in the group of events is held to its
// rules, whatever the event is; the others are not.
func TestEventsAreRuledByTheirGroup(t *testing.T) {
	a := inProcess(t, servertest.New(t))
	a.must(201, "POST", viewEvents, newEvent("e", "text"))
	for _, c := range []struct {
		patch string
		core  int
		view  []string
	}{
		{`{"note":"other"}`, 200, []string{"message"}},
		{`{"type":"Foo","reason":"x"}`, 200, []string{"reason", "type"}},
		{`{"deprecatedCount":2,"count":2}`, 200, []string{"count"}},
		{`{"reportingController":"","reportingComponent":""}`, 422, []string{"reportingController", "reportingController", "reportingController", "reportingController"}},
		{`{"series":{"count":1,"lastObservedTime":"2026-01-01T00:00:00.000000Z"}}`, 200, []string{"series.count"}},
	} {
		got := a.must(422, "PATCH", viewEvents+"/e", c.patch)
		var fields []string
		for _, cause := range at(got.body, "details", "causes").([]any) {
			fields = append(fields, text(cause, "field"))
		}
		assert.Equal(t, c.view, fields, c.patch)
		a.must(c.core, "PATCH", coreEvents+"/e?dryRun=All", c.patch)
	}
	a.must(200, "PATCH", viewEvents+"/e", `{"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:00.000000Z"}}`)
	a.must(422, "POST", viewEvents, `{"metadata":{"name":"f"},"regarding":{"kind":"Pod","name":"p","namespace":"default"}}`)
	a.must(201, "POST", coreEvents, `{"metadata":{"name":"f"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"}}`)
}

// TestEventsAreAllowedByGroup: the right to the events of one group is none to those of
// the other.
func TestEventsAreAllowedByGroup(t *testing.T) {
	a := inProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, act auth.Action) (auth.Decision, string, error) {
			if act.Group == "events.k8s.io" {
				return auth.Allow, "", nil
			}
			return auth.Deny, "", nil
		})
	}))
	a.must(201, "POST", viewEvents, newEvent("e", "text"))
	a.must(403, "GET", coreEvents+"/e", nil)
}

// TestOwnersInAnotherGroup: an object goes with its owner also if it names that by the
// group of another version than the hub's.
func TestOwnersInAnotherGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t)
		a := inProcess(t, s)
		uid := text(a.must(201, "POST", viewEvents, newEvent("e", "text")).body, "metadata", "uid")
		a.must(201, "POST", configMaps, map[string]any{"metadata": map[string]any{"name": "owned", "ownerReferences": []any{
			map[string]any{"apiVersion": "events.k8s.io/v1", "kind": "Event", "name": "e", "uid": uid},
		}}})
		s.Settle()
		require.Len(t, a.must(200, "GET", configMaps, nil).names(), 1)
		a.must(200, "DELETE", coreEvents+"/e", nil)
		s.Settle()
		assert.Empty(t, a.must(200, "GET", configMaps, nil).names())
	})
}

// TestEventNamesArePathSegments covers recorders, which name an event after its object:
// names of roles and bindings contain colons, and a long name grows with the suffix. Only a
// create through v1 of the group of events requires a DNS subdomain.
func TestEventNamesArePathSegments(t *testing.T) {
	a := inProcess(t, servertest.New(t))
	event := func(metadata string) string {
		return `{"metadata":{` + metadata + `},"involvedObject":{"kind":"ClusterRole","name":"system:node"}}`
	}
	long := strings.Repeat("a", 254)
	for _, name := range []string{"system:node.17a", "Admin.17a", "a_b.17a", "a b", "é", long} {
		item := coreEvents + "/" + url.PathEscape(name)
		a.must(201, "POST", coreEvents, event(`"name":"`+name+`"`))
		a.must(200, "PATCH", item, `{"count":2}`)
		a.must(200, "PATCH", viewEvents+"/"+url.PathEscape(name)+"?dryRun=All", `{"metadata":{"labels":{"a":"b"}}}`)
		a.must(200, "DELETE", item, nil)
		got := a.must(422, "POST", viewEvents, newEvent(name, "text"))
		assert.Contains(t, got.causes(), "metadata.name FieldValueInvalid", name)
	}
	a.must(201, "POST", coreEvents, event(`"generateName":"system:node."`))
	for _, name := range []string{"a/b", "a%b", "..", "."} {
		a.must(422, "POST", coreEvents, event(`"name":"`+name+`"`))
	}
	a.must(422, "POST", viewEvents, strings.Replace(newEvent("e", ""), `"name":"e"`, `"generateName":"A:"`, 1))
}
