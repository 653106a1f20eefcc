package server_test

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

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/faultinject"
	"orch.io/controlplane/storage/memstore"
)

// define defines widgets at a server and returns when it says that they are served.
func (w *two) define(properties string) {
	w.a.must(201, "POST", crdPath, widgetDefinition(properties))
	w.servers[0].Settle()
	require.Contains(w.a.t, string(w.a.must(200, "GET", definedCRD, nil).raw), `"type":"Established"`)
}

// lateFollows lets no controller of the late server look at definitions.
func lateFollows(b *server.Builder) {
	if _, is := b.Storage.(*late); is {
		b.RunControllers = []string{"*", "-definitions"}
	}
}

// TestServersServeEachOthersDefinitions: what one server says is established every server
// serves, to whatever asks for it first.
func TestServersServeEachOthersDefinitions(t *testing.T) {
	for name, ask := range map[string]func(b *api){
		"create": func(b *api) { b.must(201, "POST", definedPath, definedWidget("w", `{"a":"1"}`)) },
		"apply": func(b *api) {
			b.must(201, "PATCH", definedPath+"/w?fieldManager=m", definedWidget("w", `{"a":"1"}`), "Content-Type", applyType)
		},
		"list":             func(b *api) { b.must(200, "GET", definedPath, nil) },
		"list any version": func(b *api) { b.must(200, "GET", definedPath+"?resourceVersion=0", nil) },
		"get": func(b *api) {
			assert.Contains(t, string(b.must(404, "GET", definedPath+"/w?resourceVersion=0", nil).raw), `widgets.example.com \"w\" not found`)
		},
		"watch": func(b *api) { b.watch(definedPath + "?watch=1") },
		"discovery": func(b *api) {
			assert.Contains(t, string(b.must(200, "GET", "/apis/example.com/v1", nil).raw), `"widgets"`)
		},
		"groups":  func(b *api) { assert.Contains(t, string(b.must(200, "GET", "/apis", nil).raw), "example.com") },
		"openapi": func(b *api) { b.must(200, "GET", "/openapi/v3/apis/example.com/v1", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTwo(t)
			w.deaf()
			w.define(`{"a":{"type":"string"}}`)
			ask(w.b)
			w.a.must(200, "DELETE", definedPath, nil)
			w.deaf()
			w.a.must(200, "DELETE", definedCRD, nil)
			require.Eventually(t, func() bool { return w.a.do("GET", definedCRD, nil).code == 404 }, patience, 1)
			assert.Equal(t, 404, w.b.do("POST", definedPath, definedWidget("w", `{}`)).code)
		})
	}
}

// TestServersObeyChangedDefinitions: who changed a definition at one server finds it changed
// at another: nothing is taken, shown or stored there by what it said before.
func TestServersObeyChangedDefinitions(t *testing.T) {
	w := newTwo(t, lateFollows)
	w.define(`{"a":{"type":"string"}}`)
	w.b.must(201, "POST", definedPath, definedWidget("first", `{"a":"long enough"}`))
	watch := w.b.watch(definedPath + "?watch=1")
	seen := watch.next()
	change := func(properties string) {
		w.deaf()
		old := w.a.must(200, "GET", definedCRD, nil).version()
		w.a.must(200, "PUT", definedCRD, strings.Replace(widgetDefinition(properties), `"metadata":{`, `"metadata":{"resourceVersion":"`+old+`",`, 1))
	}

	change(`{"a":{"type":"string","maxLength":3},"n":{"type":"integer"}}`)
	w.b.must(422, "POST", definedPath, definedWidget("w", `{"a":"long enough"}`))
	change(`{"a":{"type":"string"},"n":{"type":"integer"},"m":{"type":"integer","default":7}}`)
	got := w.b.must(201, "POST", definedPath, definedWidget("w", `{"n":1}`))
	assert.Equal(t, map[string]any{"n": 1.0, "m": 7.0}, spec(got))
	change(`{"a":{"type":"string"},"x":{"type":"integer"}}`)
	w.a.must(201, "POST", definedPath, definedWidget("x", `{"x":1}`))
	got = w.b.must(200, "GET", definedPath+"/x", nil)
	assert.Equal(t, map[string]any{"x": 1.0}, spec(got))
	w.b.must(200, "PUT", definedPath+"/x", string(got.raw))
	assert.Equal(t, map[string]any{"x": 1.0}, spec(w.a.must(200, "GET", definedPath+"/x", nil)))

	assert.Empty(t, watch.ended(), "what came after the change is not shown by the former schema")
	assert.Equal(t, []string{"ADDED w", "ADDED x"}, w.b.watch(definedPath+"?watch=1&resourceVersion="+seen.version()).some(2))
}

