package server_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/auth/review"
	"orch.io/controlplane/internal/formertest"
	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// inRelease makes a server of a release, with reviews and the policies of pods.
func inRelease(t testing.TB, release string, more ...func(*server.Builder)) *api {
	return inProcess(t, servertest.New(t, append(more, func(b *server.Builder) {
		b.Release = release
		b.Register(review.Access(auth.AllowAll)...)
		b.Register(review.Identity(nobody{}, nil)...)
	})...))
}

// Parts of objects.
const (
	podTemplate = `{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"i"}]}}`
	anyReview   = `"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}`
)

// removed is a row of the table of what releases removed.
type removed struct {
	formertest.Version
	served *resource.Version // by the last release that has it
}

// versionsThatGo are the versions of built-in kinds that a release removes, as the last one
// before that has them.
func versionsThatGo(t *testing.T) map[string]*resource.Version {
	all := map[string]*resource.Version{}
	for _, k := range slices.Concat(builtin.Kinds(), review.Access(auth.AllowAll), review.Identity(nobody{}, nil)) {
		for _, kv := range k.Versions {
			if kv.Lifetime.Removed == "" {
				continue
			}
			r, err := release.Parse(kv.Lifetime.Removed)
			require.NoError(t, err)
			typ, err := resource.CompileAt(k, names.Kubernetes, r.Previous())
			require.NoError(t, err)
			v := typ.VersionIn(meta.GroupVersion{Group: names.Kubernetes.Group(cmp.Or(kv.Group, k.Group)), Version: kv.Name})
			all[v.GVK().APIVersion()+" "+v.Plural] = v
		}
	}
	return all
}

// TestRemovedVersions is the table of what releases removed: each version works under the
// last release that has it, with all of its sub-resources, and the release after it does not
// know it, nor the newest.
func TestRemovedVersions(t *testing.T) {
	servers := map[string]*api{}
	of := func(release string) *api {
		if servers[release] == nil {
			servers[release] = inRelease(t, release, func(b *server.Builder) {
				b.RunControllers = []string{"-definitions"} // none: they write statuses, too
			})
		}
		return servers[release]
	}
	versions := versionsThatGo(t)
	for _, v := range formertest.Versions(t) {
		key := v.APIVersion + " " + v.Plural()
		r := removed{v, versions[key]}
		delete(versions, key)
		t.Run(v.APIVersion+" "+v.Plural(), func(t *testing.T) {
			require.NotNil(t, r.served, "no built-in kind has it")
			a := &api{t, of(r.Last).base, of(r.Last).client}
			r.works(a)
			for _, sub := range r.served.Subresources {
				t.Run(sub.Name, func(t *testing.T) { r.subresource(&api{t, a.base, a.client}, &sub) })
			}
			for _, release := range []string{r.In, ""} {
				assert.Equal(t, 404, of(release).do("GET", r.Path(), nil).code, release)
				for _, sub := range r.served.Subresources {
					assert.Equal(t, 404, of(release).do("GET", r.item()+"/"+sub.Name, nil).code, release)
				}
			}
		})
	}
	assert.Empty(t, slices.Collect(maps.Keys(versions)), "the table has no row for them")
}

// item is where the object is.
func (r *removed) item() string { return r.Path() + "/" + r.Name() }

// warned: an answer says that the version is deprecated, and a metric that it was asked for.
func (r *removed) warned(a *api, got answer, subresource string) {
	warning := strings.Join(got.header.Values("Warning"), "\n")
	assert.Contains(a.t, warning, fmt.Sprintf("%s %s is deprecated in v", r.APIVersion, r.served.Kind))
	assert.Contains(a.t, warning, "+, unavailable in v"+r.In+"+")
	assert.Contains(a.t, string(a.must(200, "GET", "/metrics", nil).raw), fmt.Sprintf(
		"apiserver_requested_deprecated_apis{group=%q,removed_release=%q,resource=%q,subresource=%q,version=%q} 1", r.served.Group, r.In, r.Plural(), subresource, r.served.Name))
}

