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

// writer is a client that updates the objects of a test.
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

// TestUnreachableServerIsProbedOnce: only one version of an unreachable server is requested, and the conditions of
// all its versions are updated.
func TestUnreachableServerIsProbedOnce(t *testing.T) {
	o := &objects{}
	const versions = 60
	for i := range versions {
		o.put(fmt.Sprintf("v1.g%d.com", i), remote(fmt.Sprintf("g%d.com", i)))
	}
	a, requests := newTest(o), 0
	a.o.Services = func(context.Context, services.Service) (services.Endpoint, error) {
		requests++
		return services.Endpoint{}, errors.New("unreachable")
	}
	w := &writer{o: o}
	require.Len(t, a.Table().servers, 1)
	keys := map[string]bool{}
	for _, v := range a.Table().AllRemote() {
		for _, key := range a.keysToProbe(v.Name) {
			keys[key] = true
		}
	}
	require.Len(t, keys, 1)
	for key := range keys {
		assert.False(t, a.Settled())
		again, err := a.reconcile(t.Context(), w, key)
		require.NoError(t, err)
		assert.Equal(t, probeRetry, again)
	}
	assert.True(t, a.Settled())
	assert.Equal(t, checkTries, requests)
	assert.Equal(t, versions, w.writes)
	for _, r := range o.list {
		assert.Equal(t, statusFalse, stateOf(r.Object()).status)
	}
}

// TestSettledAfterStartupTime: a server that never responds does not keep this server from becoming ready.
func TestSettledAfterStartupTime(t *testing.T) {
	o := &objects{}
	o.put("v1.example.com", remote("example.com"))
	a := newTest(o)
	assert.False(t, a.Settled())
	a.started = a.started.Add(-startupTime)
	assert.True(t, a.Settled())
	o.put("v1.other.com", remote("other.com", "caBundle", "eA=="))
	assert.True(t, a.Settled(), "later servers do not count")
}

// TestConditionWritesAreLimited: the condition of a server that comes and goes is written several times and then at
// intervals. Changes of the message alone cause no further writes.
func TestConditionWritesAreLimited(t *testing.T) {
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
		last, err = a.writeCondition(t.Context(), w, a.Table().Remote(example), s)
		require.NoError(t, err)
	}
	assert.Equal(t, writesAtOnce, w.writes)
	assert.Positive(t, last, "the last state still has to be written")
	a.known["v1.example.com"].result.paid = time.Time{}
	for i := range 100 {
		_, err := a.writeCondition(t.Context(), w, a.Table().Remote(example), state{statusFalse, "FailedDiscoveryCheck", fmt.Sprint("text ", i)})
		require.NoError(t, err)
	}
	assert.Equal(t, writesAtOnce, w.writes, "only the message has changed, shortly after the last write")
}

// TestKeysToProbe: an APIService is probed if its server changes, or if its condition differs from the last result,
// and not after other changes.
func TestKeysToProbe(t *testing.T) {
	o := &objects{}
	const name = "v1.example.com"
	o.put(name, remote("example.com"))
	a, w := newTest(o), &writer{o: o}
	key := a.Table().Remote(example).transport.key
	assert.Equal(t, []string{key}, a.keysToProbe(name))
	_, err := a.reconcile(t.Context(), w, key)
	require.NoError(t, err)
	assert.Equal(t, 1, w.writes)
	assert.Empty(t, a.keysToProbe(name), "the condition is that of the probe")
	found := stateOf(o.list[0].Object())
	o.setCondition(name, state{found.status, found.reason, "another text"})
	assert.Empty(t, a.keysToProbe(name))
	o.put(name, remote("example.com", "versionPriority", int64(5)))
	o.setCondition(name, found)
	assert.Empty(t, a.keysToProbe(name))
	o.setCondition(name, state{statusTrue, "Passed", "written by a user"})
	assert.Equal(t, []string{key}, a.keysToProbe(name))
	o.put(name, remote("example.com", "insecureSkipTLSVerify", true))
	assert.NotEqual(t, key, a.keysToProbe(name)[0])
	o.put(name, map[string]any{"group": "example.com", "version": "v1"})
	assert.Equal(t, []string{name}, a.keysToProbe(name))
	_, err = a.reconcile(t.Context(), w, name)
	require.NoError(t, err)
	assert.Equal(t, "Local", stateOf(o.list[0].Object()).reason)
	assert.Empty(t, a.keysToProbe(name))
	o.list = nil
	o.revision++
	assert.Equal(t, []string{name}, a.keysToProbe(name))
	_, err = a.reconcile(t.Context(), w, name)
	require.NoError(t, err)
	assert.Empty(t, a.transports)
}

// TestDocumentsAreReadForRecreatedAPIService: the documents of a version are read again if its APIService was
// recreated, even if the documents have not changed.
func TestDocumentsAreReadForRecreatedAPIService(t *testing.T) {
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
		for _, b := range a.Table().servers {
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

// TestDocumentIsMergedWhenThereIsRoom: a document that exceeded the limit is used after another document is gone.
func TestDocumentIsMergedWhenThereIsRoom(t *testing.T) {
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
			v.transport.reading.at = time.Time{}
			require.True(t, a.readOpenAPI(t.Context(), a.Table().servers[v.transport.key]))
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
	o.list, o.revision = o.list[:3], o.revision+1 // without v1.g0.com
	assert.Equal(t, []string{"v1.g1.com", "v1.g2.com", "v1.g3.com"}, read())
}
