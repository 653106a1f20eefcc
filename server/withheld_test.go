package server_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// withheld is a server with a kind of the program's own, widgets, which is served or not, or
// is not there at all, from its start or from a Restart on.
type withheld struct {
	*servertest.Server
	*apitest.Client
	config     map[string]string // of what is served
	registered bool
}

func newWithheld(t *testing.T, config map[string]string, more ...func(*server.Builder)) *withheld {
	w := &withheld{config: config, registered: true}
	w.Server = servertest.New(t, append(more, func(b *server.Builder) {
		if b.Serving.RuntimeConfig = w.config; w.registered {
			b.Register(registry.Of(registry.Definition[Slip]{Group: "example.com", Version: "v1", Kind: "Widget", ShortNames: []string{"wi"}, Scope: registry.Namespaced}))
		}
	})...)
	w.Client = apitest.InProcess(t, w.Server)
	return w
}

// turn restarts the server with another configuration.
func (w *withheld) turn(config map[string]string) {
	w.config = config
	w.Restart()
}

func widgetsOff() map[string]string { return map[string]string{"example.com/v1/widgets": "false"} }

func widgetIn(name, more string) string {
	return `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"` + name + `"` + more + `},"spec":{}}`
}

// conditionsIn returns the conditions of an object as "type=status reason: message".
func conditionsIn(body map[string]any) (list []string) {
	conditions, _ := apitest.Nested(body, "status", "conditions").([]any)
	for _, c := range conditions {
		list = append(list, apitest.NestedString(c, "type")+"="+apitest.NestedString(c, "status")+" "+apitest.NestedString(c, "reason")+": "+apitest.NestedString(c, "message"))
	}
	return list
}

// TestUnservedObjectsAreTold: a server that starts over objects that nothing of it has the
// kind of says so, once, with their numbers, and not of those that it withholds.
func TestUnservedObjectsAreTold(t *testing.T) {
	log := &apitest.ErrorLog{Warnings: true}
	w := newWithheld(t, nil, func(b *server.Builder) { b.Logger = slog.New(log) })
	for _, name := range []string{"a", "b", "c"} {
		w.Must(201, "POST", apitest.WidgetsPath, widgetIn(name, ""))
	}
	assert.Empty(t, log.Take())
	w.turn(widgetsOff())
	assert.Empty(t, log.Take(), "it has them")
	w.registered = false
	for range 2 {
		w.turn(nil)
		assert.Equal(t, []string{"the store holds objects of kinds that are neither registered nor defined: they stay, and nobody sees them objects=3 kinds=widgets.example.com (3)"}, log.Take())
	}
	w.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	w.Settle()
	assert.Len(t, w.Must(200, "GET", apitest.WidgetsPath, nil).Names(), 3)
	w.turn(nil)
	assert.Empty(t, log.Take(), "a definition has them")
}

