package verbs_test

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
	"orch.io/controlplane/server/internal/apitest"
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

// TestEventIsServedInBothGroups: an event is the same object in both groups, whichever group it was written through.
func TestEventIsServedInBothGroups(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	core, view := a.Watch(coreEvents+"?watch=1"), a.Watch(viewEvents+"?watch=1&fieldSelector=regarding.name%3Dp")
	defer core.Close()
	defer view.Close()
	made := a.Must(201, "POST", viewEvents, newEvent("new", "text")).Body
	a.Must(201, "POST", coreEvents, `{"metadata":{"name":"old"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"},"message":"text","count":3,"source":{"component":"agent"}}`)
	for group, w := range map[string]*apitest.Watcher{"v1": core, "events.k8s.io/v1": view} {
		for _, name := range []string{"new", "old"} {
			e := w.Next()
			assert.Equal(t, "ADDED "+name, e.String())
			assert.Equal(t, group, apitest.NestedString(e.Object, "apiVersion"))
		}
	}

	shown := a.Must(200, "GET", coreEvents+"/new", nil).Body
	for _, field := range []string{"uid", "resourceVersion"} {
		assert.Equal(t, apitest.Nested(made, "metadata", field), apitest.Nested(shown, "metadata", field))
	}
	assert.Equal(t, "v1", shown["apiVersion"])
	assert.Equal(t, "text", shown["message"])
	assert.Equal(t, "example.com/c", shown["reportingComponent"])
	old := a.Must(200, "GET", viewEvents+"/old", nil).Body
	assert.Equal(t, []any{"text", 3.0, "agent"}, []any{old["note"], old["deprecatedCount"], apitest.Nested(old, "deprecatedSource", "component")})

	for path, want := range map[string]int{
		coreEvents + "?fieldSelector=involvedObject.name%3Dp":               200,
		coreEvents + "?fieldSelector=regarding.name%3Dp":                    400,
		viewEvents + "?fieldSelector=regarding.name%3Dp,type%21%3Dx":        200,
		viewEvents + "?fieldSelector=involvedObject.name%3Dp":               400,
		"/apis/events.k8s.io/v1/events?fieldSelector=metadata.name%21%3Dno": 200,
	} {
		got := a.Must(want, "GET", path, nil)
		if want == 200 {
			assert.Equal(t, []string{"new", "old"}, got.Names(), path)
		}
	}
	a.Must(201, "POST", coreEvents, `{"metadata":{"name":"hosted"},"involvedObject":{"namespace":"default"},"source":{"host":"h"},"reportingComponent":"other"}`)
	for source, want := range map[string][]string{"agent": {"old"}, "example.com/c": {"new"}, "other": {"hosted"}, "": nil} {
		path := coreEvents + "?fieldSelector=source%3D" + source
		assert.ElementsMatch(t, want, a.Must(200, "GET", path, nil).Names(), source)
		w := a.Watch(path + "&watch=1")
		for _, name := range want {
			assert.Equal(t, "ADDED "+name, w.Next().String())
		}
		w.Close()
	}
	a.Must(200, "DELETE", coreEvents+"/hosted", nil)
	table := a.Must(200, "GET", viewEvents, nil, "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Body
	assert.Equal(t, "pod/p", apitest.Nested(table, "rows").([]any)[0].(map[string]any)["cells"].([]any)[3])
	assert.Equal(t, `events.events.k8s.io "no" not found`, a.Must(404, "GET", viewEvents+"/no", nil).Body["message"])
	assert.Equal(t, `events "no" not found`, a.Must(404, "GET", coreEvents+"/no", nil).Body["message"])

	a.Must(200, "DELETE", viewEvents+"/old", nil)
	a.Must(404, "GET", coreEvents+"/old", nil)
	a.Must(200, "DELETE", coreEvents, nil)
	assert.Empty(t, a.Must(200, "GET", viewEvents, nil).Names())
}

// TestEventValidationDependsOnGroup: events that are written through the group of events must follow its rules.
// Events that are written through the core group need not.
func TestEventValidationDependsOnGroup(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", viewEvents, newEvent("e", "text"))
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
		got := a.Must(422, "PATCH", viewEvents+"/e", c.patch)
		var fields []string
		for _, cause := range apitest.Nested(got.Body, "details", "causes").([]any) {
			fields = append(fields, apitest.NestedString(cause, "field"))
		}
		assert.Equal(t, c.view, fields, c.patch)
		a.Must(c.core, "PATCH", coreEvents+"/e?dryRun=All", c.patch)
	}
	a.Must(200, "PATCH", viewEvents+"/e", `{"series":{"count":2,"lastObservedTime":"2026-01-01T00:00:00.000000Z"}}`)
	a.Must(422, "POST", viewEvents, `{"metadata":{"name":"f"},"regarding":{"kind":"Pod","name":"p","namespace":"default"}}`)
	a.Must(201, "POST", coreEvents, `{"metadata":{"name":"f"},"involvedObject":{"kind":"Pod","name":"p","namespace":"default"}}`)
}

