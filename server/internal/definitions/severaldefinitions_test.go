package definitions_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// define creates the definition of widgets at a server and returns when it is established.
func define(w *apitest.Pair, properties string) {
	w.A.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(properties))
	w.Servers[0].Settle()
	require.Contains(w.A.T, string(w.A.Must(200, "GET", apitest.WidgetDefinitionPath, nil).Raw), `"type":"Established"`)
}

// lateFollows keeps the controllers of the late server from reading definitions.
func lateFollows(b *server.Builder) {
	if _, is := b.Storage.(*apitest.LaggingStore); is {
		b.RunControllers = []string{"*", "-definitions"}
	}
}

// TestServersServeEachOthersDefinitions: when a definition is established through one server, every server serves it,
// from the first request on.
func TestServersServeEachOthersDefinitions(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(b *apitest.Client){
		"create": func(b *apitest.Client) { b.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"a":"1"}`)) },
		"apply": func(b *apitest.Client) {
			b.Must(201, "PATCH", apitest.WidgetsPath+"/w?fieldManager=m", apitest.NewWidget("w", `{"a":"1"}`), "Content-Type", apitest.ApplyPatch)
		},
		"list":             func(b *apitest.Client) { b.Must(200, "GET", apitest.WidgetsPath, nil) },
		"list any version": func(b *apitest.Client) { b.Must(200, "GET", apitest.WidgetsPath+"?resourceVersion=0", nil) },
		"get": func(b *apitest.Client) {
			assert.Contains(t, string(b.Must(404, "GET", apitest.WidgetsPath+"/w?resourceVersion=0", nil).Raw), `widgets.example.com \"w\" not found`)
		},
		"watch": func(b *apitest.Client) { b.Watch(apitest.WidgetsPath + "?watch=1") },
		"discovery": func(b *apitest.Client) {
			assert.Contains(t, string(b.Must(200, "GET", "/apis/example.com/v1", nil).Raw), `"widgets"`)
		},
		"groups": func(b *apitest.Client) {
			assert.Contains(t, string(b.Must(200, "GET", "/apis", nil).Raw), "example.com")
		},
		"openapi": func(b *apitest.Client) { b.Must(200, "GET", "/openapi/v3/apis/example.com/v1", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			w := apitest.NewPair(t)
			w.Lag()
			define(w, `{"a":{"type":"string"}}`)
			ask(w.B)
			w.A.Must(200, "DELETE", apitest.WidgetsPath, nil)
			w.Lag()
			w.A.Must(200, "DELETE", apitest.WidgetDefinitionPath, nil)
			require.Eventually(t, func() bool { return w.A.Do("GET", apitest.WidgetDefinitionPath, nil).Code == 404 }, apitest.Timeout, 1)
			assert.Equal(t, 404, w.B.Do("POST", apitest.WidgetsPath, apitest.NewWidget("w", `{}`)).Code)
		})
	}
}

// TestServersFollowChangedDefinitions: after a definition is changed through one server, no other server accepts,
// shows or stores objects with the earlier schema.
func TestServersFollowChangedDefinitions(t *testing.T) {
	t.Parallel()
	w := apitest.NewPair(t, lateFollows)
	define(w, `{"a":{"type":"string"}}`)
	w.B.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("first", `{"a":"long enough"}`))
	watch := w.B.Watch(apitest.WidgetsPath + "?watch=1")
	seen := watch.Next()
	change := func(properties string) {
		w.Lag()
		old := w.A.Must(200, "GET", apitest.WidgetDefinitionPath, nil).ResourceVersion()
		w.A.Must(200, "PUT", apitest.WidgetDefinitionPath, strings.Replace(apitest.NewWidgetDefinition(properties), `"metadata":{`, `"metadata":{"resourceVersion":"`+old+`",`, 1))
	}

	change(`{"a":{"type":"string","maxLength":3},"n":{"type":"integer"}}`)
	w.B.Must(422, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"a":"long enough"}`))
	change(`{"a":{"type":"string"},"n":{"type":"integer"},"m":{"type":"integer","default":7}}`)
	got := w.B.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("w", `{"n":1}`))
	assert.Equal(t, map[string]any{"n": 1.0, "m": 7.0}, apitest.SpecOf(got))
	change(`{"a":{"type":"string"},"x":{"type":"integer"}}`)
	w.A.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("x", `{"x":1}`))
	got = w.B.Must(200, "GET", apitest.WidgetsPath+"/x", nil)
	assert.Equal(t, map[string]any{"x": 1.0}, apitest.SpecOf(got))
	w.B.Must(200, "PUT", apitest.WidgetsPath+"/x", string(got.Raw))
	assert.Equal(t, map[string]any{"x": 1.0}, apitest.SpecOf(w.A.Must(200, "GET", apitest.WidgetsPath+"/x", nil)))

	assert.Empty(t, watch.ReadAll(), "events after the change must not have the earlier schema")
	assert.Equal(t, []string{"ADDED w", "ADDED x"}, w.B.Watch(apitest.WidgetsPath+"?watch=1&resourceVersion="+seen.ResourceVersion()).NextN(2))
}

// TestWatchesOfIdleServersFollowDefinitions: a watch at a server without other requests ends when the definition
// changes.
func TestWatchesOfIdleServersFollowDefinitions(t *testing.T) {
	t.Parallel()
	w := apitest.NewPair(t, lateFollows)
	define(w, `{"a":{"type":"string"}}`)
	w.A.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("first", `{"a":"1"}`))
	watch := w.B.Watch(apitest.WidgetsPath + "?watch=1")
	seen := watch.Next()
	w.LaggingStore.Lag()
	w.A.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("second", `{"a":"1"}`))
	old := w.A.Must(200, "GET", apitest.WidgetDefinitionPath, nil).ResourceVersion()
	w.A.Must(200, "PUT", apitest.WidgetDefinitionPath, strings.Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"},"n":{"type":"integer"}}`), `"metadata":{`, `"metadata":{"resourceVersion":"`+old+`",`, 1))
	w.A.Must(201, "POST", apitest.WidgetsPath, apitest.NewWidget("third", `{"n":1}`))
	w.CatchUp()
	ended := watch.ReadAll()
	require.Len(t, ended, 1, "%v", ended)
	assert.Equal(t, "ADDED second", ended[0].String())
	again := w.B.Watch(apitest.WidgetsPath + "?watch=1&resourceVersion=" + seen.ResourceVersion())
	again.Next()
	assert.Equal(t, map[string]any{"n": 1.0}, again.Next().Object["spec"])
}

