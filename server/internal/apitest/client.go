package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// Timeout bounds each wait of a test. It only ends tests that have already failed.
const Timeout = 5 * time.Minute

// Client sends requests to a server, over HTTP or in process, and fails the test if a request
// cannot be sent. Methods that return a Response read the body to its end.
type Client struct {
	T    testing.TB
	Base string
	HTTP *http.Client
}

// NewClient returns a Client of the server at base, a URL without a trailing slash.
func NewClient(t testing.TB, base string, client *http.Client) *Client {
	return &Client{t, base, client}
}

// InProcess returns a Client that calls the server without a network connection.
func InProcess(t testing.TB, s *servertest.Server) *Client { return NewClient(t, s.Host(), s.Client()) }

// Response is an HTTP response with its complete body.
type Response struct {
	Code   int
	Header http.Header
	Raw    []byte
	Body   map[string]any // nil if the body is not a JSON object
}

// Do sends a request and returns the response, whatever its code. A body that is not a string,
// bytes or a reader is encoded as JSON. headers are alternating names and values.
func (a *Client) Do(method, path string, body any, headers ...string) Response {
	a.T.Helper()
	res := a.Open(context.Background(), method, path, body, headers...)
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	require.NoError(a.T, err, "%s %s", method, path)
	out := Response{Code: res.StatusCode, Header: res.Header, Raw: raw}
	_ = json.Unmarshal(raw, &out.Body)
	return out
}

// Open sends a request and returns the response. The caller closes its body.
func (a *Client) Open(ctx context.Context, method, path string, body any, headers ...string) *http.Response {
	a.T.Helper()
	r, err := http.NewRequestWithContext(ctx, method, a.Base+path, Reader(a.T, body))
	require.NoError(a.T, err)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := a.HTTP.Do(r)
	require.NoError(a.T, err, "%s %s", method, path)
	return res
}

// Reader returns a reader of a body as Do accepts it.
func Reader(t testing.TB, body any) io.Reader {
	switch b := body.(type) {
	case nil:
		return nil
	case string:
		return strings.NewReader(b)
	case []byte:
		return bytes.NewReader(b)
	case io.Reader:
		return b
	}
	data, err := json.Marshal(body)
	require.NoError(t, err)
	return bytes.NewReader(data)
}

// Must sends a request and fails the test unless the response has the given code. A response with a
// code of 400 or more must be a complete Status.
func (a *Client) Must(code int, method, path string, body any, headers ...string) Response {
	a.T.Helper()
	out := a.Do(method, path, body, headers...)
	require.Equal(a.T, code, out.Code, "%s %s: %s", method, path, out.Raw)
	if code >= 400 {
		out.RequireStatus(a.T)
	}
	return out
}

// RequireStatus fails the test unless the body is a complete failure Status.
func (r Response) RequireStatus(t testing.TB) {
	t.Helper()
	require.NotNil(t, r.Body, "%d: %q", r.Code, r.Raw)
	assert.Equal(t, "Status", r.Body["kind"])
	assert.Equal(t, "v1", r.Body["apiVersion"])
	assert.Equal(t, "Failure", r.Body["status"])
	assert.EqualValues(t, r.Code, r.Body["code"])
	assert.NotEmpty(t, r.Body["reason"], "%s", r.Raw)
	assert.NotEmpty(t, r.Body["message"], "%s", r.Raw)
}

// Nested returns the field of a decoded object at a path, or nil if it is absent.
func Nested(tree any, path ...string) any {
	for _, p := range path {
		m, _ := tree.(map[string]any)
		tree = m[p]
	}
	return tree
}

// NestedString returns the string at a path, or "" if there is none.
func NestedString(tree any, path ...string) string {
	s, _ := Nested(tree, path...).(string)
	return s
}

// ResourceVersion returns metadata.resourceVersion of the object or list.
func (r Response) ResourceVersion() string {
	return NestedString(r.Body, "metadata", "resourceVersion")
}

// Names returns the names of the items of a list.
func (r Response) Names() []string {
	list := []string{}
	items, _ := r.Body["items"].([]any)
	for _, it := range items {
		list = append(list, NestedString(it, "metadata", "name"))
	}
	return list
}

