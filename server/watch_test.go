package server_test

import (
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// mark changes a history once more, so that a watch has an end to read to.
func (h *history) mark() { h.must(201, "POST", configMaps, newConfigMap("mark")) }

// until reads events up to the mark, bookmarks left out.
func (w *watching) until(last string) string {
	var list []string
	for {
		e := w.next()
		if e.Type == "BOOKMARK" {
			continue
		}
		list = append(list, e.String())
		if e.name() == last {
			return strings.Join(list, ", ")
		}
	}
}

// TestWatchVersions is the watch table of the spec.
func TestWatchVersions(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		h := newHistory(t, store)
		h.mark()
		const state = "ADDED a, ADDED c, ADDED d, ADDED mark"
		for query, want := range map[string]string{
			"":                        state,
			"&resourceVersion=":       state,
			"&resourceVersion=0":      state,
			"&resourceVersion=BEFORE": "MODIFIED a, DELETED b, ADDED d, ADDED mark",
			"&resourceVersion=NOW":    "ADDED mark",
			"&resourceVersion=0&allowWatchBookmarks=true":                                                            state,
			"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan":                                              state,
			"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0":                            state,
			"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=BEFORE":                       state,
			"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=NOW&allowWatchBookmarks=true": state,
			"&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=BEFORE":                      "MODIFIED a, DELETED b, ADDED d, ADDED mark",
			"&labelSelector=none%3D1&resourceVersion=0":                                                              "",
			"&fieldSelector=metadata.name%3Dmark":                                                                    "ADDED mark",
			"&fieldSelector=metadata.name!%3Da&resourceVersion=BEFORE":                                               "DELETED b, ADDED d, ADDED mark",
		} {
			w := h.watch(configMaps + "?watch=true" + h.fill(query))
			if want == "" {
				w.close()
				continue
			}
			assert.Equal(t, want, w.until("mark"), query)
			w.close()
		}
		for query, code := range map[string]int{
			"&resourceVersion=x":                                 400,
			"&resourceVersion=-1":                                400,
			"&resourceVersionMatch=NotOlderThan":                 422,
			"&resourceVersionMatch=Exact&resourceVersion=NOW":    422,
			"&sendInitialEvents=true":                            422,
			"&sendInitialEvents=true&resourceVersionMatch=Exact": 422,
			"&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=FUTURE": 504,
			"&labelSelector=,,":               400,
			"&fieldSelector=spec.unknown%3D1": 400,
			"&timeoutSeconds=soon":            400,
		} {
			got := h.do("GET", configMaps+"?watch=true"+h.fill(query), nil)
			assert.Equal(t, code, got.code, query)
			got.wantStatus(t)
		}
	})
}

// TestWatchList is how informers start: the objects, then a bookmark that says
// so, in both profiles.
func TestWatchList(t *testing.T) {
	for profile, annotation := range map[names.Profile]string{names.Orch: "orch.io/initial-events-end", names.Kubernetes: "k8s.io/initial-events-end"} {
		s := servertest.New(t, func(b *server.Builder) { b.Names = profile })
		a := inProcess(t, s)
		a.must(201, "POST", configMaps, newConfigMap("a"))
		now := a.must(200, "GET", configMaps, nil).version()
		const query = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
		w := a.watch(configMaps + query)
		assert.Equal(t, "ADDED a", w.next().String())
		end := w.next()
		assert.Equal(t, "BOOKMARK", end.Type)
		assert.Equal(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"resourceVersion": now, "annotations": map[string]any{annotation: "true"}}}, end.Object)
		a.must(200, "DELETE", configMaps+"/a", nil)
		assert.Equal(t, "DELETED a", w.next().String())
		// Nothing there: the bookmark comes at once.
		assert.Equal(t, "BOOKMARK", a.watch(configMaps+query).next().Type)
	}
}

// TestWatchDeleted: the last state that matched, with the revision of the
// deletion, from which a watch can go on.
func TestWatchDeleted(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		w := a.watch(configMaps + "?watch=true&labelSelector=on%3Dyes")
		label := func(value string) string { return `{"metadata":{"labels":{"on":"` + value + `"}}}` }
		a.must(201, "POST", configMaps, newConfigMap("a", "v", "1"))
		entered := a.must(200, "PATCH", configMaps+"/a", label("yes"))
		a.must(200, "PATCH", configMaps+"/a", `{"data":{"v":"2"}}`)
		left := a.must(200, "PATCH", configMaps+"/a", label("no"))
		a.must(200, "PATCH", configMaps+"/a", label("yes"))
		a.must(200, "DELETE", configMaps+"/a", nil)
		after := a.must(201, "POST", configMaps, newConfigMap("b"))

		e := w.next()
		assert.Equal(t, "ADDED", e.Type)
		assert.Equal(t, entered.version(), e.version())
		assert.Equal(t, "MODIFIED", w.next().Type)
		e = w.next()
		assert.Equal(t, "DELETED", e.Type)
		assert.Equal(t, left.version(), e.version())
		assert.Equal(t, "yes", text(e.Object, "metadata", "labels", "on"), "the last state that matched")
		assert.Equal(t, "2", text(e.Object, "data", "v"))
		back := w.next()
		assert.Equal(t, "ADDED", back.Type)
		gone := w.next()
		assert.Equal(t, "DELETED", gone.Type)
		assert.Equal(t, number(t, back.version())+1, number(t, gone.version()))
		assert.Equal(t, number(t, after.version())-1, number(t, gone.version()))
		assert.Equal(t, "2", text(gone.Object, "data", "v"))
		assert.Equal(t, "ADDED b", a.watch(configMaps+"?watch=1&resourceVersion="+gone.version()).next().String())
	})
}

