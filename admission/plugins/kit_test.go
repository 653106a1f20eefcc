package plugins_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
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

// step is a request to a server and its expected answer.
type step struct {
	// as is a user and the groups, separated by commas; empty is an administrator. The user may do everything
	// that is not taken away by groups such as "without delete configmaps".
	as   string
	do   string // method and path; a path without a leading slash is in the namespace default
	body string // YAML; kind and version are optional

	// want is the status code and, for an error, the end of the message, or YAML of fields that the answer
	// must have. Lists must have the same length, null means that the field is missing, {} that it is empty.
	want string
	warn string // substring of the warnings
}

// newServer returns a server with the given options. It runs the mutating phase of every write twice.
func newServer(t *testing.T, o admission.Options, configure ...func(*server.Builder)) *servertest.Server {
	return servertest.New(t, slices.Concat([]func(*server.Builder){func(b *server.Builder) {
		b.AdmissionOptions = o
		b.Admission = append(b.Admission, rerunMutation())
		b.Authenticators = append(b.Authenticators, auth.AuthenticatorFunc(func(r *http.Request) (*auth.User, error) {
			who := strings.Split(r.Header.Get("Test-User"), ",")
			return &auth.User{Name: who[0], Groups: append(who[1:], auth.Authenticated)}, nil
		}))
		b.Authorizer = auth.AuthorizerFunc(func(_ context.Context, a auth.Attributes) (auth.Decision, string, error) {
			resource := a.Resource
			if a.Subresource != "" {
				resource += "/" + a.Subresource
			}
			if slices.Contains(a.User.Groups, "without "+a.Verb+" "+resource) {
				return auth.Deny, "", nil
			}
			return auth.Allow, "", nil
		})
	}}, configure)...)
}

// rerunMutation runs the mutating phase again, as after a webhook. The second run must change nothing.
func rerunMutation() admission.Plugin {
	var first sync.Map
	return admission.Plugin{Name: "Twice", Mutate: func(_ context.Context, r *admission.Request) error {
		if r.Pass == 0 {
			first.Store(r, r.Object.Clone())
			r.Reinvoke()
			return nil
		}
		was, _ := first.LoadAndDelete(r)
		if !meta.Equal(was.(*meta.Object).Clone().Tree(), r.Object.Tree()) {
			return meta.Internal(errors.New("the second pass changed the object"))
		}
		return nil
	}}
}

// podSpec returns a pod with a container and the given fields of its spec.
func podSpec(name, spec string) string {
	return `{metadata: {name: ` + name + `}, spec: {containers: [{name: c, image: i}]` + spec + `}}`
}

// runSteps runs steps in order, up to the first step that fails.
func runSteps(t *testing.T, s *servertest.Server, steps ...step) {
	t.Helper()
	for _, st := range steps {
		if !t.Run(st.do+" "+st.want, func(t *testing.T) { st.run(t, s) }) {
			t.FailNow()
		}
	}
}

func (st step) run(t *testing.T, s *servertest.Server) {
	method, path, _ := strings.Cut(st.do, " ")
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/namespaces/default/" + path
	}
	var body io.Reader
	if st.body != "" {
		data, err := yaml.YAMLToJSONStrict([]byte(st.body))
		require.NoError(t, err)
		body = strings.NewReader(string(data))
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.Host()+path, body)
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
	raw, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(raw, &got), "%s", raw)

	code, want, _ := strings.Cut(st.want, " ")
	require.Equal(t, code, strconv.Itoa(answer.StatusCode), "%s", raw)
	assert.Contains(t, strings.Join(answer.Header.Values("Warning"), "\n"), st.warn)
	switch {
	case answer.StatusCode >= 400:
		require.NotEmpty(t, want, "%s", raw)
		message, _, _ := strings.Cut(meta.NewObject(got).String("message"), " (audit ID ")
		assert.True(t, strings.HasSuffix(message, want), message)
	case want != "":
		var part any
		require.NoError(t, yaml.UnmarshalStrict([]byte(want), &part))
		assert.Equal(t, part, common(part, got))
	}
}

// common returns the part of got that want mentions.
func common(want, got any) any {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok || len(want) == 0 {
			return got
		}
		out := map[string]any{}
		for k, w := range want {
			v, there := have[k]
			if there && v == nil {
				v = "null"
			}
			out[k] = common(w, v)
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
