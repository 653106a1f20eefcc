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
	"orch.io/controlplane/server/servertest"
)

// withheld is a server with a kind of the program's own, widgets, which is served or not, or
// is not there at all, from its start or from a Restart on.
type withheld struct {
	*servertest.Server
	*api
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
	w.api = inProcess(t, w.Server)
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
	conditions, _ := at(body, "status", "conditions").([]any)
	for _, c := range conditions {
		list = append(list, text(c, "type")+"="+text(c, "status")+" "+text(c, "reason")+": "+text(c, "message"))
	}
	return list
}

// TestUnservedObjectsAreTold: a server that starts over objects that nothing of it has the
// kind of says so, once, with their numbers, and not of those that it withholds.
func TestUnservedObjectsAreTold(t *testing.T) {
	log := &quiet{warnings: true}
	w := newWithheld(t, nil, func(b *server.Builder) { b.Logger = slog.New(log) })
	for _, name := range []string{"a", "b", "c"} {
		w.must(201, "POST", definedPath, widgetIn(name, ""))
	}
	assert.Empty(t, log.take())
	w.turn(widgetsOff())
	assert.Empty(t, log.take(), "it has them")
	w.registered = false
	for range 2 {
		w.turn(nil)
		assert.Equal(t, []string{"the store holds objects of kinds that are neither registered nor defined: they stay, and nobody sees them objects=3 kinds=widgets.example.com (3)"}, log.take())
	}
	w.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	w.Settle()
	assert.Len(t, w.must(200, "GET", definedPath, nil).names(), 3)
	w.turn(nil)
	assert.Empty(t, log.take(), "a definition has them")
}

// TestDefinitionsDoNotTakeTheNamesOfWithheldKinds: a kind that the server has and does not
// serve keeps its names, of which each alone is refused, and its objects.
func TestDefinitionsDoNotTakeTheNamesOfWithheldKinds(t *testing.T) {
	w := newWithheld(t, nil)
	w.must(201, "POST", definedPath, widgetIn("w", ""))
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
			require.NoError(t, json.Unmarshal([]byte(widgetDefinition(`{"a":{"type":"string"}}`)), &crd))
			words := map[string]any{"plural": c.plural, "kind": c.kind, "singular": "one", "listKind": "ManyOf"}
			if c.short != "" {
				words["shortNames"] = []any{c.short}
			}
			at(crd, "metadata").(map[string]any)["name"] = c.plural + ".example.com"
			at(crd, "spec").(map[string]any)["names"] = words
			w.must(201, "POST", crdPath, crd)
			w.Settle()
			got := conditionsIn(w.must(200, "GET", crdPath+"/"+c.plural+".example.com", nil).body)
			assert.Equal(t, []string{
				"NamesAccepted=False " + c.want + " already in use by a kind that this server has and does not serve",
				"Established=False NotAccepted: not all names are accepted",
			}, got)
			path := "/apis/example.com/v1/namespaces/default/" + c.plural
			assert.Equal(t, 404, w.do("GET", path, nil).code)
			assert.Equal(t, 404, w.do("POST", path, widgetIn("other", "")).code)
			w.must(200, "DELETE", crdPath+"/"+c.plural+".example.com", nil)
			w.Settle()
			assert.Equal(t, 404, w.do("GET", crdPath+"/"+c.plural+".example.com", nil).code)
		})
	}
	w.turn(nil)
	assert.Equal(t, []string{"w"}, w.must(200, "GET", definedPath, nil).names())
}