// works creates, reads, changes and watches an object, each with a warning.
func (r *removed) works(a *api) {
	made := a.must(201, "POST", r.Origin(), r.Object())
	if r.OnlySubresources() {
		for _, path := range []string{r.Path(), r.item()} {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				a.must(404, method, path, r.Object())
			}
		}
		return
	}
	assert.Equal(a.t, r.APIVersion, made.body["apiVersion"])
	r.warned(a, made, "")
	if r.OnlyCreated() {
		assert.NotNil(a.t, made.body["status"])
		return
	}
	w := a.watch(r.Path() + "?watch=1&resourceVersion=" + made.version())
	got := a.must(200, "GET", r.item(), nil)
	assert.Equal(a.t, r.APIVersion, got.body["apiVersion"])
	a.must(200, "PUT", r.item(), got.raw)
	a.must(200, "PATCH", r.item(), `{"metadata":{"labels":{"patched":"yes"}}}`)
	e := w.next()
	for text(e.Object, "metadata", "labels", "patched") == "" { // the PUT may have filled in defaults
		e = w.next()
	}
	assert.Equal(a.t, "MODIFIED", e.Type)
	assert.Equal(a.t, r.APIVersion, e.Object["apiVersion"])
	assert.Equal(a.t, "yes", text(e.Object, "metadata", "labels", "patched"))
	w.close()
	list := a.must(200, "GET", r.Path(), nil)
	assert.Equal(a.t, r.APIVersion, list.body["apiVersion"])
	assert.Contains(a.t, list.names(), r.Name())
}

// What is sent to sub-resources of removed versions, NAME being that of the object: to those
// that answer a POST, and as a change to others. Other statuses are chosen at random.
var (
	posted  = map[string]string{"deployments/rollback": `{"name":"NAME","rollbackTo":{"revision":2}}`}
	changes = map[string]string{
		"deployments/scale": resized, "replicasets/scale": resized, "statefulsets/scale": resized, "replicationcontrollers/scale": resized,
		"certificatesigningrequests/approval": `{"status":{"conditions":[{"type":"Approved","reason":"Good","message":"it is"}]}}`,
		"certificatesigningrequests/status":   `[{"op":"add","path":"/status/conditions/-","value":{"type":"Failed","reason":"Bad","message":"it is not"}}]`, // others stay
	}
)

const resized = `{"spec":{"replicas":3}}`

// subresource uses a sub-resource of the object by each of its verbs, each with a warning.
func (r *removed) subresource(a *api, sub *resource.Subresource) {
	name, path, kind := r.Plural()+"/"+sub.Name, r.item()+"/"+sub.Name, sub.WireKind(r.served)
	if sub.Act != nil {
		body := posted[name]
		require.NotEmpty(a.t, body, "no body for it")
		assert.Equal(a.t, r.APIVersion, kind.APIVersion())
		r.warned(a, a.must(201, "POST", path, strings.ReplaceAll(body, "NAME", r.Name())), sub.Name)
		return
	}
	require.Nil(a.t, sub.Connect, "nothing is connected to")
	got := a.must(200, "GET", path, nil)
	assert.Equal(a.t, []any{kind.APIVersion(), kind.Kind}, []any{got.body["apiVersion"], got.body["kind"]})
	r.warned(a, got, sub.Name)
	var changed answer
	if change := changes[name]; change != "" {
		form := "application/merge-patch+json"
		if change[0] == '[' {
			form = "application/json-patch+json"
		}
		changed = a.must(200, "PATCH", path, change, "Content-Type", form)
	} else {
		require.Equal(a.t, "status", sub.Name, "no change for it")
		changed = r.changeStatus(a, got.body)
	}
	assert.Equal(a.t, kind.APIVersion(), changed.body["apiVersion"])
	assert.NotEqual(a.t, got.version(), changed.version(), "something changes")
	assert.Equal(a.t, string(changed.raw), string(a.must(200, "GET", path, nil).raw))
	assert.Equal(a.t, changed.version(), a.must(200, "PUT", path, changed.raw).version(), "what was read changes nothing")
}

// changeStatus changes fields of the status that are chosen at random, until a change is taken.
func (r *removed) changeStatus(a *api, was map[string]any) (changed answer) {
	of, _ := r.served.Schema().At("status")
	for seed := range uint64(200) {
		c := chooser(randomBytes(0, seed)[:8+seed%40])
		changed = a.do("PATCH", r.item()+"/status", map[string]any{"status": c.change(of, map[string]any{}, 1)})
		if changed.code == 200 && !reflect.DeepEqual(was["status"], changed.body["status"]) {
			return changed
		}
	}
	require.Fail(a.t, "no change is taken", "%s", changed.raw)
	return changed
}

// nobody knows no token.
type nobody struct{}

func (nobody) AuthenticateToken(context.Context, string, []string) (*auth.User, []string, error) {
	return nil, nil, nil
}
