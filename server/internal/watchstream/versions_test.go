package watchstream_test

import (
	"encoding/base64"
	"fmt"
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
	"orch.io/controlplane/storage/badgerstore"
)

// history is a collection with three states: at version before it has a, b and c; then a was
// changed, b deleted and d created, which is version now.
type history struct {
	*apitest.Client
	before, now, future string
	token               string // continue token of the list at before, after its first object
}

func newHistory(t *testing.T, store storage.Backend) *history {
	h := &history{Client: apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store), apitest.ShortFutureWait))}
	for _, n := range []string{"a", "b", "c"} {
		h.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(n, "v", "1"))
	}
	first := h.Must(200, "GET", apitest.ConfigMapsPath+"?limit=1", nil)
	h.before, h.token = first.ResourceVersion(), apitest.NestedString(first.Body, "metadata", "continue")
	h.Must(200, "PUT", apitest.ConfigMapsPath+"/a", apitest.NewConfigMap("a", "v", "2"))
	h.Must(200, "DELETE", apitest.ConfigMapsPath+"/b", nil)
	h.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap("d", "v", "1"))
	h.now = h.Must(200, "GET", apitest.ConfigMapsPath, nil).ResourceVersion()
	h.future = strconv.Itoa(apitest.Revision(t, h.now) + 1000)
	return h
}

// fill replaces the placeholders in a query by the versions of the history.
func (h *history) fill(query string) string {
	return strings.NewReplacer("BEFORE", h.before, "NOW", h.now, "FUTURE", h.future, "TOKEN", url.QueryEscape(h.token)).Replace(query)
}

// TestGetVersions checks gets with all kinds of resourceVersion.
func TestGetVersions(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		h := newHistory(t, store)
		for _, c := range []struct {
			query  string
			code   int
			reason string
		}{
			{"", 200, ""},
			{"?resourceVersion=", 200, ""},
			{"?resourceVersion=0", 200, ""},
			{"?resourceVersion=BEFORE", 200, ""},
			{"?resourceVersion=NOW", 200, ""},
			{"?resourceVersion=FUTURE", 504, "Timeout"},
			{"?resourceVersion=9223372036854775807", 504, "Timeout"},
			{"?resourceVersion=-1", 400, "BadRequest"},
			{"?resourceVersion=x", 400, "BadRequest"},
			{"?resourceVersion=99999999999999999999", 400, "BadRequest"},
		} {
			got := h.Must(c.code, "GET", apitest.ConfigMapsPath+"/a"+h.fill(c.query), nil)
			if c.code == 200 {
				assert.Equal(t, "2", apitest.NestedString(got.Body, "data", "v"), c.query)
				continue
			}
			assert.Equal(t, c.reason, got.Body["reason"], c.query)
			if c.code == 504 {
				h.wantTooLarge(got)
			}
		}
		h.Must(404, "GET", apitest.ConfigMapsPath+"/b", nil)
		h.Must(404, "GET", apitest.ConfigMapsPath+"/b?resourceVersion="+h.before, nil)
	})
}

func (h *history) wantTooLarge(got apitest.Response) {
	assert.Equal(h.T, []string{"ResourceVersionTooLarge"}, got.Causes())
	assert.Contains(h.T, got.Body["message"], "Too large resource version")
	assert.NotEmpty(h.T, got.Header.Get("Retry-After"))
	assert.EqualValues(h.T, 1, apitest.Nested(got.Body, "details", "retryAfterSeconds"))
}

