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

// withheld is a server with a kind of the program's own, widgets. A Restart applies changes of its
// fields, which decide whether the kind is registered and served.
type withheld struct {
	*servertest.Server
	*apitest.Client
	config     map[string]string // Serving.RuntimeConfig
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

// restartWith restarts the server with another RuntimeConfig.
func (w *withheld) restartWith(config map[string]string) {
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

// TestObjectsOfUnknownKindsAreLogged checks that a server logs, once, the numbers of stored objects
// of kinds that are neither registered nor defined, but not those of registered kinds that
// RuntimeConfig disables.
func TestObjectsOfUnknownKindsAreLogged(t *testing.T) {
	log := &apitest.ErrorLog{Warnings: true}
	w := newWithheld(t, nil, func(b *server.Builder) { b.Logger = slog.New(log) })
	for _, name := range []string{"a", "b", "c"} {
		w.Must(201, "POST", apitest.WidgetsPath, widgetIn(name, ""))
	}
	assert.Empty(t, log.Take())
	w.restartWith(widgetsOff())
	assert.Empty(t, log.Take(), "the kind is registered")
	w.registered = false
	for range 2 {
		w.restartWith(nil)
		assert.Equal(t, []string{"the store holds objects of kinds that are neither registered nor defined; they are kept but not served objects=3 kinds=widgets.example.com (3)"}, log.Take())
	}
	w.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	w.Settle()
	assert.Len(t, w.Must(200, "GET", apitest.WidgetsPath, nil).Names(), 3)
	w.restartWith(nil)
	assert.Empty(t, log.Take(), "the kind is defined")
}

// TestDefinitionCannotTakeNamesOfDisabledKind checks that each name of a disabled kind is refused
// to definitions, and that the kind keeps its objects.
func TestDefinitionCannotTakeNamesOfDisabledKind(t *testing.T) {
	w := newWithheld(t, nil)
	w.Must(201, "POST", apitest.WidgetsPath, widgetIn("w", ""))
	w.restartWith(widgetsOff())
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
	w.restartWith(nil)
	assert.Equal(t, []string{"w"}, w.Must(200, "GET", apitest.WidgetsPath, nil).Names())
}

// TestRegisteredKindReplacesDefinition registers a kind whose names a definition has already. The
// definition is no longer served and has a condition that gives the reason, and deleting it keeps
// the objects.
func TestRegisteredKindReplacesDefinition(t *testing.T) {
	for name, config := range map[string]map[string]string{"withheld": widgetsOff(), "served": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWithheld(t, nil)
			w.registered = false
			w.restartWith(nil)
			w.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
			w.Settle()
			w.Must(201, "POST", apitest.WidgetsPath, widgetIn("w", ""))
			w.registered = true
			w.restartWith(config)
			w.Settle()
			by := map[bool]string{false: "already in use", true: "already in use by a kind that this server has and does not serve"}[config != nil]
			assert.Equal(t, []string{`NamesAccepted=False ListKindConflict: "WidgetList" is ` + by,
				"Established=True InitialNamesAccepted: the initial names have been accepted"}, conditionsIn(w.Must(200, "GET", apitest.WidgetDefinitionPath, nil).Body))
			assert.Equal(t, map[bool]int{true: 404, false: 200}[config != nil], w.Do("GET", apitest.WidgetsPath, nil).Code)
			w.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
			w.Settle()
			assert.Equal(t, 404, w.Do("GET", apitest.WidgetDefinitionPath, nil).Code)
			w.restartWith(nil)
			assert.Equal(t, []string{"w"}, w.Must(200, "GET", apitest.WidgetsPath, nil).Names())
		})
	}
}

const tenantPath = "/apis/example.com/v1/namespaces/tenant/widgets"

// TestNamespaceDeletionRemovesObjectsOfDisabledKind checks that the deletion of a namespace deletes
// objects of a disabled kind, or waits for their finalizers, as if the kind were served.
func TestNamespaceDeletionRemovesObjectsOfDisabledKind(t *testing.T) {
	w := newWithheld(t, nil)
	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.Must(201, "POST", tenantPath, widgetIn("free", ""))
	w.Must(201, "POST", tenantPath, widgetIn("held", `,"finalizers":["example.com/f"]`))
	w.Must(201, "POST", apitest.WidgetsPath, widgetIn("elsewhere", ""))
	w.restartWith(widgetsOff())
	w.Must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	conditions := strings.Join(conditionsIn(w.Must(200, "GET", "/api/v1/namespaces/tenant", nil).Body), "\n")
	assert.Contains(t, conditions, "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: [widgets.example.com has 1 resource instances]")
	assert.Contains(t, conditions, "[example.com/f in 1 resource instances]")

	w.restartWith(nil)
	assert.Equal(t, []string{"held"}, w.Must(200, "GET", tenantPath, nil).Names())
	w.Must(200, "PATCH", tenantPath+"/held", `{"metadata":{"finalizers":null}}`)
	w.Settle()
	assert.Equal(t, 404, w.Do("GET", "/api/v1/namespaces/tenant", nil).Code)

	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.Must(201, "POST", tenantPath, widgetIn("free", ""))
	w.restartWith(widgetsOff())
	w.Must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	assert.Equal(t, 404, w.Do("GET", "/api/v1/namespaces/tenant", nil).Code)
	w.restartWith(nil)
	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	assert.Empty(t, w.Must(200, "GET", tenantPath, nil).Names())
	assert.Equal(t, []string{"elsewhere"}, w.Must(200, "GET", apitest.WidgetsPath, nil).Names())
}

// TestNamespaceDeletionWaitsForUnknownKinds checks that a namespace with objects of an unknown kind
// is not removed and that its conditions name the kind: the objects may belong to another server
// and need its finalizers.
func TestNamespaceDeletionWaitsForUnknownKinds(t *testing.T) {
	w := newWithheld(t, nil)
	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.Must(201, "POST", tenantPath, widgetIn("a", ""))
	w.Must(201, "POST", "/api/v1/namespaces/tenant/configmaps", apitest.NewConfigMap("known"))
	w.registered = false
	w.restartWith(nil)
	w.Must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	body := w.Must(200, "GET", "/api/v1/namespaces/tenant", nil).Body
	assert.Equal(t, "Terminating", apitest.NestedString(body, "status", "phase"))
	conditions := strings.Join(conditionsIn(body), "\n")
	assert.Contains(t, conditions, "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: [widgets.example.com has 1 resource instances]")
	assert.Contains(t, conditions, "NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: "+
		"widgets.example.com: the store has objects of a kind that this server does not know")
	assert.Empty(t, w.Must(200, "GET", "/api/v1/namespaces/tenant/configmaps", nil).Names())

	w.registered = true
	w.restartWith(nil)
	w.Settle()
	assert.Equal(t, 404, w.Do("GET", "/api/v1/namespaces/tenant", nil).Code)
	w.Must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	assert.Empty(t, w.Must(200, "GET", tenantPath, nil).Names())
}
