package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/services"
)

// writer writes the objects of a test.
type writer struct {
	client.Client
	o      *objects
	writes int
}

func (w *writer) Update(_ context.Context, _ meta.GroupResource, key meta.Key, _ string, change func(*meta.Object) error) (*meta.Object, error) {
	for i, r := range w.o.list {
		if r.Name != key.Name {
			continue
		}
		obj := r.Object().Clone()
		if err := change(obj); err != nil || meta.Equal(obj.Tree(), r.Object().Tree()) {
			return obj, err
		}
		w.writes++
		w.o.revision++
		w.o.list[i] = Record{Name: r.Name, Revision: w.o.revision, Object: func() *meta.Object { return obj }}
		return obj, nil
	}
	return nil, meta.NotFound(meta.GroupResource{}, key.Name)
}

// TestOneLookPerServer: a server that does not answer is asked for one of its versions, and
// the conditions of all say so.
func TestOneLookPerServer(t *testing.T) {
	o := &objects{}
	const versions = 60
	for i := range versions {
		o.put(fmt.Sprintf("v1.g%d.com", i), remote(fmt.Sprintf("g%d.com", i)))
	}
	a, asked := newTest(o), 0
	a.o.Services = func(context.Context, services.Service) (services.Endpoint, error) {
		asked++
		return services.Endpoint{}, errors.New("nowhere")
	}
	w := &writer{o: o}
	require.Len(t, a.Table().backs, 1)
	keys := map[string]bool{}
	for _, v := range a.Table().AllRemote() {
		for _, key := range a.due(v.Name) {
			keys[key] = true
		}
	}
	require.Len(t, keys, 1)
	for key := range keys {
		assert.False(t, a.Settled())
		again, err := a.look(t.Context(), w, key)
		require.NoError(t, err)
		assert.Equal(t, lookSooner, again)
	}
	assert.True(t, a.Settled())
	assert.Equal(t, checkTries, asked)
	assert.Equal(t, versions, w.writes)
	for _, r := range o.list {
		assert.Equal(t, statusFalse, stateOf(r.Object()).status)
	}
}

// TestSettledInTime: who never answers does not keep the server from being ready.
func TestSettledInTime(t *testing.T) {
	o := &objects{}
	o.put("v1.example.com", remote("example.com"))
	a := newTest(o)
	assert.False(t, a.Settled())
	a.born = a.born.Add(-firstLooks)
	assert.True(t, a.Settled())
	o.put("v1.other.com", remote("other.com", "caBundle", "eA=="))
	assert.True(t, a.Settled(), "what comes later makes nobody wait")
}

// TestFlapping: a server that comes and goes has its condition written some times, and then
// now and then; no other text makes it more.
func TestFlapping(t *testing.T) {
	o := &objects{}
	o.put("v1.example.com", remote("example.com"))
	a, w := newTest(o), &writer{o: o}
	var last time.Duration
	for i := range 100 {
		s := state{statusTrue, "Passed", "all checks passed"}
		if i%2 == 0 {
			s = state{statusFalse, "FailedDiscoveryCheck", fmt.Sprint(i)}
		}
		var err error
		last, err = a.tell(t.Context(), w, a.Table().Remote(example), s)
		require.NoError(t, err)
	}
	assert.Equal(t, writesAtOnce, w.writes)
	assert.Positive(t, last, "what was found last is written yet")
	a.known["v1.example.com"].verdict.paid = time.Time{}
	for i := range 100 {
		_, err := a.tell(t.Context(), w, a.Table().Remote(example), state{statusFalse, "FailedDiscoveryCheck", fmt.Sprint("text ", i)})
		require.NoError(t, err)
	}
	assert.Equal(t, writesAtOnce, w.writes, "the state is the same, and its text was told a moment ago")
}