// TestWatchesOfIdleServersFollowDefinitions: a watch at a server that nobody else calls ends
// where the definition of what it watches changes.
func TestWatchesOfIdleServersFollowDefinitions(t *testing.T) {
	w := newTwo(t, lateFollows)
	w.define(`{"a":{"type":"string"}}`)
	w.a.must(201, "POST", definedPath, definedWidget("first", `{"a":"1"}`))
	watch := w.b.watch(definedPath + "?watch=1")
	seen := watch.next()
	w.late.deaf()
	w.a.must(201, "POST", definedPath, definedWidget("second", `{"a":"1"}`))
	old := w.a.must(200, "GET", definedCRD, nil).version()
	w.a.must(200, "PUT", definedCRD, strings.Replace(widgetDefinition(`{"a":{"type":"string"},"n":{"type":"integer"}}`), `"metadata":{`, `"metadata":{"resourceVersion":"`+old+`",`, 1))
	w.a.must(201, "POST", definedPath, definedWidget("third", `{"n":1}`))
	w.hear()
	ended := watch.ended()
	require.Len(t, ended, 1, "%v", ended)
	assert.Equal(t, "ADDED second", ended[0].String())
	again := w.b.watch(definedPath + "?watch=1&resourceVersion=" + seen.version())
	again.next()
	assert.Equal(t, map[string]any{"n": 1.0}, again.next().Object["spec"])
}

// TestNamesAreGivenOnceByManyServers: of two definitions that want one kind, one gets it, though
// two servers decide at the same time, each knowing of another one first.
func TestNamesAreGivenOnceByManyServers(t *testing.T) {
	onSharedStores(t, func(t *testing.T, store storage.Backend) {
		const key = "customresourcedefinitions.apiextensions.k8s.io//widgets.example.com"
		held := holds(store, key)
		release := sync.OnceFunc(func() { close(held.release) })
		defer release()
		only := func(words ...string) func(*server.Builder) {
			return func(b *server.Builder) { b.RunControllers = words }
		}
		a := inProcess(t, servertest.New(t, over(shared{store}), only("*", "-definitions")))
		a.must(201, "POST", crdPath, widgetDefinition(`{"a":{"type":"string"}}`))
		one := servertest.New(t, over(held), only("definitions"))
		<-held.arrived
		a.must(201, "POST", crdPath, strings.ReplaceAll(widgetDefinition(`{"a":{"type":"string"}}`), "widgets", "gadgets"))
		servertest.New(t, over(faultinject.Wrap(shared{store}, func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpCommit && c.Key == key {
				return faultinject.Fault{Err: errors.New("no way")} // it cannot refuse what the first one accepts
			}
			return faultinject.Fault{}
		})), only("definitions"))
		gadgets := strings.Replace(definedCRD, "widgets", "gadgets", 1)
		require.Eventually(t, func() bool { return at(a.must(200, "GET", gadgets, nil).body, "status", "conditions") != nil }, patience, time.Millisecond)
		release()
		one.Settle()
		got := map[string]int{}
		for _, name := range []string{"widgets", "gadgets"} {
			for _, c := range at(a.must(200, "GET", crdPath+"/"+name+".example.com", nil).body, "status", "conditions").([]any) {
				got[text(c, "type")+" "+text(c, "status")]++
			}
		}
		assert.Equal(t, map[string]int{"NamesAccepted True": 1, "NamesAccepted False": 1, "Established True": 1, "Established False": 1}, got)
	})
}

// TestNamesBesideOneThatCannotBeTold: a definition that cannot be written keeps none from those that
// came after it.
func TestNamesBesideOneThatCannotBeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		a := inProcess(t, servertest.New(t, over(faultinject.Wrap(memstore.New(memstore.Options{}), func(c faultinject.Call) faultinject.Fault {
			if c.Op == faultinject.OpCommit && c.Key == "customresourcedefinitions.apiextensions.k8s.io//widgets.example.com" && written.Add(1) > 1 {
				return faultinject.Fault{Err: errors.New("no way")}
			}
			return faultinject.Fault{}
		})), func(b *server.Builder) { b.Logger = slog.New(slog.DiscardHandler) }))
		definition := widgetDefinition(`{"a":{"type":"string"}}`)
		a.must(201, "POST", crdPath, definition)
		time.Sleep(2 * time.Second) // the time of a creation has seconds
		a.must(201, "POST", crdPath, strings.NewReplacer("widgets", "gadgets", "widget", "gadget", "Widget", "Gadget").Replace(definition))
		time.Sleep(time.Second)
		told := func(name string) any {
			return at(a.must(200, "GET", crdPath+"/"+name+".example.com", nil).body, "status", "conditions")
		}
		require.Nil(t, told("widgets"))
		require.NotNil(t, told("gadgets"))
	})
}

// TestNamesAreGivenAfterDamage: what tells the last of the acceptances cannot be read, and those
// after it are made all the same.
func TestNamesAreGivenAfterDamage(t *testing.T) {
	store, damaged := memstore.New(memstore.Options{}), atomic.Int64{}
	s := servertest.New(t, over(faultinject.Wrap(store, func(c faultinject.Call) faultinject.Fault {
		rec, err := store.Get(t.Context(), c.Key, 0)
		if c.Op != faultinject.OpGet || !strings.HasPrefix(c.Key, "~serial/") || err != nil {
			return faultinject.Fault{}
		}
		damaged.Add(1)
		return faultinject.Fault{Err: &storage.DamagedError{Key: c.Key, Revision: rec.Revision, Err: errors.New("bits have flipped")}}
	})))
	for _, name := range []string{"widgets", "gadgets"} {
		must(t, s, 201, "POST", crdPath, strings.NewReplacer("widgets", name, "Widget", "Kind"+name).Replace(widgetDefinition(`{"a":{"type":"string"}}`)))
		s.Settle()
		require.Contains(t, conditionsOf(must(t, s, 200, "GET", crdPath+"/"+name+".example.com", "")), "Established=True InitialNamesAccepted")
	}
	require.Positive(t, damaged.Load())
}