// TestDefinitionsDoNotTakeTheNamesOfWithheldKinds: a kind that the server has and does not
// serve keeps its names, of which each alone is refused, and its objects.
func TestDefinitionsDoNotTakeTheNamesOfWithheldKinds(t *testing.T) {
	w := newWithheld(t, nil)
	w.Must(201, "POST", apitest.WidgetsPath, widgetIn("w", ""))
	w.turn(widgetsOff())
	for _, c := range []struct{ name, plural, kind, short, want string }{
		{"all", "widgets", "Widget", "", `KindConflict: "Widget" is`},
		{"plural", "widgets", "Other", "", `PluralConflict: "widgets" is`},
		{"singular", "others", "Wi", "widget", `ShortNamesConflict: "widget" is`},
		{"short", "others", "Other", "wi", `ShortNamesConflict: "wi" is`},
		{"kind", "others", "Widget", "", `KindConflict: "Widget" is`},
		{"list", "others", "WidgetList", "", `KindConflict: "WidgetList" is`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var crd map[string]any
			require.NoError(t, json.Unmarshal([]byte(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`)), &crd))
			words := map[string]any{"plural": c.plural, "kind": c.kind, "singular": "one", "listKind": "ManyOf"}
			if c.short != "" {
				words["shortNames"] = []any{c.short}
			}
			apitest.Nested(crd, "metadata").(map[string]any)["name"] = c.plural + ".example.com"
			apitest.Nested(crd, "spec").(map[string]any)["names"] = words
			w.Must(201, "POST", apitest.DefinitionsPath, crd)
			w.Settle()
			got := conditionsIn(w.Must(200, "GET", apitest.DefinitionsPath+"/"+c.plural+".example.com", nil).Body)
			assert.Equal(t, []string{
				"NamesAccepted=False " + c.want + " already in use by a kind that this server has and does not serve",
				"Established=False NotAccepted: not all names are accepted",
			}, got)
			path := "/apis/example.com/v1/namespaces/default/" + c.plural
			assert.Equal(t, 404, w.Do("GET", path, nil).Code)
			assert.Equal(t, 404, w.Do("POST", path, widgetIn("other", "")).Code)
			w.Must(200, "DELETE", apitest.DefinitionsPath+"/"+c.plural+".example.com", nil)
			w.Settle()
			assert.Equal(t, 404, w.Do("GET", apitest.DefinitionsPath+"/"+c.plural+".example.com", nil).Code)
		})
	}
	w.turn(nil)
	assert.Equal(t, []string{"w"}, w.Must(200, "GET", apitest.WidgetsPath, nil).Names())
}

// TestDefinitionsGiveWayToWithheldKinds: a program gets a kind of the names that a definition
// has already: that is served no more, is told so, and can go without taking anything along.
func TestDefinitionsGiveWayToWithheldKinds(t *testing.T) {
	for name, config := range map[string]map[string]string{"withheld": widgetsOff(), "served": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWithheld(t, nil)
			w.registered = false
			w.turn(nil)
			w.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
			w.Settle()
			w.Must(201, "POST", apitest.WidgetsPath, widgetIn("w", ""))
			w.registered = true
			w.turn(config)
			w.Settle()
			by := map[bool]string{false: "already in use", true: "already in use by a kind that this server has and does not serve"}[config != nil]
			assert.Equal(t, []string{`NamesAccepted=False ListKindConflict: "WidgetList" is ` + by,
				"Established=True InitialNamesAccepted: the initial names have been accepted"}, conditionsIn(w.Must(200, "GET", apitest.WidgetDefinitionPath, nil).Body))
			assert.Equal(t, map[bool]int{true: 404, false: 200}[config != nil], w.Do("GET", apitest.WidgetsPath, nil).Code)
			w.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
			w.Settle()
			assert.Equal(t, 404, w.Do("GET", apitest.WidgetDefinitionPath, nil).Code)
			w.turn(nil)
			assert.Equal(t, []string{"w"}, w.Must(200, "GET", apitest.WidgetsPath, nil).Names())
		})
	}
}

const tenantPath = "/apis/example.com/v1/namespaces/tenant/widgets"

// TestNamespacesEmptyWithheldKinds: what a namespace holds of a kind that is not served goes
// with it, or holds it as it would if the kind was served.
func TestNamespacesEmptyWithheldKinds(t *testing.T) {
	w := newWithheld(t, nil)
	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.Must(201, "POST", tenantPath, widgetIn("free", ""))
	w.Must(201, "POST", tenantPath, widgetIn("held", `,"finalizers":["example.com/f"]`))
	w.Must(201, "POST", apitest.WidgetsPath, widgetIn("elsewhere", ""))
	w.turn(widgetsOff())
	w.Must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	told := strings.Join(conditionsIn(w.Must(200, "GET", "/api/v1/namespaces/tenant", nil).Body), "\n")
	assert.Contains(t, told, "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: [widgets.example.com has 1 resource instances]")
	assert.Contains(t, told, "[example.com/f in 1 resource instances]")

	w.turn(nil)
	assert.Equal(t, []string{"held"}, w.Must(200, "GET", tenantPath, nil).Names())
	w.Must(200, "PATCH", tenantPath+"/held", `{"metadata":{"finalizers":null}}`)
	w.Settle()
	assert.Equal(t, 404, w.Do("GET", "/api/v1/namespaces/tenant", nil).Code)

	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.Must(201, "POST", tenantPath, widgetIn("free", ""))
	w.turn(widgetsOff())
	w.Must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	assert.Equal(t, 404, w.Do("GET", "/api/v1/namespaces/tenant", nil).Code)
	w.turn(nil)
	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	assert.Empty(t, w.Must(200, "GET", tenantPath, nil).Names())
	assert.Equal(t, []string{"elsewhere"}, w.Must(200, "GET", apitest.WidgetsPath, nil).Names())
}

// TestNamespacesWaitForUnknownKinds: what a store holds of a kind that the server does not
// know may be another server's, and be held by whom nobody here knows: the namespace waits,
// and tells for what.
func TestNamespacesWaitForUnknownKinds(t *testing.T) {
	w := newWithheld(t, nil)
	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.Must(201, "POST", tenantPath, widgetIn("a", ""))
	w.Must(201, "POST", "/api/v1/namespaces/tenant/configmaps", apitest.NewConfigMap("known"))
	w.registered = false
	w.turn(nil)
	w.Must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	body := w.Must(200, "GET", "/api/v1/namespaces/tenant", nil).Body
	assert.Equal(t, "Terminating", apitest.NestedString(body, "status", "phase"))
	told := strings.Join(conditionsIn(body), "\n")
	assert.Contains(t, told, "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: [widgets.example.com has 1 resource instances]")
	assert.Contains(t, told, "NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: "+
		"widgets.example.com: the store has objects of a kind that this server does not know")
	assert.Empty(t, w.Must(200, "GET", "/api/v1/namespaces/tenant/configmaps", nil).Names())

	w.registered = true
	w.turn(nil)
	w.Settle()
	assert.Equal(t, 404, w.Do("GET", "/api/v1/namespaces/tenant", nil).Code)
	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	assert.Empty(t, w.Must(200, "GET", tenantPath, nil).Names())
}
