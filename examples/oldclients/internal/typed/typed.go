// Package typed runs the typed clients of former releases of client-go against API versions that later
// releases removed. It imports no package of k8s.io, because each module that uses it has a client-go
// of its own: it finds the methods of clients by name, and their arguments by type.
package typed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/internal/formertest"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// The media types that clients use.
const (
	JSON     = "application/json"
	Protobuf = "application/vnd.kubernetes.protobuf"
)

// Run uses each removed version that was introduced in a minor release from first to last, served under
// the last release that has it, with the clients of a client-go, which are created by
// kubernetes.NewForConfig and dynamic.NewForConfig. It fails for a version that no tested client-go
// has.
func Run[Config, Clientset, Dynamic any](t *testing.T, newClientset func(*Config) (Clientset, error), newDynamic func(*Config) (Dynamic, error), first, last int) {
	byRelease := map[int][]row{}
	for _, r := range rows(t) {
		if r.introduced >= first && r.introduced <= last {
			byRelease[r.removed-1] = append(byRelease[r.removed-1], r)
		}
	}
	require.NotEmpty(t, byRelease)
	for _, minor := range slices.Sorted(maps.Keys(byRelease)) {
		release := fmt.Sprintf("1.%d", minor)
		t.Run(release, func(t *testing.T) {
			s := servertest.New(t, func(b *server.Builder) {
				b.Release = release
				b.Register(reviews()...)
			})
			for _, mediaType := range []string{JSON, Protobuf} {
				wire := &wire{RoundTripper: s.Transport(), mediaType: mediaType}
				config := ConfigOf[Config](s.Host(), wire, mediaType)
				clientset, err := newClientset(config)
				require.NoError(t, err)
				dynamic, err := newDynamic(config)
				require.NoError(t, err)
				for _, r := range byRelease[minor] {
					if !r.dynamic() || mediaType == JSON {
						t.Run(r.apiVersion()+" "+r.plural+" "+mediaType, func(t *testing.T) { r.use(t, wire, clientset, dynamic) })
					}
				}
			}
		})
	}
}

// ConfigOf returns the configuration of a client, a rest.Config of any client-go.
func ConfigOf[Config any](host string, transport http.RoundTripper, mediaType string) *Config {
	config := new(Config)
	fields := reflect.ValueOf(config).Elem()
	fields.FieldByName("Host").SetString(host)
	fields.FieldByName("Transport").Set(reflect.ValueOf(transport))
	fields.FieldByName("QPS").SetFloat(-1) // no limit
	fields.FieldByName("ContentType").SetString(mediaType)
	fields.FieldByName("AcceptContentTypes").SetString(mediaType)
	return config
}

// row is a removed version of a built-in kind.
type row struct {
	formertest.Version
	kind                   *registry.Kind
	group, version, plural string
	introduced, removed    int // minor releases
}

func (r *row) apiVersion() string { return r.group + "/" + r.version }

// dynamic reports whether the typed client is not in client-go, but in the module of a separate server.
func (r *row) dynamic() bool {
	return r.group == "apiextensions.k8s.io" || r.group == "apiregistration.k8s.io"
}

// rows returns the removed versions of all built-in kinds, each with an object.
func rows(t *testing.T) (list []row) {
	objects := map[string]formertest.Version{}
	for _, v := range formertest.Versions(t) {
		objects[v.APIVersion+" "+v.Plural()] = v
	}
	for _, k := range slices.Concat(builtin.Kinds(), reviews()) {
		for _, v := range k.Versions {
			if v.Lifetime.Removed == "" {
				continue
			}
			r := row{kind: k, group: names.Kubernetes.Group(cmp.Or(v.Group, k.Group)), version: v.Name,
				plural:     cmp.Or(k.Plural, strings.ToLower(k.Kind)+"s"),
				introduced: minor(t, cmp.Or(v.Lifetime.Introduced, "1.0")), removed: minor(t, v.Lifetime.Removed)}
			key := r.apiVersion() + " " + r.plural
			object, ok := objects[key]
			require.True(t, ok, "no object of %s", key)
			r.Version = object
			delete(objects, key)
			if r.OnlySubresources() { // client-go has no client of such kinds
				continue
			}
			list = append(list, r)
		}
	}
	assert.Empty(t, objects, "no built-in kinds have them")
	return list
}