// TestDefinitionsGiveWayToWithheldKinds: a program gets a kind of the names that a definition
// has already: that is served no more, is told so, and can go without taking anything along.
func TestDefinitionsGiveWayToWithheldKinds(t *testing.T) {
	for name, config := range map[string]map[string]string{"withheld": widgetsOff(), "served": nil} {
		t.Run(name, func(t *testing.T) {
			w := newWithheld(t, nil)
			w.registered = false
			w.turn(nil)
			w.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
			w.Settle()
			w.must(201, "POST", definedPath, widgetIn("w", ""))
			w.registered = true
			w.turn(config)
			w.Settle()
			by := map[bool]string{false: "already in use", true: "already in use by a kind that this server has and does not serve"}[config != nil]
			assert.Equal(t, []string{`NamesAccepted=False ListKindConflict: "WidgetList" is ` + by,
				"Established=True InitialNamesAccepted: the initial names have been accepted"}, conditionsIn(w.must(200, "GET", definedCRD, nil).body))
			assert.Equal(t, map[bool]int{true: 404, false: 200}[config != nil], w.do("GET", definedPath, nil).code)
			w.must(200, "DELETE", definedCRD, nil)
			w.Settle()
			assert.Equal(t, 404, w.do("GET", definedCRD, nil).code)
			w.turn(nil)
			assert.Equal(t, []string{"w"}, w.must(200, "GET", definedPath, nil).names())
		})
	}
}

const tenantPath = "/apis/example.com/v1/namespaces/tenant/widgets"

// TestNamespacesEmptyWithheldKinds: what a namespace holds of a kind that is not served goes
// with it, or holds it as it would if the kind was served.
func TestNamespacesEmptyWithheldKinds(t *testing.T) {
	w := newWithheld(t, nil)
	w.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.must(201, "POST", tenantPath, widgetIn("free", ""))
	w.must(201, "POST", tenantPath, widgetIn("held", `,"finalizers":["example.com/f"]`))
	w.must(201, "POST", definedPath, widgetIn("elsewhere", ""))
	w.turn(widgetsOff())
	w.must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	told := strings.Join(conditionsIn(w.must(200, "GET", "/api/v1/namespaces/tenant", nil).body), "\n")
	assert.Contains(t, told, "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: [widgets.example.com has 1 resource instances]")
	assert.Contains(t, told, "[example.com/f in 1 resource instances]")

	w.turn(nil)
	assert.Equal(t, []string{"held"}, w.must(200, "GET", tenantPath, nil).names())
	w.must(200, "PATCH", tenantPath+"/held", `{"metadata":{"finalizers":null}}`)
	w.Settle()
	assert.Equal(t, 404, w.do("GET", "/api/v1/namespaces/tenant", nil).code)

	w.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.must(201, "POST", tenantPath, widgetIn("free", ""))
	w.turn(widgetsOff())
	w.must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	assert.Equal(t, 404, w.do("GET", "/api/v1/namespaces/tenant", nil).code)
	w.turn(nil)
	w.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	assert.Empty(t, w.must(200, "GET", tenantPath, nil).names())
	assert.Equal(t, []string{"elsewhere"}, w.must(200, "GET", definedPath, nil).names())
}

// TestNamespacesWaitForUnknownKinds: what a store holds of a kind that the server does not
// know may be another server's, and be held by whom nobody here knows: the namespace waits,
// and tells for what.
func TestNamespacesWaitForUnknownKinds(t *testing.T) {
	w := newWithheld(t, nil)
	w.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	w.must(201, "POST", tenantPath, widgetIn("a", ""))
	w.must(201, "POST", "/api/v1/namespaces/tenant/configmaps", newConfigMap("known"))
	w.registered = false
	w.turn(nil)
	w.must(200, "DELETE", "/api/v1/namespaces/tenant", nil)
	w.Settle()
	body := w.must(200, "GET", "/api/v1/namespaces/tenant", nil).body
	assert.Equal(t, "Terminating", text(body, "status", "phase"))
	told := strings.Join(conditionsIn(body), "\n")
	assert.Contains(t, told, "NamespaceContentRemaining=True SomeResourcesRemain: Some resources are remaining: [widgets.example.com has 1 resource instances]")
	assert.Contains(t, told, "NamespaceDeletionContentFailure=True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: "+
		"widgets.example.com: the store holds objects of a kind that this server does not have")
	assert.Empty(t, w.must(200, "GET", "/api/v1/namespaces/tenant/configmaps", nil).names())

	w.registered = true
	w.turn(nil)
	w.Settle()
	assert.Equal(t, 404, w.do("GET", "/api/v1/namespaces/tenant", nil).code)
	w.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"tenant"}}`)
	assert.Empty(t, w.must(200, "GET", tenantPath, nil).names())
}
