package watchstream_test

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
)

// mark creates an object that ends the events which a test reads.
func (h *history) mark() { h.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("mark")) }

// until returns the events up to that of the object last, without bookmarks.
func until(w *apitest.Watcher, last string) string {
	var list []string
	for {
		e := w.Next()
		if e.Type == "BOOKMARK" {
			continue
		}
		list = append(list, e.String())
		if e.Name() == last {
			return strings.Join(list, ", ")
		}
	}
}

// TestWatchVersions checks watches with all kinds of resourceVersion and sendInitialEvents.
func TestWatchVersions(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
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
			w := h.Watch(apitest.ConfigMapsPath + "?watch=true" + h.fill(query))
			if want == "" {
				w.Close()
				continue
			}
			assert.Equal(t, want, until(w, "mark"), query)
			w.Close()
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
			got := h.Do("GET", apitest.ConfigMapsPath+"?watch=true"+h.fill(query), nil)
			assert.Equal(t, code, got.Code, query)
			got.RequireStatus(t)
		}
	})
}

// TestWatchListEndsWithBookmark starts a watch like an informer, in both names profiles: the
// objects are followed by an annotated bookmark.
func TestWatchListEndsWithBookmark(t *testing.T) {
	t.Parallel()
	for profile, annotation := range map[names.Profile]string{names.Orch: "orch.io/initial-events-end", names.Kubernetes: "k8s.io/initial-events-end"} {
		s := servertest.New(t, func(b *server.Builder) { b.Names = profile })
		a := apitest.InProcess(t, s)
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
		now := a.Must(200, "GET", apitest.ConfigMapsPath, nil).ResourceVersion()
		const query = "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
		w := a.Watch(apitest.ConfigMapsPath + query)
		assert.Equal(t, "ADDED a", w.Next().String())
		end := w.Next()
		assert.Equal(t, "BOOKMARK", end.Type)
		assert.Equal(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"resourceVersion": now, "annotations": map[string]any{annotation: "true"}}}, end.Object)
		a.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
		assert.Equal(t, "DELETED a", w.Next().String())
		// Without objects, the bookmark is the first event.
		assert.Equal(t, "BOOKMARK", a.Watch(apitest.ConfigMapsPath+query).Next().Type)
	}
}

// TestWatchDeletedHasLastMatchingState checks that a DELETED event has the last state that matched
// the selector and the revision of the deletion, from which another watch can continue.
func TestWatchDeletedHasLastMatchingState(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		w := a.Watch(apitest.ConfigMapsPath + "?watch=true&labelSelector=on%3Dyes")
		label := func(value string) string { return `{"metadata":{"labels":{"on":"` + value + `"}}}` }
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a", "v", "1"))
		entered := a.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", label("yes"))
		a.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", `{"data":{"v":"2"}}`)
		left := a.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", label("no"))
		a.Must(200, "PATCH", apitest.ConfigMapsPath+"/a", label("yes"))
		a.Must(200, "DELETE", apitest.ConfigMapsPath+"/a", nil)
		after := a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("b"))

		e := w.Next()
		assert.Equal(t, "ADDED", e.Type)
		assert.Equal(t, entered.ResourceVersion(), e.ResourceVersion())
		assert.Equal(t, "MODIFIED", w.Next().Type)
		e = w.Next()
		assert.Equal(t, "DELETED", e.Type)
		assert.Equal(t, left.ResourceVersion(), e.ResourceVersion())
		assert.Equal(t, "yes", apitest.NestedString(e.Object, "metadata", "labels", "on"), "the last state that matched")
		assert.Equal(t, "2", apitest.NestedString(e.Object, "data", "v"))
		back := w.Next()
		assert.Equal(t, "ADDED", back.Type)
		gone := w.Next()
		assert.Equal(t, "DELETED", gone.Type)
		assert.Equal(t, apitest.Revision(t, back.ResourceVersion())+1, apitest.Revision(t, gone.ResourceVersion()))
		assert.Equal(t, apitest.Revision(t, after.ResourceVersion())-1, apitest.Revision(t, gone.ResourceVersion()))
		assert.Equal(t, "2", apitest.NestedString(gone.Object, "data", "v"))
		assert.Equal(t, "ADDED b", a.Watch(apitest.ConfigMapsPath+"?watch=1&resourceVersion="+gone.ResourceVersion()).Next().String())
	})
}

// TestWatchAtFutureVersion checks that a watch at a future version delivers only events after that
// version.
func TestWatchAtFutureVersion(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		now := apitest.Revision(t, a.Must(200, "GET", apitest.ConfigMapsPath, nil).ResourceVersion())
		w := a.Watch(apitest.ConfigMapsPath + "?watch=1&resourceVersion=" + strconv.Itoa(now+2))
		for _, n := range []string{"a", "b", "c"} {
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(n))
		}
		e := w.Next()
		assert.Equal(t, "ADDED c", e.String())
		assert.Equal(t, strconv.Itoa(now+3), e.ResourceVersion())
	})
}