// TestEventAuthorizationDependsOnGroup: a right to the events of one group is not a right to those of the other.
func TestEventAuthorizationDependsOnGroup(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) {
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, act auth.Attributes) (auth.Decision, string, error) {
			if act.Group == "events.k8s.io" {
				return auth.Allow, "", nil
			}
			return auth.Deny, "", nil
		})
	}))
	a.Must(201, "POST", viewEvents, newEvent("e", "text"))
	a.Must(403, "GET", coreEvents+"/e", nil)
}

// TestGarbageOfOwnerInOtherGroup: an object is collected with its owner even if it refers to the owner by the group
// of a version other than the hub.
func TestGarbageOfOwnerInOtherGroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := servertest.New(t)
		a := apitest.InProcess(t, s)
		uid := apitest.NestedString(a.Must(201, "POST", viewEvents, newEvent("e", "text")).Body, "metadata", "uid")
		a.Must(201, "POST", apitest.ConfigMapsPath, map[string]any{"metadata": map[string]any{"name": "owned", "ownerReferences": []any{
			map[string]any{"apiVersion": "events.k8s.io/v1", "kind": "Event", "name": "e", "uid": uid},
		}}})
		s.Settle()
		require.Len(t, a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names(), 1)
		a.Must(200, "DELETE", coreEvents+"/e", nil)
		s.Settle()
		assert.Empty(t, a.Must(200, "GET", apitest.ConfigMapsPath, nil).Names())
	})
}

// TestEventNamesArePathSegments covers recorders, which name an event after its object:
// names of roles and bindings contain colons, and a long name grows with the suffix. Only a
// create through v1 of the group of events requires a DNS subdomain.
func TestEventNamesArePathSegments(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	event := func(metadata string) string {
		return `{"metadata":{` + metadata + `},"involvedObject":{"kind":"ClusterRole","name":"system:node"}}`
	}
	long := strings.Repeat("a", 254)
	for _, name := range []string{"system:node.17a", "Admin.17a", "a_b.17a", "a b", "é", long} {
		item := coreEvents + "/" + url.PathEscape(name)
		a.Must(201, "POST", coreEvents, event(`"name":"`+name+`"`))
		a.Must(200, "PATCH", item, `{"count":2}`)
		a.Must(200, "PATCH", viewEvents+"/"+url.PathEscape(name)+"?dryRun=All", `{"metadata":{"labels":{"a":"b"}}}`)
		a.Must(200, "DELETE", item, nil)
		got := a.Must(422, "POST", viewEvents, newEvent(name, "text"))
		assert.Contains(t, got.Causes(), "metadata.name FieldValueInvalid", name)
	}
	a.Must(201, "POST", coreEvents, event(`"generateName":"system:node."`))
	for _, name := range []string{"a/b", "a%b", "..", "."} {
		a.Must(422, "POST", coreEvents, event(`"name":"`+name+`"`))
	}
	a.Must(422, "POST", viewEvents, strings.Replace(newEvent("e", ""), `"name":"e"`, `"generateName":"A:"`, 1))
}