// TestNameIsAcceptedOnceByManyServers: if two definitions request the same kind, only one gets it, even if two
// servers decide at the same time.
func TestNameIsAcceptedOnceByManyServers(t *testing.T) {
	t.Parallel()
	apitest.OnSharedStores(t, func(t *testing.T, store storage.Backend) {
		const key = "customresourcedefinitions.apiextensions.k8s.io//widgets.example.com"
		held := apitest.NewBlockingStore(store, key)
		release := sync.OnceFunc(func() { close(held.Release) })
		defer release()
		only := func(words ...string) func(*server.Builder) {
			return func(b *server.Builder) { b.RunControllers = words }
		}
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(apitest.KeepOpen{Backend: store}), only("*", "-definitions")))
		a.Must(201, "POST", apitest.DefinitionsPath, apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`))
		one := servertest.New(t, apitest.WithStorage(held), only("definitions"))
		<-held.Arrived
		a.Must(201, "POST", apitest.DefinitionsPath, strings.ReplaceAll(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`), "widgets", "gadgets"))
		servertest.New(t, apitest.WithStorage(faultinject.Wrap(apitest.KeepOpen{Backend: store}, func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpCommit && c.Key == key {
				return faultinject.Fault{Err: errors.New("no way")} // so that it cannot refuse the name that the first server accepts
			}
			return faultinject.Fault{}
		})), only("definitions"))
		gadgets := strings.Replace(apitest.WidgetDefinitionPath, "widgets", "gadgets", 1)
		require.Eventually(t, func() bool {
			return apitest.Nested(a.Must(200, "GET", gadgets, nil).Body, "status", "conditions") != nil
		}, apitest.Timeout, time.Millisecond)
		release()
		one.Settle()
		got := map[string]int{}
		for _, name := range []string{"widgets", "gadgets"} {
			for _, c := range apitest.Nested(a.Must(200, "GET", apitest.DefinitionsPath+"/"+name+".example.com", nil).Body, "status", "conditions").([]any) {
				got[apitest.NestedString(c, "type")+" "+apitest.NestedString(c, "status")]++
			}
		}
		assert.Equal(t, map[string]int{"NamesAccepted True": 1, "NamesAccepted False": 1, "Established True": 1, "Established False": 1}, got)
	})
}

// TestUnwritableDefinitionDoesNotBlockLaterNames: a definition whose status cannot be written does
// not keep the names of later definitions from being accepted.
func TestUnwritableDefinitionDoesNotBlockLaterNames(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(faultinject.Wrap(memstore.New(memstore.Options{}), func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpCommit && c.Key == "customresourcedefinitions.apiextensions.k8s.io//widgets.example.com" && written.Add(1) > 1 {
				return faultinject.Fault{Err: errors.New("no way")}
			}
			return faultinject.Fault{}
		})), func(b *server.Builder) { b.Logger = slog.New(slog.DiscardHandler) }))
		definition := apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`)
		a.Must(201, "POST", apitest.DefinitionsPath, definition)
		time.Sleep(2 * time.Second) // creationTimestamp has whole seconds
		a.Must(201, "POST", apitest.DefinitionsPath, strings.NewReplacer("widgets", "gadgets", "widget", "gadget", "Widget", "Gadget").Replace(definition))
		time.Sleep(time.Second)
		told := func(name string) any {
			return apitest.Nested(a.Must(200, "GET", apitest.DefinitionsPath+"/"+name+".example.com", nil).Body, "status", "conditions")
		}
		require.Nil(t, told("widgets"))
		require.NotNil(t, told("gadgets"))
	})
}

// TestNamesAreAcceptedIfSequenceRecordIsDamaged: if the record of the last acceptance cannot be read, later
// acceptances still succeed.
func TestNamesAreAcceptedIfSequenceRecordIsDamaged(t *testing.T) {
	t.Parallel()
	store, damaged := memstore.New(memstore.Options{}), atomic.Int64{}
	s := servertest.New(t, apitest.WithStorage(faultinject.Wrap(store, func(c faultinject.Call) faultinject.Fault {
		rec, err := store.Get(t.Context(), c.Key, 0)
		if c.Op != faultinject.OpGet || !strings.HasPrefix(c.Key, "~serial/") || err != nil {
			return faultinject.Fault{}
		}
		damaged.Add(1)
		return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: rec.Revision, Err: errors.New("bits have flipped")}}
	})))
	for _, name := range []string{"widgets", "gadgets"} {
		apitest.Must(t, s, 201, "POST", apitest.DefinitionsPath, strings.NewReplacer("widgets", name, "Widget", "Kind"+name).Replace(apitest.NewWidgetDefinition(`{"a":{"type":"string"}}`)))
		s.Settle()
		require.Contains(t, conditionsOf(apitest.Must(t, s, 200, "GET", apitest.DefinitionsPath+"/"+name+".example.com", "")), "Established=True InitialNamesAccepted")
	}
	require.Positive(t, damaged.Load())
}