// Causes returns the causes of a Status, each as "field reason".
func (r Response) Causes() []string {
	list := []string{}
	all, _ := Nested(r.Body, "details", "causes").([]any)
	for _, c := range all {
		list = append(list, strings.TrimSpace(NestedString(c, "field")+" "+NestedString(c, "reason")))
	}
	return list
}

// Watch opens a watch and fails the test unless it is accepted. The watch is closed at
// the end of the test.
func (a *Client) Watch(path string, headers ...string) *Watcher {
	a.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	a.T.Cleanup(cancel)
	res := a.Open(ctx, "GET", path, nil, headers...)
	w := NewWatcher(a.T, res)
	if res.StatusCode != 200 {
		raw, _ := io.ReadAll(res.Body)
		require.Equal(a.T, 200, res.StatusCode, "%s: %s", path, raw)
	}
	return w
}

// AwaitEstablished waits until the CustomResourceDefinition is established.
func (a *Client) AwaitEstablished(name string) { a.AwaitEstablishedIn("v1", name) }

// AwaitEstablishedIn is AwaitEstablished through another version of the definition API.
func (a *Client) AwaitEstablishedIn(version, name string) {
	a.T.Helper()
	w := a.Watch("/apis/apiextensions.k8s.io/" + version + "/customresourcedefinitions?watch=1&fieldSelector=metadata.name%3D" + name)
	defer w.Close()
	for {
		conditions, _ := Nested(w.Next().Object, "status", "conditions").([]any)
		for _, c := range conditions {
			if NestedString(c, "type") == "Established" && NestedString(c, "status") == "True" {
				return
			}
		}
	}
}

// RecoveredPanics returns the value of the metric of recovered panics for a part of the server.
func (a *Client) RecoveredPanics(in string) string {
	a.T.Helper()
	prefix := fmt.Sprintf("apiserver_recovered_panics_total{in=%q} ", in)
	for line := range strings.Lines(string(a.Do("GET", "/metrics", nil).Raw)) {
		if count, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			return count
		}
	}
	return "0"
}

// As returns an in-process Client that authenticates as user with the given groups.
func As(t testing.TB, s *servertest.Server, user string, groups ...string) *Client {
	u := s.As(user, groups...)
	return NewClient(t, u.Host(), u.Client())
}

// Call sends an in-process request and returns the code and the decoded object. An empty body means
// no body.
func Call(t testing.TB, s *servertest.Server, method, path, body string) (int, *meta.Object) {
	t.Helper()
	var in any
	if body != "" {
		in = body
	}
	res := InProcess(t, s).Do(method, path, in)
	return res.Code, meta.NewObject(res.Body)
}

// Must is Call that fails the test unless the response has the given code.
func Must(t testing.TB, s *servertest.Server, code int, method, path, body string) *meta.Object {
	t.Helper()
	got, o := Call(t, s, method, path, body)
	require.Equal(t, code, got, "%s %s: %v", method, path, o.Tree())
	return o
}

// AuthenticateByHeader configures a server that takes the user from the header X-User and a group
// from X-Group. A request without X-User is anonymous.
func AuthenticateByHeader(b *server.Builder) {
	b.Authenticators = []auth.Authenticator{auth.AuthenticatorFunc(func(r *http.Request) (*auth.User, error) {
		name := r.Header.Get("X-User")
		if name == "" {
			return nil, nil
		}
		u := &auth.User{Name: name, Groups: []string{auth.Authenticated}}
		if g := r.Header.Get("X-Group"); g != "" {
			u.Groups = append(u.Groups, g)
		}
		return u, nil
	})}
}

// ParseObject decodes the JSON object at the beginning of text. In a stored record, a signature
// follows it.
func ParseObject(t *testing.T, text string) map[string]any {
	var m map[string]any
	require.NoError(t, json.NewDecoder(strings.NewReader(text)).Decode(&m)) // ignores the signature
	return m
}

// SpecOf returns the spec of the object in a response.
func SpecOf(a Response) map[string]any {
	s, _ := a.Body["spec"].(map[string]any)
	return s
}