// TestListVersions checks lists with all combinations of resourceVersion and resourceVersionMatch.
func TestListVersions(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		h := newHistory(t, store)
		for _, c := range []struct {
			query string
			code  int
			names string
			data  string // of a
			at    string // resourceVersion of the list
		}{
			// resourceVersionMatch unset
			{"", 200, "a c d", "2", "NOW"},
			{"?resourceVersion=0", 200, "a c d", "2", "NOW"},
			{"?resourceVersion=BEFORE", 200, "a c d", "2", "NOW"},
			{"?resourceVersion=FUTURE", 504, "", "", ""},
			{"?limit=2", 200, "a c", "2", "NOW"},
			{"?limit=2&resourceVersion=0", 200, "a c", "2", "NOW"},
			{"?limit=2&resourceVersion=BEFORE", 200, "a b", "1", "BEFORE"},
			{"?limit=2&resourceVersion=NOW", 200, "a c", "2", "NOW"},
			{"?limit=2&resourceVersion=FUTURE", 504, "", "", ""},
			{"?limit=1&continue=TOKEN", 200, "b", "", "BEFORE"},
			{"?limit=9&continue=TOKEN", 200, "b c", "", "BEFORE"},
			{"?continue=TOKEN", 200, "b c", "", "BEFORE"},
			{"?limit=1&continue=TOKEN&resourceVersion=0", 200, "b", "", "BEFORE"},
			{"?limit=1&continue=TOKEN&resourceVersion=BEFORE", 400, "", "", ""},
			{"?limit=1&continue=TOKEN&resourceVersion=FUTURE", 400, "", "", ""},
			// Exact
			{"?resourceVersionMatch=Exact", 422, "", "", ""},
			{"?resourceVersionMatch=Exact&resourceVersion=0", 422, "", "", ""},
			{"?resourceVersionMatch=Exact&resourceVersion=BEFORE", 200, "a b c", "1", "BEFORE"},
			{"?resourceVersionMatch=Exact&resourceVersion=NOW", 200, "a c d", "2", "NOW"},
			{"?resourceVersionMatch=Exact&resourceVersion=FUTURE", 504, "", "", ""},
			{"?resourceVersionMatch=Exact&limit=2", 422, "", "", ""},
			{"?resourceVersionMatch=Exact&limit=2&resourceVersion=0", 422, "", "", ""},
			{"?resourceVersionMatch=Exact&limit=2&resourceVersion=BEFORE", 200, "a b", "1", "BEFORE"},
			{"?resourceVersionMatch=Exact&limit=2&continue=TOKEN&resourceVersion=BEFORE", 422, "", "", ""},
			// NotOlderThan
			{"?resourceVersionMatch=NotOlderThan", 422, "", "", ""},
			{"?resourceVersionMatch=NotOlderThan&resourceVersion=0", 200, "a c d", "2", "NOW"},
			{"?resourceVersionMatch=NotOlderThan&resourceVersion=BEFORE", 200, "a c d", "2", "NOW"},
			{"?resourceVersionMatch=NotOlderThan&resourceVersion=FUTURE", 504, "", "", ""},
			{"?resourceVersionMatch=NotOlderThan&limit=2", 422, "", "", ""},
			{"?resourceVersionMatch=NotOlderThan&limit=2&resourceVersion=0", 200, "a c", "2", "NOW"},
			{"?resourceVersionMatch=NotOlderThan&limit=2&resourceVersion=BEFORE", 200, "a c", "2", "NOW"},
			{"?resourceVersionMatch=NotOlderThan&limit=2&continue=TOKEN&resourceVersion=0", 422, "", "", ""},
			// neither
			{"?resourceVersionMatch=Nearly&resourceVersion=BEFORE", 422, "", "", ""},
			{"?resourceVersionMatch=exact&resourceVersion=BEFORE", 422, "", "", ""},
			{"?resourceVersion=BEFORE&sendInitialEvents=true", 422, "", "", ""},
			{"?resourceVersion=x", 400, "", "", ""},
			{"?resourceVersion=-1", 400, "", "", ""},
			{"?limit=x", 400, "", "", ""},
			{"?limit=-1", 200, "a c d", "2", "NOW"},
			{"?timeoutSeconds=x", 400, "", "", ""},
		} {
			got := h.Must(c.code, "GET", apitest.ConfigMapsPath+h.fill(c.query), nil)
			switch c.code {
			case 200:
				assert.Equal(t, c.names, strings.Join(got.Names(), " "), c.query)
				assert.Equal(t, h.fill(c.at), got.ResourceVersion(), c.query)
				for _, it := range got.Body["items"].([]any) {
					if apitest.NestedString(it, "metadata", "name") == "a" {
						assert.Equal(t, c.data, apitest.NestedString(it, "data", "v"), c.query)
					}
				}
			case 504:
				h.wantTooLarge(got)
			case 422:
				assert.Equal(t, "Invalid", got.Body["reason"], c.query)
				assert.NotEmpty(t, got.Causes(), c.query)
			}
		}
	})
}

// TestFutureListTimeout checks that a list at a future version has a Status cause also if
// timeoutSeconds passes before FutureWait, while the end of the request's timeout is a plain
// timeout.
func TestFutureListTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &history{Client: apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Limits.FutureWait = 3 * time.Second }))}
		for _, query := range []string{
			"", "&limit=2", "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan",
		} {
			h.wantTooLarge(h.Must(504, "GET", apitest.ConfigMapsPath+"?resourceVersion=1000000&timeoutSeconds=1"+query, nil))
			timed := h.Must(504, "GET", apitest.ConfigMapsPath+"?resourceVersion=1000000&timeoutSeconds=2&timeout=1s"+query, nil)
			assert.Empty(t, timed.Causes(), query)
			assert.Contains(t, timed.Body["message"], "did not complete within the allotted timeout", query)
		}
	})
}

