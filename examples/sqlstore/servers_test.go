package sqlstore_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

const maps = "http://in-process/api/v1/namespaces/default/configmaps"

// TestTwoServersShareADatabase: a write through one server is visible through the other at once, in
// reads, watches and conflict checks.
func TestTwoServersShareADatabase(t *testing.T) {
	t.Parallel()
	o := empty(t)
	var clients []*http.Client
	for range 2 {
		s := servertest.New(t, func(b *server.Builder) { b.Storage = openAt(t, o) })
		clients = append(clients, &http.Client{Transport: s.Transport()})
	}
	ask(t, clients[0], http.StatusCreated, "POST", maps, `{"metadata":{"name":"shared"},"data":{"writer":"none"}}`)
	watch, err := clients[1].Get(maps + "?watch=true&fieldSelector=metadata.name%3Dshared")
	require.NoError(t, err)
	defer watch.Body.Close()
	events := json.NewDecoder(watch.Body)
	for i := range 20 {
		writer, reader := clients[i%2], clients[(i+1)%2]
		mine := ask(t, writer, http.StatusOK, "PATCH", maps+"/shared", fmt.Sprintf(`{"data":{"writer":"%d"}}`, i))
		theirs := ask(t, reader, http.StatusOK, "GET", maps+"/shared", "")
		require.Equal(t, mine, theirs)
		require.Equal(t, fmt.Sprint(i), theirs.Data["writer"])
	}
	old := ask(t, clients[0], http.StatusOK, "GET", maps+"/shared", "")
	ask(t, clients[1], http.StatusOK, "PATCH", maps+"/shared", `{"data":{"writer":"last"}}`)
	ask(t, clients[0], http.StatusConflict, "PUT", maps+"/shared",
		fmt.Sprintf(`{"metadata":{"name":"shared","resourceVersion":%q}}`, old.Metadata.ResourceVersion))
	var seen []string
	for len(seen) == 0 || seen[len(seen)-1] != "last" {
		var e struct {
			Type   string
			Object object
		}
		require.NoError(t, events.Decode(&e))
		require.Contains(t, []string{"ADDED", "MODIFIED"}, e.Type)
		seen = append(seen, e.Object.Data["writer"])
	}
	want := []string{"none"}
	for i := range 20 {
		want = append(want, fmt.Sprint(i))
	}
	require.Equal(t, append(want, "last"), seen)
}

type object struct {
	Metadata struct{ ResourceVersion string }
	Data     map[string]string
}

func ask(t testing.TB, c *http.Client, code int, method, url, body string) (o object) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", map[string]string{"PATCH": "application/merge-patch+json"}[method])
	if method == "POST" || method == "PUT" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, code, answer.StatusCode, "%s %s: %s", method, url, b)
	require.NoError(t, json.Unmarshal(b, &o))
	return o
}