func reviews() []*registry.Kind {
	return slices.Concat(review.Access(auth.AllowAll), review.Identity(nobody{}, nil))
}

// nobody is an authenticator that knows no token.
type nobody struct{}

func (nobody) AuthenticateToken(context.Context, string, []string) (*auth.User, []string, error) {
	return nil, nil, nil
}

func minor(t *testing.T, release string) int {
	major, rest, _ := strings.Cut(release, ".")
	require.Equal(t, "1", major, release)
	n, err := strconv.Atoi(rest)
	require.NoError(t, err, release)
	return n
}

// use creates, gets, lists, watches, patches and deletes the object with a client.
func (r *row) use(t *testing.T, wire *wire, clientset, dynamic any) {
	wire.begin()
	c := r.client(t, clientset, dynamic)
	made := c.create(r.body())
	if r.OnlyCreated() {
		assert.NotEmpty(t, tree(t, made)["status"])
		wire.check(t, r.Path(), 1)
		return
	}
	name := r.Name()
	for _, o := range []any{made, c.call("Get", name)[0]} {
		assert.Equal(t, name, o.(object).GetName())
		assertHas(t, tree(t, json.RawMessage(r.Object())), tree(t, o))
	}
	assert.Contains(t, c.listed(), name)
	w := c.watch(made.(object).GetResourceVersion())
	defer w.stop()
	patched := c.call("Patch", name, "application/strategic-merge-patch+json", []byte(`{"metadata":{"labels":{"patched":"yes"}}}`))[0]
	assert.Equal(t, "yes", patched.(object).GetLabels()["patched"])
	event, o := w.next(t)
	for ; o.GetLabels()["patched"] == ""; event, o = w.next(t) { // skip events of a controller that writes the status
		assert.Equal(t, "MODIFIED", event)
	}
	assert.Equal(t, "MODIFIED", event)
	c.call("Delete", name)
	for event != "DELETED" {
		event, o = w.next(t)
	}
	assert.Equal(t, name, o.GetName())
	assert.NotContains(t, c.listed(), name)
	wire.check(t, r.Path(), 7)
}

// body returns the object with apiVersion and kind, which the dynamic client requires.
func (r *row) body() []byte {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,%s`, r.apiVersion(), r.kind.Kind, r.Object()[1:])
}

// assertHas checks that a tree contains everything in another tree.
func assertHas(t *testing.T, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for name, v := range want {
			if assert.Contains(t, got, name) {
				assertHas(t, v, got[name])
			}
		}
	case []any:
		got, _ := got.([]any)
		if assert.Len(t, got, len(want)) {
			for i := range want {
				assertHas(t, want[i], got[i])
			}
		}
	default:
		assert.Equal(t, want, got)
	}
}

// tree returns the JSON fields of an object.
func tree(t *testing.T, o any) (fields map[string]any) {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &fields))
	return fields
}

// wire is a transport that records the paths and media types of requests and answers.
type wire struct {
	http.RoundTripper
	mediaType string

	mu    sync.Mutex // guards the fields below
	paths []string
	types []string // media types of bodies, except patches
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.RoundTripper.RoundTrip(req)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths = append(w.paths, req.URL.Path)
	if req.Method == http.MethodPost {
		w.types = append(w.types, cmp.Or(req.Header.Get("Content-Type"), JSON)) // the dynamic client of 0.17 sends no Content-Type
	}
	if err == nil {
		w.types = append(w.types, resp.Header.Get("Content-Type"))
	}
	return resp, err
}

func (w *wire) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paths, w.types = nil, nil
}

// check asserts that all requests were for a resource and used the media type.
func (w *wire) check(t *testing.T, path string, requests int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Len(t, w.paths, requests)
	for _, p := range w.paths {
		assert.True(t, p == path || strings.HasPrefix(p, path+"/"), p)
	}
	for _, mediaType := range w.types {
		assert.True(t, strings.HasPrefix(mediaType, w.mediaType), mediaType)
	}
}
