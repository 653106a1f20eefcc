package plugins_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// step is one request to a server and what comes of it.
type step struct {
	as   string // user and groups, with commas between; empty is an administrator
	do   string // method and path; what does not begin with a slash is in the namespace default
	body string // YAML; kind and version may be left out
	want string // the code and, of a refusal, a part of the message; else YAML that the answer has
}

// with is a server with plugins chosen.
func with(t *testing.T, o admission.Options) *servertest.Server {
	return servertest.New(t, func(b *server.Builder) {
		b.AdmissionOptions = o
		b.Authenticators = append(b.Authenticators, auth.AuthenticatorFunc(func(r *http.Request) (*auth.User, error) {
			name, groups, _ := strings.Cut(r.Header.Get("Test-User"), ",")
			return &auth.User{Name: name, Groups: append(strings.Split(groups, ","), auth.Authenticated)}, nil
		}))
	})
}

// walk takes steps one after the other.
func walk(t *testing.T, s *servertest.Server, steps ...step) {
	t.Helper()
	for _, st := range steps {
		ok := t.Run(st.do+" "+st.want, func(t *testing.T) { st.take(t, s) })
		if !ok && strings.HasPrefix(st.want, "2") {
			t.FailNow()
		}
	}
}

func (st step) take(t *testing.T, s *servertest.Server) {
	method, path, _ := strings.Cut(st.do, " ")
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/namespaces/default/" + path
	}
	body, err := yaml.YAMLToJSON([]byte(st.body))
	require.NoError(t, err)
	var content io.Reader
	if st.body != "" {
		content = strings.NewReader(string(body))
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.Host()+path, content)
	require.NoError(t, err)
	r.Header.Set("Test-User", st.as)
	if st.as == "" {
		r.Header.Set("Test-User", "admin,"+auth.Masters)
	}
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := s.Client().Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	var got map[string]any
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&got))

	code, want, _ := strings.Cut(st.want, " ")
	require.Equal(t, code, strconv.Itoa(answer.StatusCode), meta.NewObject(got).String("message"))
	switch {
	case answer.StatusCode >= 400:
		assert.Contains(t, got["message"], want)
	case want != "":
		var part any
		require.NoError(t, yaml.Unmarshal([]byte(want), &part))
		assert.Equal(t, part, common(part, got))
	}
}

// common returns of got what want speaks of: the fields of maps and, of lists as long as
// each other, item by item.
func common(want, got any) any {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return got
		}
		out := map[string]any{}
		for k, w := range want {
			out[k] = common(w, have[k])
		}
		return out
	case []any:
		have, ok := got.([]any)
		if !ok || len(have) != len(want) {
			return got
		}
		out := make([]any, len(want))
		for i := range want {
			out[i] = common(want[i], have[i])
		}
		return out
	}
	return got
}