// TestInvalidContinueTokens sends continue tokens that the server did not issue.
func TestInvalidContinueTokens(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		h := newHistory(t, store)
		encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
		for _, token := range []string{
			"x", "%00", encode("x"), encode("{}"), encode(`{"rv":1}`), encode(`{"rv":0,"start":"a"}`), encode(`{"rv":-5,"start":"default/a"}`),
			encode(`{"rv":99999999999999999999,"start":"default/a"}`), encode(`{"rv":1,"start":"default/a","more":1}`),
			encode(`{"rv":1,"start":"default/a"} trailing`), strings.Repeat("a", 10000), encode(strings.Repeat("[", 10000)),
		} {
			h.Must(400, "GET", apitest.ConfigMapsPath+"?continue="+token, nil)
		}
		// Well-formed tokens for a future version, and for keys outside the collection.
		future := encode(`{"rv":` + h.future + `,"start":"default/a"}`)
		got := h.Do("GET", apitest.ConfigMapsPath+"?continue="+future, nil)
		assert.Contains(t, []int{400, 410, 504}, got.Code)
		got.RequireStatus(t)
		h.Must(201, "POST", "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "other"}})
		h.Must(201, "POST", "/api/v1/namespaces/other/configmaps", apitest.NewConfigMap("secret"))
		for _, start := range []string{"", "a", "other/", "zzz", "default", "default/", "\x00", "default/\x00", "../other/secret"} {
			now := h.Must(200, "GET", apitest.ConfigMapsPath, nil).ResourceVersion()
			token := encode(fmt.Sprintf(`{"rv":%s,"start":%q}`, now, start))
			for _, token := range []string{token, encode(fmt.Sprintf(`{"rv":-1,"start":%q}`, start))} {
				got := h.Do("GET", apitest.ConfigMapsPath+"?continue="+token, nil)
				assert.Contains(t, []int{200, 400}, got.Code, "%q", start)
				assert.NotContains(t, got.Names(), "secret", "%q", start)
			}
		}
	})
}

// TestPagesAreOneSnapshot reads a list in pages during writes.
func TestPagesAreOneSnapshot(t *testing.T) {
	t.Parallel()
	apitest.OnStores(t, func(t *testing.T, store storage.Backend) {
		a := apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
		var want []string
		for i := range 30 {
			name := fmt.Sprintf("cm-%03d", i)
			a.Must(201, "POST", apitest.ConfigMapsPath, apitest.NewConfigMap(name, "v", "old", "k", strconv.Itoa(i)))
			want = append(want, name)
		}
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				a.Do("PUT", apitest.ConfigMapsPath+"/"+want[i%30], apitest.NewConfigMap(want[i%30], "v", strconv.Itoa(i)))
				a.Do("DELETE", apitest.ConfigMapsPath+"/"+want[(i*7)%30], nil)
				a.Do("POST", apitest.ConfigMapsPath, apitest.NewConfigMap(want[(i*7)%30]+"-x"))
			}
		}()
		defer func() { close(stop); <-done }()
		for range 5 {
			first := a.Must(200, "GET", apitest.ConfigMapsPath, nil)
			whole, version := first.Names(), first.ResourceVersion()
			var got []string
			page := a.Must(200, "GET", apitest.ConfigMapsPath+"?limit=4&resourceVersionMatch=Exact&resourceVersion="+version, nil)
			for {
				got = append(got, page.Names()...)
				require.Equal(t, version, page.ResourceVersion())
				token := apitest.NestedString(page.Body, "metadata", "continue")
				left := apitest.Nested(page.Body, "metadata", "remainingItemCount")
				if token == "" {
					assert.Nil(t, left)
					break
				}
				assert.EqualValues(t, len(whole)-len(got), left)
				page = a.Must(200, "GET", apitest.ConfigMapsPath+"?limit=4&continue="+url.QueryEscape(token), nil)
			}
			assert.Equal(t, whole, got)
		}
	})
}