// TestWatchFuture: a version that has not been delivers nothing until it has.
func TestWatchFuture(t *testing.T) {
	onStores(t, func(t *testing.T, store storage.Backend) {
		a := inProcess(t, servertest.New(t, over(store)))
		now := number(t, a.must(200, "GET", configMaps, nil).version())
		w := a.watch(configMaps + "?watch=1&resourceVersion=" + itoa(now+2))
		for _, n := range []string{"a", "b", "c"} {
			a.must(201, "POST", configMaps, newConfigMap(n))
		}
		e := w.next()
		assert.Equal(t, "ADDED c", e.String())
		assert.Equal(t, itoa(now+3), e.version())
	})
}

// TestWatchEnds by itself after timeoutSeconds, with bookmarks on the way.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := inProcess(t, servertest.New(t))
		begun := time.Now()
		w := a.watch(configMaps + "?watch=1&timeoutSeconds=50&allowWatchBookmarks=true&resourceVersion=1")
		end := w.ended()
		require.Len(t, end, 1)
		assert.Equal(t, "BOOKMARK", end[0].Type, "where the next one goes on")
		assert.Equal(t, a.must(200, "GET", configMaps, nil).version(), end[0].version())
		assert.Equal(t, 50*time.Second, time.Since(begun))
		begun = time.Now()
		assert.Empty(t, newWatching(t, a.open(t.Context(), "GET", configMaps+"?watch=1&timeoutSeconds=50&resourceVersion=1", nil)).ended())
		assert.Equal(t, 50*time.Second, time.Since(begun))

		w = newWatching(t, a.open(t.Context(), "GET", configMaps+"?watch=1&timeoutSeconds=600&allowWatchBookmarks=true", nil))
		time.Sleep(90 * time.Second)
		a.must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "elsewhere"}})
		now := a.must(200, "GET", configMaps, nil).version()
		list := w.ended()
		require.NotEmpty(t, list)
		last := "0"
		assert.Equal(t, map[string]any{"k8s.io/initial-events-end": "true"}, at(list[0].Object, "metadata", "annotations"), "one that names no version gets the state first")
		for i, e := range list {
			assert.Equal(t, "BOOKMARK", e.Type)
			assert.Equal(t, "ConfigMap", e.Object["kind"])
			assert.Len(t, e.Object["metadata"], 1+max(0, 1-i))
			assert.GreaterOrEqual(t, number(t, e.version()), number(t, last))
			last = e.version()
		}
		assert.Equal(t, now, last)

		// Without the parameter it lasts 30 to 60 minutes.
		begun = time.Now()
		assert.Empty(t, newWatching(t, a.open(t.Context(), "GET", configMaps+"?watch=1", nil)).ended())
		assert.GreaterOrEqual(t, time.Since(begun), 30*time.Minute)
		assert.LessOrEqual(t, time.Since(begun), time.Hour)
	})
}

// TestWatchForms: the old paths, items, tables, metadata only.
func TestWatchForms(t *testing.T) {
	for profile, group := range map[names.Profile]string{names.Orch: "meta.orch.io", names.Kubernetes: "meta.k8s.io"} {
		a := inProcess(t, servertest.New(t, func(b *server.Builder) { b.Names = profile }))
		a.must(201, "POST", configMaps, newConfigMap("a"))
		a.must(201, "POST", configMaps, newConfigMap("b"))
		assert.Equal(t, []string{"ADDED a", "ADDED b"}, a.watch("/api/v1/watch/namespaces/default/configmaps").some(2))
		assert.Equal(t, []string{"ADDED a", "ADDED b"}, a.watch("/api/v1/watch/configmaps").some(2))
		assert.Equal(t, []string{"ADDED b"}, a.watch("/api/v1/watch/namespaces/default/configmaps/b").some(1))
		assert.Equal(t, "ConfigMap", a.must(200, "GET", configMaps+"/a?watch=true", nil).body["kind"])

		part := a.watch(configMaps+"?watch=1", "Accept", "application/json;as=PartialObjectMetadata;g="+group+";v=v1").next()
		assert.Equal(t, "PartialObjectMetadata", part.Object["kind"])
		assert.Equal(t, group+"/v1", part.Object["apiVersion"])
		assert.Nil(t, part.Object["data"])
		w := a.watch(configMaps+"?watch=1", "Accept", "application/json;as=Table;g="+group+";v=v1")
		assert.Len(t, w.next().Object["columnDefinitions"], 3)
		assert.Nil(t, w.next().Object["columnDefinitions"])
		got := a.must(200, "GET", "/api/v1/namespaces?"+url.Values{"fieldSelector": {"metadata.name=default"}}.Encode(), nil)
		assert.Equal(t, []string{"default"}, got.names())
	}
}
