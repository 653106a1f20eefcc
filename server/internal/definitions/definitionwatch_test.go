package definitions_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// TestWatchesSeeDeletionOfAllObjectsOfDefinition: when a definition is deleted, its watches deliver the deletion of
// each object, however far behind they are, and then end.
func TestWatchesSeeDeletionOfAllObjectsOfDefinition(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		const objects = 120
		s := servertest.New(t, apitest.WithStorage(store), apitest.Patient)
		a := apitest.InProcess(t, s)
		for range 3 { // the definition is recreated each time
			a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
			s.Settle()
			for i := range objects {
				a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget(fmt.Sprint("w", i), fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 20_000))))
			}
			version := a.Must(200, "GET", apitest.WidgetsPath+"?limit=1", nil).ResourceVersion()
			watches := map[string]*apitest.Watcher{
				"from the start": a.Watch(apitest.WidgetsPath + "?watch=1"),
				"from now on":    a.Watch(apitest.WidgetsPath + "?watch=1&resourceVersion=" + version),
				"of one":         a.Watch(apitest.WidgetsPath + "?watch=1&fieldSelector=metadata.name%3Dw7"),
				"everywhere":     a.Watch("/apis/example.com/v1/widgets?watch=1"),
				"of tables":      a.Watch(apitest.WidgetsPath+"?watch=1&resourceVersion="+version, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),
			}
			a.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
			require.Eventually(t, func() bool { return a.Do("GET", apitest.WidgetDefinitionPath, nil).Code == 404 }, apitest.Timeout, time.Millisecond)
			assert.Equal(t, 404, a.Do("GET", apitest.WidgetsPath, nil).Code)
			for name, w := range watches { // no event was read so far
				deleted := map[string]bool{}
				for _, e := range w.ReadAll() {
					require.NotEqual(t, "ERROR", e.Type)
					who := e.Name()
					if rows, _ := e.Object["rows"].([]any); len(rows) > 0 {
						who = apitest.NestedString(rows[0], "object", "metadata", "name")
					}
					if e.Type == "DELETED" {
						deleted[who] = true
					}
				}
				want := objects
				if name == "of one" {
					want = 1
				}
				assert.Equal(t, want, len(deleted), name)
			}
		}
	})
}

// TestWatchEndsWithItsVersion: watches of a version that is no longer served deliver all earlier events and end.
func TestWatchEndsWithItsVersion(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		s := servertest.New(t, apitest.WithStorage(store))
		a := apitest.InProcess(t, s)
		two := strings.Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`), `"versions":[`,
			`"versions":[{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},`, 1)
		a.Must(201, "POST", apitest.DefinitionsPath, two)
		s.Settle()
		old := strings.Replace(apitest.WidgetsPath, "/v1/", "/v1beta1/", 1)
		w := a.Watch(old + "?watch=1")
		for i := range 50 {
			a.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget(fmt.Sprint("w", i), `{}`))
		}
		a.Must(200, "PATCH", apitest.WidgetDefinitionPath, `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`, "Content-Type", "application/json-patch+json")
		assert.Equal(t, 404, a.Do("GET", old, nil).Code)
		events := w.ReadAll()
		assert.Len(t, events, 50)
		for _, e := range events {
			assert.Equal(t, "ADDED", e.Type)
			assert.Equal(t, "example.com/v1beta1", apitest.NestedString(e.Object, "apiVersion"))
		}
	})
}

// TestWatchThatBeginsDuringDefinitionDeletionEnds: a watch that was accepted while the type was served, and begins
// after that, ends.
func TestWatchThatBeginsDuringDefinitionDeletionEnds(t *testing.T) {
	t.Parallel()
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	s := servertest.New(t, apitest.WithStorage(store), func(b *server.Builder) { b.Limits.FutureWait = apitest.Timeout })
	a := apitest.InProcess(t, s)
	a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	asked := make(chan struct{})
	var calls atomic.Int64
	began := make(chan *apitest.Watcher, 1)
	version, err := strconv.Atoi(a.Must(200, "GET", apitest.WidgetsPath, nil).ResourceVersion())
	require.NoError(t, err)
	store.SetPlan(func(c faultinject.Call) (f faultinject.Fault) {
		if c.Op == faultinject.OpRevision && calls.Add(1) == 1 { // the type was found; the request waits for a revision
			close(asked)
		}
		return f
	})
	go func() {
		path := fmt.Sprint(apitest.WidgetsPath, "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=", version+100)
		began <- apitest.NewWatcher(t, a.Open(t.Context(), "GET", path, nil))
	}()
	<-asked
	a.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
	require.Eventually(t, func() bool { return a.Do("GET", apitest.WidgetsPath, nil).Code == 404 }, apitest.Timeout, time.Millisecond)
	for i := range 100 {
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(fmt.Sprint("c", i)))
	}
	for _, e := range (<-began).ReadAll() {
		assert.Empty(t, e.Type) // it was too late and got a 404
	}
}

// TestCreateDuringDefinitionDeletionLeavesNoObject: a create that races with the deletion of its
// definition leaves no object behind, neither a hidden one nor one that a later definition of the
// same name would serve.
func TestCreateDuringDefinitionDeletionLeavesNoObject(t *testing.T) {
	t.Parallel()
	definition := apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`)
	for name, c := range map[string]struct {
		held bool   // another object delays the deletion of the definition
		anew string // definition of the name that is there when the create goes on
	}{
		"gone":                     {},
		"going":                    {held: true},
		"made anew":                {anew: definition},
		"made anew in other scope": {anew: strings.Replace(definition, "Namespaced", "Cluster", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
			s := servertest.New(t, apitest.WithStorage(store))
			a := apitest.InProcess(t, s)
			gone := func() {
				t.Helper()
				require.Eventually(t, func() bool { return a.Do("GET", apitest.WidgetDefinitionPath, nil).Code == 404 }, apitest.Timeout, time.Millisecond)
			}
			a.Must(201, "POST", apitest.DefinitionsPath, definition)
			s.Settle()
			if c.held {
				a.Must(201, "POST", apitest.WidgetsPath, strings.Replace(apitest.NewWidget("held", `{}`), `"name"`, `"finalizers":["example.com/f"],"name"`, 1))
			}
			hold, waiting := make(chan struct{}), make(chan struct{})
			store.SetPlan(func(c faultinject.Call) (f faultinject.Fault) {
				if c.Op == faultinject.OpCommit && strings.HasSuffix(c.Key, "/late") && c.Writes[0].Value != nil {
					close(waiting)
					f.Wait = hold
				}
				return f
			})
			created := make(chan apitest.Response, 1)
			go func() { created <- a.Do("POST", apitest.WidgetsPath, apitest.NewWidget("late", `{}`)) }()
			<-waiting
			a.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
			if !c.held {
				gone()
			}
			if c.anew != "" {
				a.Must(201, "POST", apitest.DefinitionsPath, c.anew)
				s.Settle()
			}
			close(hold)
			assert.Equal(t, 403, (<-created).Code)
			if c.held {
				a.Must(200, "PATCH", apitest.WidgetsPath+"/held", `{"metadata":{"finalizers":null}}`)
				gone()
			}
			if c.anew == "" {
				a.Must(201, "POST", apitest.DefinitionsPath, definition)
				s.Settle()
			}
			assert.Empty(t, a.Must(200, "GET", "/apis/example.com/v1/widgets", nil).Names())
		})
	}
}