// TestRemainingItemCount checks when a list has remainingItemCount and a continue token.
func TestRemainingItemCount(t *testing.T) {
	t.Parallel()
	for _, profile := range []names.Profile{names.Orch, names.Kubernetes} {
		a := apitest.InProcess(t, servertest.New(t, func(b *server.Builder) { b.Names = profile }))
		for i := range 5 {
			cm := apitest.NewConfigMap(fmt.Sprint("c", i))
			apitest.Nested(cm, "metadata").(map[string]any)["labels"] = map[string]any{"l": "1"}
			a.Must(201, "POST", apitest.ConfigMapsPath, cm)
		}
		for _, c := range []struct {
			query   string
			items   int
			token   bool
			remains any
		}{
			{"", 5, false, nil},
			{"?limit=5", 5, false, nil},
			{"?limit=6", 5, false, nil},
			{"?limit=4", 4, true, 1.0},
			{"?limit=1", 1, true, 4.0},
			{"?limit=1&labelSelector=l%3D1", 1, true, nil},
			{"?limit=1&fieldSelector=metadata.name!%3Dc0", 1, true, nil},
			{"?limit=9&labelSelector=l%3D2", 0, false, nil},
		} {
			got := a.Must(200, "GET", apitest.ConfigMapsPath+c.query, nil)
			assert.Equal(t, "ConfigMapList", got.Body["kind"])
			assert.Equal(t, "v1", got.Body["apiVersion"])
			assert.NotNil(t, got.Body["items"], c.query)
			assert.Len(t, got.Names(), c.items, c.query)
			assert.Equal(t, c.token, apitest.NestedString(got.Body, "metadata", "continue") != "", c.query)
			assert.Equal(t, c.remains, apitest.Nested(got.Body, "metadata", "remainingItemCount"), c.query)
		}
	}
}

// TestHistoryEnds checks, on every store, that tokens, exact versions and watches work until five
// minutes after their objects were replaced, and no longer.
func TestHistoryEnds(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(dir string) storage.Backend{
		"memstore": func(string) storage.Backend { return nil },
		"badgerstore": func(dir string) storage.Backend {
			s, err := badgerstore.Open(badgerstore.Options{Dir: dir})
			require.NoError(t, err)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { historyEnds(t, open(dir)) })
		})
	}
}

func historyEnds(t *testing.T, store storage.Backend) {
	h := newHistory(t, store)
	tick := func(d time.Duration) {
		time.Sleep(d)
		h.Must(200, "PUT", apitest.ConfigMapsPath+"/a", apitest.NewConfigMap("a", "v", time.Now().String()))
		synctest.Wait()
	}
	tick(4 * time.Minute)
	lists := []string{"?continue=TOKEN", "?resourceVersionMatch=Exact&resourceVersion=BEFORE", "?limit=1&resourceVersion=BEFORE"}
	for range 2 { // reading a state does not keep it longer
		for _, query := range lists {
			h.Must(200, "GET", h.fill(apitest.ConfigMapsPath+query), nil)
		}
		time.Sleep(time.Minute)
	}
	tick(10 * time.Second) // states may be kept slightly longer
	for _, query := range lists {
		got := h.Must(410, "GET", h.fill(apitest.ConfigMapsPath+query), nil)
		assert.Equal(t, "Expired", got.Body["reason"], query)
	}
	w := h.Watch(h.fill(apitest.ConfigMapsPath + "?watch=1&resourceVersion=BEFORE"))
	e := w.Next()
	assert.Equal(t, "ERROR", e.Type)
	assert.EqualValues(t, 410, e.Object["code"])
	assert.Equal(t, "Expired", e.Object["reason"])
	assert.Empty(t, w.ReadAll())

	// The response to an expired token has a token for the remainder of the list in its current
	// state.
	expired := h.Must(410, "GET", h.fill(apitest.ConfigMapsPath+"?limit=1&continue=TOKEN"), nil)
	assert.Contains(t, expired.Body["message"], "use the continue token in this response to retrieve the remainder of the results")
	token := url.QueryEscape(apitest.NestedString(expired.Body, "metadata", "continue"))
	now := h.Must(200, "GET", apitest.ConfigMapsPath, nil).ResourceVersion()
	rest := h.Must(200, "GET", apitest.ConfigMapsPath+"?limit=1&continue="+token, nil)
	assert.Equal(t, []string{"c"}, rest.Names())
	assert.Equal(t, now, rest.ResourceVersion())
	assert.EqualValues(t, 1, apitest.Nested(rest.Body, "metadata", "remainingItemCount"))
	rest = h.Must(200, "GET", apitest.ConfigMapsPath+"?continue="+url.QueryEscape(apitest.NestedString(rest.Body, "metadata", "continue")), nil)
	assert.Equal(t, []string{"d"}, rest.Names())
	assert.Equal(t, now, rest.ResourceVersion())
	assert.Equal(t, []string{"c", "d"}, h.Must(200, "GET", apitest.ConfigMapsPath+"?continue="+token, nil).Names())
	same := h.Must(410, "DELETE", h.fill(apitest.ConfigMapsPath+"?limit=1&continue=TOKEN"), nil)
	assert.Equal(t, apitest.NestedString(expired.Body, "metadata", "continue"), apitest.NestedString(same.Body, "metadata", "continue"))
}
