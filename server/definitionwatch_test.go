package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

// TestADeletedDefinitionIsWatchedToItsEnd: whoever watches objects whose definition
// is deleted is told of the end of each, however far behind, and then the watch ends.
func TestADeletedDefinitionIsWatchedToItsEnd(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		const objects = 120
		s := servertest.New(t, over(store))
		a := inProcess(t, s)
		for range 3 { // as often as it is defined
			a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
			s.Settle()
			for i := range objects {
				a.must(201, "POST", definedPath, definedWidget(fmt.Sprint("w", i), fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 20_000))))
			}
			version := a.must(200, "GET", definedPath+"?limit=1", nil).version()
			watches := map[string]*watching{
				"from the start": a.watch(definedPath + "?watch=1"),
				"from now on":    a.watch(definedPath + "?watch=1&resourceVersion=" + version),
				"of one":         a.watch(definedPath + "?watch=1&fieldSelector=metadata.name%3Dw7"),
				"everywhere":     a.watch("/apis/example.com/v1/widgets?watch=1"),
				"of tables":      a.watch(definedPath+"?watch=1&resourceVersion="+version, "Accept", "application/json;as=Table;g=meta.k8s.io;v=v1"),
			}
			a.must(200, "DELETE", definedCRD, nil)
			require.Eventually(t, func() bool { return a.do("GET", definedCRD, nil).code == 404 }, patience, time.Millisecond)
			assert.Equal(t, 404, a.do("GET", definedPath, nil).code)
			for name, w := range watches { // nobody has read until now
				deleted := map[string]bool{}
				for _, e := range w.ended() {
					require.NotEqual(t, "ERROR", e.Type)
					who := e.name()
					if rows, _ := e.Object["rows"].([]any); len(rows) > 0 {
						who = text(rows[0], "object", "metadata", "name")
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

// TestAWatchOfAVersionEndsWithIt: watches of a version that is no longer served
// tell what happened before that, and end.
func TestAWatchOfAVersionEndsWithIt(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		s := servertest.New(t, over(store))
		a := inProcess(t, s)
		two := strings.Replace(widgetDefinition(`{"a":{"type":"string"}}`), `"versions":[`,
			`"versions":[{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},`, 1)
		a.must(201, "POST", crdPath, two)
		s.Settle()
		old := strings.Replace(definedPath, "/v1/", "/v1beta1/", 1)
		w := a.watch(old + "?watch=1")
		for i := range 50 {
			a.must(201, "POST", definedPath, definedWidget(fmt.Sprint("w", i), `{}`))
		}
		a.must(200, "PATCH", definedCRD, `[{"op":"replace","path":"/spec/versions/0/served","value":false}]`, "Content-Type", "application/json-patch+json")
		assert.Equal(t, 404, a.do("GET", old, nil).code)
		events := w.ended()
		assert.Len(t, events, 50)
		for _, e := range events {
			assert.Equal(t, "ADDED", e.Type)
			assert.Equal(t, "example.com/v1beta1", text(e.Object, "apiVersion"))
		}
	})
}

// TestAWatchThatBeginsAsItsDefinitionGoes: one that was let in when the type was
// still served, and begins when it is not, ends.
func TestAWatchThatBeginsAsItsDefinitionGoes(t *testing.T) {
	store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	s := servertest.New(t, over(store), func(b *server.Builder) { b.Limits.FutureWait = patience })
	a := inProcess(t, s)
	a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
	s.Settle()
	asked := make(chan struct{})
	var calls atomic.Int64
	began := make(chan *watching, 1)
	version, err := strconv.Atoi(a.must(200, "GET", definedPath, nil).version())
	require.NoError(t, err)
	store.SetPlan(func(c faultinject.Call) (f faultinject.Fault) {
		if c.Op == faultinject.OpRevision && calls.Add(1) == 1 { // it finds the type then, and waits for a version to come
			close(asked)
		}
		return f
	})
	go func() {
		path := fmt.Sprint(definedPath, "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=", version+100)
		began <- newWatching(t, a.open(t.Context(), "GET", path, nil))
	}()
	<-asked
	a.must(200, "DELETE", definedCRD, nil)
	require.Eventually(t, func() bool { return a.do("GET", definedPath, nil).code == 404 }, patience, time.Millisecond)
	for i := range 100 {
		a.must(201, "POST", configMaps, newConfigMap(fmt.Sprint("c", i)))
	}
	for _, e := range (<-began).ended() {
		assert.Empty(t, e.Type) // it came too late, and is a 404
	}
}

// TestACreateThatComesAsItsDefinitionGoes leaves nothing behind that a later
// definition of the name would show, or that nobody could name under it.
func TestACreateThatComesAsItsDefinitionGoes(t *testing.T) {
	definition := widgetDefinition(`{"a":{"type":"string"}}`)
	for name, c := range map[string]struct {
		held bool   // another object keeps the definition for a while
		anew string // definition of the name that is there when the create goes on
	}{
		"gone":                     {},
		"going":                    {held: true},
		"made anew":                {anew: definition},
		"made anew in other scope": {anew: strings.Replace(definition, "Namespaced", "Cluster", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			store := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
			s := servertest.New(t, over(store))
			a := inProcess(t, s)
			gone := func() {
				t.Helper()
				require.Eventually(t, func() bool { return a.do("GET", definedCRD, nil).code == 404 }, patience, time.Millisecond)
			}
			a.must(201, "POST", crdPath, definition)
			s.Settle()
			if c.held {
				a.must(201, "POST", definedPath, strings.Replace(definedWidget("held", `{}`), `"name"`, `"finalizers":["example.com/f"],"name"`, 1))
			}
			hold, waiting := make(chan struct{}), make(chan struct{})
			store.SetPlan(func(c faultinject.Call) (f faultinject.Fault) {
				if c.Op == faultinject.OpCommit && strings.HasSuffix(c.Key, "/late") && c.Writes[0].Value != nil {
					close(waiting)
					f.Wait = hold
				}
				return f
			})
			created := make(chan answer, 1)
			go func() { created <- a.do("POST", definedPath, definedWidget("late", `{}`)) }()
			<-waiting
			a.must(200, "DELETE", definedCRD, nil)
			if !c.held {
				gone()
			}
			if c.anew != "" {
				a.must(201, "POST", crdPath, c.anew)
				s.Settle()
			}
			close(hold)
			assert.Equal(t, 403, (<-created).code)
			if c.held {
				a.must(200, "PATCH", definedPath+"/held", `{"metadata":{"finalizers":null}}`)
				gone()
			}
			if c.anew == "" {
				a.must(201, "POST", crdPath, definition)
				s.Settle()
			}
			assert.Empty(t, a.must(200, "GET", "/apis/example.com/v1/widgets", nil).names())
		})
	}
}
