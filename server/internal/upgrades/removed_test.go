package upgrades_test

import (
	"cmp"
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
	"orch.io/controlplane/server/internal/apitest"
)

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

// versionsThatGo returns the versions of built-in kinds that a release removes, as the previous release
// has them.
func versionsThatGo(t *testing.T) map[string]*resource.Version {
	all := map[string]*resource.Version{}
	for _, k := range slices.Concat(builtin.Kinds(), review.Access(auth.AllowAll), review.Identity(apitest.NoTokens{}, nil)) {
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

// TestRemovedVersions: each version in the table of removed versions works under the last
// release that has it, with all of its subresources. The next release and the newest release do
// not know it.
func TestRemovedVersions(t *testing.T) {
	t.Parallel()
	servers := map[string]*apitest.Client{}
	of := func(release string) *apitest.Client {
		if servers[release] == nil {
			servers[release] = apitest.NewInRelease(t, release, func(b *server.Builder) {
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
			a := apitest.NewClient(t, of(r.Last).Base, of(r.Last).HTTP)
			r.works(a)
			for _, sub := range r.served.Subresources {
				t.Run(sub.Name, func(t *testing.T) { r.subresource(apitest.NewClient(t, a.Base, a.HTTP), &sub) })
			}
			for _, release := range []string{r.In, ""} {
				assert.Equal(t, 404, of(release).Do("GET", r.Path(), nil).Code, release)
				for _, sub := range r.served.Subresources {
					assert.Equal(t, 404, of(release).Do("GET", r.item()+"/"+sub.Name, nil).Code, release)
				}
			}
		})
	}
	assert.Empty(t, slices.Collect(maps.Keys(versions)), "the table has no row for them")
}

// item returns the path of the object.
func (r *removed) item() string { return r.Path() + "/" + r.Name() }

// warned asserts that a response warns of the deprecated version and that a metric counts the request.
func (r *removed) warned(a *apitest.Client, got apitest.Response, subresource string) {
	warning := strings.Join(got.Header.Values("Warning"), "\n")
	assert.Contains(a.T, warning, fmt.Sprintf("%s %s is deprecated in v", r.APIVersion, r.served.Kind))
	assert.Contains(a.T, warning, "+, unavailable in v"+r.In+"+")
	assert.Contains(a.T, string(a.Must(200, "GET", "/metrics", nil).Raw), fmt.Sprintf(
		"apiserver_requested_deprecated_apis{group=%q,removed_release=%q,resource=%q,subresource=%q,version=%q} 1", r.served.Group, r.In, r.Plural(), subresource, r.served.Name))
}

// works creates, reads, changes and watches an object, each with a warning.
func (r *removed) works(a *apitest.Client) {
	made := a.Must(201, "POST", r.Origin(), r.Object())
	if r.OnlySubresources() {
		for _, path := range []string{r.Path(), r.item()} {
			for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
				a.Must(404, method, path, r.Object())
			}
		}
		return
	}
	assert.Equal(a.T, r.APIVersion, made.Body["apiVersion"])
	r.warned(a, made, "")
	if r.OnlyCreated() {
		assert.NotNil(a.T, made.Body["status"])
		return
	}
	w := a.Watch(r.Path() + "?watch=1&resourceVersion=" + made.ResourceVersion())
	got := a.Must(200, "GET", r.item(), nil)
	assert.Equal(a.T, r.APIVersion, got.Body["apiVersion"])
	a.Must(200, "PUT", r.item(), got.Raw)
	a.Must(200, "PATCH", r.item(), `{"metadata":{"labels":{"patched":"yes"}}}`)
	e := w.Next()
	for apitest.NestedString(e.Object, "metadata", "labels", "patched") == "" { // the PUT may have filled in defaults
		e = w.Next()
	}
	assert.Equal(a.T, "MODIFIED", e.Type)
	assert.Equal(a.T, r.APIVersion, e.Object["apiVersion"])
	assert.Equal(a.T, "yes", apitest.NestedString(e.Object, "metadata", "labels", "patched"))
	w.Close()
	list := a.Must(200, "GET", r.Path(), nil)
	assert.Equal(a.T, r.APIVersion, list.Body["apiVersion"])
	assert.Contains(a.T, list.Names(), r.Name())
}

// Bodies for the subresources of removed versions; NAME is replaced by the name of the object. They are
// sent by POST to acting subresources and by PATCH to others. Statuses without a body are generated.
var (
	posted  = map[string]string{"deployments/rollback": `{"name":"NAME","rollbackTo":{"revision":2}}`}
	changes = map[string]string{
		"deployments/scale": resized, "replicasets/scale": resized, "statefulsets/scale": resized, "replicationcontrollers/scale": resized,
		"certificatesigningrequests/approval": `{"status":{"conditions":[{"type":"Approved","reason":"Good","message":"it is"}]}}`,
		"certificatesigningrequests/status":   `[{"op":"add","path":"/status/conditions/-","value":{"type":"Failed","reason":"Bad","message":"it is not"}}]`, // others stay
	}
)

const resized = `{"spec":{"replicas":3}}`

// subresource uses a subresource of the object by each of its verbs, each with a warning.
func (r *removed) subresource(a *apitest.Client, sub *resource.Subresource) {
	name, path, kind := r.Plural()+"/"+sub.Name, r.item()+"/"+sub.Name, sub.WireKind(r.served)
	if sub.Act != nil {
		body := posted[name]
		require.NotEmpty(a.T, body, "no body for it")
		assert.Equal(a.T, r.APIVersion, kind.APIVersion())
		r.warned(a, a.Must(201, "POST", path, strings.ReplaceAll(body, "NAME", r.Name())), sub.Name)
		return
	}
	require.Nil(a.T, sub.Connect, "nothing is connected to")
	got := a.Must(200, "GET", path, nil)
	assert.Equal(a.T, []any{kind.APIVersion(), kind.Kind}, []any{got.Body["apiVersion"], got.Body["kind"]})
	r.warned(a, got, sub.Name)
	var changed apitest.Response
	if change := changes[name]; change != "" {
		form := "application/merge-patch+json"
		if change[0] == '[' {
			form = "application/json-patch+json"
		}
		changed = a.Must(200, "PATCH", path, change, "Content-Type", form)
	} else {
		require.Equal(a.T, "status", sub.Name, "no change for it")
		changed = r.changeStatus(a, got.Body)
	}
	assert.Equal(a.T, kind.APIVersion(), changed.Body["apiVersion"])
	assert.NotEqual(a.T, got.ResourceVersion(), changed.ResourceVersion(), "something changes")
	assert.Equal(a.T, string(changed.Raw), string(a.Must(200, "GET", path, nil).Raw))
	assert.Equal(a.T, changed.ResourceVersion(), a.Must(200, "PUT", path, changed.Raw).ResourceVersion(), "what was read changes nothing")
}

// changeStatus changes random fields of the status until a change is accepted.
func (r *removed) changeStatus(a *apitest.Client, was map[string]any) (changed apitest.Response) {
	of, _ := r.served.Schema().At("status")
	for seed := range uint64(200) {
		c := apitest.NewChooser(0, seed)[:8+seed%40]
		changed = a.Do("PATCH", r.item()+"/status", map[string]any{"status": c.Change(of, map[string]any{}, 1)})
		if changed.Code == 200 && !reflect.DeepEqual(was["status"], changed.Body["status"]) {
			return changed
		}
	}
	require.Fail(a.T, "no change is taken", "%s", changed.Raw)
	return changed
}