// TestWhatStartsALook: an object that leads elsewhere does, and one whose condition is not
// what was found; no other change does.
func TestWhatStartsALook(t *testing.T) {
	o := &objects{}
	const name = "v1.example.com"
	o.put(name, remote("example.com"))
	a, w := newTest(o), &writer{o: o}
	key := a.Table().Remote(example).way.key
	assert.Equal(t, []string{key}, a.due(name))
	_, err := a.look(t.Context(), w, key)
	require.NoError(t, err)
	assert.Equal(t, 1, w.writes)
	assert.Empty(t, a.due(name), "the write of the look itself")
	found := stateOf(o.list[0].Object())
	o.tell(name, state{found.status, found.reason, "another text"})
	assert.Empty(t, a.due(name))
	o.put(name, remote("example.com", "versionPriority", int64(5)))
	o.tell(name, found)
	assert.Empty(t, a.due(name))
	o.tell(name, state{statusTrue, "Passed", "somebody says so"})
	assert.Equal(t, []string{key}, a.due(name))
	o.put(name, remote("example.com", "insecureSkipTLSVerify", true))
	assert.NotEqual(t, key, a.due(name)[0])
	o.put(name, map[string]any{"group": "example.com", "version": "v1"})
	assert.Equal(t, []string{name}, a.due(name))
	_, err = a.look(t.Context(), w, name)
	require.NoError(t, err)
	assert.Equal(t, "Local", stateOf(o.list[0].Object()).reason)
	assert.Empty(t, a.due(name))
	o.list = nil
	o.revision++
	assert.Equal(t, []string{name}, a.due(name))
	_, err = a.look(t.Context(), w, name)
	require.NoError(t, err)
	assert.Empty(t, a.ways)
}

// TestReadAgain: the documents of a version are read of a server whose documents did not
// change, if the APIService is another one of the same name.
func TestReadAgain(t *testing.T) {
	o := &objects{}
	o.put("v1.a.com", remote("a.com"))
	o.put("v1.b.com", remote("b.com"))
	a := newTest(o)
	a.o.Services = func(context.Context, services.Service) (services.Endpoint, error) {
		return services.Endpoint{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			const body = `{"paths":{"apis/a.com/v1":{"serverRelativeURL":"/openapi/v3/apis/a.com/v1?hash=A"},"apis/b.com/v1":{"serverRelativeURL":"/openapi/v3/apis/b.com/v1?hash=B"}}}`
			switch {
			case r.URL.Path != indexPath:
				http.NotFound(w, r)
			case r.Header.Get("If-None-Match") == `"1"`:
				w.WriteHeader(http.StatusNotModified)
			default:
				w.Header().Set("ETag", `"1"`)
				_, _ = w.Write([]byte(body))
			}
		})}, nil
	}
	read := func() (hashes []string) {
		for _, b := range a.Table().backs {
			require.True(t, a.readOpenAPI(t.Context(), b))
		}
		for _, v := range a.Table().AllRemote() {
			hashes = append(hashes, v.Documents.Hash)
		}
		return hashes
	}
	require.Equal(t, []string{"A", "B"}, read())
	kept := o.list
	o.list, o.revision = kept[1:], o.revision+1
	require.Len(t, a.Table().AllRemote(), 1)
	o.list, o.revision = kept, o.revision+1
	assert.Equal(t, []string{"A", "B"}, read())
}

// TestRoomAgain: a document that others left no room for is part of the whole once there is.
func TestRoomAgain(t *testing.T) {
	o := &objects{}
	const size = 5 << 20
	for i := range 4 {
		o.put(fmt.Sprintf("v1.g%d.com", i), remote(fmt.Sprintf("g%d.com", i), "service", map[string]any{"namespace": "a", "name": fmt.Sprint("s", i)}))
	}
	a := newTest(o)
	a.o.Services = func(_ context.Context, s services.Service) (services.Endpoint, error) {
		return services.Endpoint{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != swaggerPath:
				http.NotFound(w, r)
			case r.Header.Get("If-None-Match") == `"1"`:
				w.WriteHeader(http.StatusNotModified)
			default:
				w.Header().Set("ETag", `"1"`)
				fmt.Fprintf(w, `{"swagger":"2.0","paths":{"/apis/g%s.com/v1":{"get":{"description":"%s","responses":{}}}}}`, s.Name[1:], strings.Repeat("x", size))
			}
		})}, nil
	}
	read := func() (known []string) {
		for _, v := range a.Table().AllRemote() {
			v.way.reading.at = time.Time{}
			require.True(t, a.readOpenAPI(t.Context(), a.Table().backs[v.way.key]))
		}
		for _, v := range a.Table().AllRemote() {
			if v.Documents.Swagger != nil {
				known = append(known, v.Name)
			}
		}
		return known
	}
	require.Equal(t, []string{"v1.g0.com", "v1.g1.com", "v1.g2.com"}, read())
	require.Equal(t, []string{"v1.g0.com", "v1.g1.com", "v1.g2.com"}, read())
	o.list, o.revision = o.list[:3], o.revision+1 // without the first
	assert.Equal(t, []string{"v1.g1.com", "v1.g2.com", "v1.g3.com"}, read())
}