// TestWatchEndsAfterTimeout checks the duration of watches, and their bookmarks.
func TestWatchEndsAfterTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := apitest.InProcess(t, servertest.New(t))
		begun := time.Now()
		w := a.Watch(apitest.ConfigMapsPath + "?watch=1&timeoutSeconds=50&allowWatchBookmarks=true&resourceVersion=1")
		end := w.ReadAll()
		require.Len(t, end, 1)
		assert.Equal(t, "BOOKMARK", end[0].Type, "the revision from which the next watch continues")
		assert.Equal(t, a.Must(200, "GET", apitest.ConfigMapsPath, nil).ResourceVersion(), end[0].ResourceVersion())
		assert.Equal(t, 50*time.Second, time.Since(begun))
		begun = time.Now()
		assert.Empty(t, apitest.NewWatcher(t, a.Open(t.Context(), "GET", apitest.ConfigMapsPath+"?watch=1&timeoutSeconds=50&resourceVersion=1", nil)).ReadAll())
		assert.Equal(t, 50*time.Second, time.Since(begun))

		w = apitest.NewWatcher(t, a.Open(t.Context(), "GET", apitest.ConfigMapsPath+"?watch=1&timeoutSeconds=600&allowWatchBookmarks=true", nil))
		time.Sleep(90 * time.Second)
		a.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "elsewhere"}})
		now := a.Must(200, "GET", apitest.ConfigMapsPath, nil).ResourceVersion()
		list := w.ReadAll()
		require.NotEmpty(t, list)
		last := "0"
		assert.Equal(t, map[string]any{"k8s.io/initial-events-end": "true"}, apitest.Nested(list[0].Object, "metadata", "annotations"), "a watch without a version begins with the current state")
		for i, e := range list {
			assert.Equal(t, "BOOKMARK", e.Type)
			assert.Equal(t, "ConfigMap", e.Object["kind"])
			assert.Len(t, e.Object["metadata"], 1+max(0, 1-i))
			assert.GreaterOrEqual(t, apitest.Revision(t, e.ResourceVersion()), apitest.Revision(t, last))
			last = e.ResourceVersion()
		}
		assert.Equal(t, now, last)

		// Without timeoutSeconds, a watch lasts 30 to 60 minutes.
		begun = time.Now()
		assert.Empty(t, apitest.NewWatcher(t, a.Open(t.Context(), "GET", apitest.ConfigMapsPath+"?watch=1", nil)).ReadAll())
		assert.GreaterOrEqual(t, time.Since(begun), 30*time.Minute)
		assert.LessOrEqual(t, time.Since(begun), time.Hour)
	})
}

// TestWatchViews watches by deprecated paths, single items, Tables and metadata.
func TestWatchViews(t *testing.T) {
	t.Parallel()
	for profile, group := range map[names.Profile]string{names.Orch: "meta.orch.io", names.Kubernetes: "meta.k8s.io"} {
		a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Names = profile }))
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("a"))
		a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("b"))
		assert.Equal(t, []string{"ADDED a", "ADDED b"}, a.Watch("/api/v1/watch/namespaces/default/configmaps").NextN(2))
		assert.Equal(t, []string{"ADDED a", "ADDED b"}, a.Watch("/api/v1/watch/configmaps").NextN(2))
		assert.Equal(t, []string{"ADDED b"}, a.Watch("/api/v1/watch/namespaces/default/configmaps/b").NextN(1))
		assert.Equal(t, "ConfigMap", a.Must(200, "GET", apitest.ConfigMapsPath+"/a?watch=true", nil).Body["kind"])

		part := a.Watch(apitest.ConfigMapsPath+"?watch=1", "Accept", "application/json;as=PartialObjectMetadata;g="+group+";v=v1").Next()
		assert.Equal(t, "PartialObjectMetadata", part.Object["kind"])
		assert.Equal(t, group+"/v1", part.Object["apiVersion"])
		assert.Nil(t, part.Object["data"])
		w := a.Watch(apitest.ConfigMapsPath+"?watch=1", "Accept", "application/json;as=Table;g="+group+";v=v1")
		assert.Len(t, w.Next().Object["columnDefinitions"], 3)
		assert.Nil(t, w.Next().Object["columnDefinitions"])
		got := a.Must(200, "GET", "/api/v1/namespaces?"+url.Values{"fieldSelector": {"metadata.name=default"}}.Encode(), nil)
		assert.Equal(t, []string{"default"}, got.Names())
	}
}
