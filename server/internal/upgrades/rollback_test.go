package upgrades_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/formertest"
	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/badgerstore"
)

// releaseOver starts a server of a release over a directory; only its controller of definitions runs. The
// result stops the server.
func releaseOver(t *testing.T, dir, release string) (*apitest.Client, func()) {
	store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.NoError(t, err)
	b := &server.Builder{Names: names.Kubernetes, Storage: store, Authorizer: auth.AllowAll, Release: release, RunControllers: []string{"definitions"}}
	b.Register(builtin.Kinds()...)
	s, err := b.Build(t.Context())
	require.NoError(t, err)
	front, ran := httptest.NewServer(s), make(chan error, 1)
	go func() { ran <- s.Run(t.Context()) }()
	return apitest.NewClient(t, front.URL, front.Client()), func() {
		front.Close()
		require.NoError(t, s.Shutdown(t.Context()))
		require.NoError(t, <-ran)
	}
}

// TestUpgradeAndRollback: the newest release rewrites all objects that the oldest release wrote.
// Back under the oldest release, each object equals its original, field by field.
func TestUpgradeAndRollback(t *testing.T) {
	t.Parallel()
	const oldest, each = "1.15", 100
	types := map[string]*resource.Type{}
	for _, k := range builtin.Kinds() {
		typ, err := resource.Compile(k, names.Kubernetes)
		require.NoError(t, err)
		for _, v := range typ.Versions {
			types[v.GVK().APIVersion()+" "+v.Plural] = typ
		}
	}
	rows := map[string]formertest.Version{}
	for _, v := range formertest.Versions(t) {
		rows[v.APIVersion+" "+v.Plural()] = v
	}
	kinds := []string{
		"extensions/v1beta1 ingresses", "extensions/v1beta1 deployments", "extensions/v1beta1 daemonsets", "apps/v1beta1 statefulsets", "batch/v1beta1 cronjobs",
		"autoscaling/v2beta1 horizontalpodautoscalers", "policy/v1beta1 poddisruptionbudgets", "node.k8s.io/v1beta1 runtimeclasses",
		"extensions/v1beta1 networkpolicies", "storage.k8s.io/v1beta1 storageclasses",
	}
	dir := t.TempDir()
	a, end := releaseOver(t, dir, oldest)
	first := map[string]map[string]any{} // by path
	for i, kind := range kinds {
		r, typ := rows[kind], types[kind]
		require.NotNil(t, typ, kind)
		v := typ.ByAPIVersion(r.APIVersion)
		for made, seed := 0, uint64(0); made < each; seed++ {
			require.Less(t, seed, uint64(100*each), "%s: too few objects are taken", kind)
			var tree map[string]any
			require.NoError(t, json.Unmarshal([]byte("{"+r.Fields+"}"), &tree))
			c := apitest.NewChooser(uint64(i), seed)[:4+seed%60] // of long ones of big kinds nearly all are refused
			obj := c.Change(v.Schema(), tree, 0).(map[string]any)
			name := fmt.Sprintf("a%d", made)
			delete(obj, "apiVersion")
			delete(obj, "kind")
			obj["metadata"] = map[string]any{"name": name}
			if a.Do("POST", r.Path(), obj).Code == 201 {
				made++
				first[r.Path()+"/"+name] = exact(t, a.Must(200, "GET", r.Path()+"/"+name, nil))
			}
		}
	}
	end()
	require.Len(t, first, each*len(kinds))

	a, end = releaseOver(t, dir, "")
	for _, kind := range kinds {
		r, hub := rows[kind], types[kind].Hub
		now := formertest.Version{APIVersion: hub.GVK().APIVersion(), Resource: r.Resource}
		for n := range each {
			a.Must(200, "PATCH", fmt.Sprintf("%s/a%d", now.Path(), n), `{"metadata":{"labels":{"seen":"yes"}}}`)
		}
	}
	end()

	a, end = releaseOver(t, dir, oldest)
	defer end()
	for path, was := range first {
		is := exact(t, a.Must(200, "GET", path, nil))
		assert.Equal(t, "yes", apitest.NestedString(is, "metadata", "labels", "seen"), path)
		for _, tree := range []map[string]any{was, is} {
			m := apitest.Nested(tree, "metadata").(map[string]any)
			for _, field := range []string{"labels", "managedFields", "resourceVersion"} {
				delete(m, field)
			}
		}
		require.Equal(t, was, is, path)
	}
}

// TestUpgradeKeepsDefinitionsAndOwners: the newest release serves the kinds of v1beta1 definitions, and
// field owners in a version that it does not have do not conflict with a new apply.
func TestUpgradeKeepsDefinitionsAndOwners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, end := releaseOver(t, dir, "1.15")
	a.Must(201, "POST", "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions", `{"metadata":{"name":"plains.example.com"},
		"spec":{"group":"example.com","version":"v1","names":{"plural":"plains","kind":"Plain"}}}`)
	const ingresses, former = "/apis/networking.k8s.io/v1/namespaces/default/ingresses/i", "/apis/extensions/v1beta1/namespaces/default/ingresses/i"
	apply := func(code int, path, version, spec string) apitest.Response {
		return a.Must(code, "PATCH", path+"?fieldManager=m", `{"apiVersion":"`+version+`","kind":"Ingress","metadata":{"name":"i"},"spec":`+spec+`}`,
			"Content-Type", "application/apply-patch+yaml")
	}
	apply(201, former, "extensions/v1beta1", `{"backend":{"serviceName":"s","servicePort":80},"tls":[{"secretName":"t"}]}`)
	end()

	store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.NoError(t, err)
	a = apitest.InProcess(t, servertest.New(t, apitest.WithStorage(store)))
	apply(200, ingresses, "networking.k8s.io/v1", `{"defaultBackend":{"service":{"name":"now","port":{"number":80}}}}`)
	got := a.Must(200, "GET", ingresses, nil)
	assert.Equal(t, "now", apitest.NestedString(got.Body, "spec", "defaultBackend", "service", "name"))
	for _, entry := range apitest.Nested(got.Body, "metadata", "managedFields").([]any) {
		assert.Equal(t, "networking.k8s.io/v1", apitest.NestedString(entry, "apiVersion"))
	}
	a.AwaitEstablished("plains.example.com")
	a.Must(201, "POST", "/apis/example.com/v1/namespaces/default/plains", `{"apiVersion":"example.com/v1","kind":"Plain","metadata":{"name":"a"},"any":1}`)
}

// exact returns an object with its numbers as they were sent.
func exact(t testing.TB, got apitest.Response) (tree map[string]any) {
	d := json.NewDecoder(bytes.NewReader(got.Raw))
	d.UseNumber()
	require.NoError(t, d.Decode(&tree))
	return tree
}

// TestPreviousReleaseServesStorageVersion: the storage version of each kind of a release is
// served by the release before, if that release has the kind.
func TestPreviousReleaseServesStorageVersion(t *testing.T) {
	t.Parallel()
	before := map[string][]string{}
	for r := release.Oldest; r.Compare(release.Newest) <= 0; r = r.Next() {
		now := map[string][]string{}
		for _, k := range builtin.Kinds() {
			typ, err := resource.CompileAt(k, names.Kubernetes, r)
			require.NoError(t, err)
			if typ.Unserved {
				continue
			}
			kind := typ.GroupKind().String()
			for _, gv := range typ.ServedVersions {
				now[kind] = append(now[kind], gv.String())
			}
			if stored := typ.Storage.GVK().APIVersion(); len(before[kind]) > 0 {
				assert.Contains(t, before[kind], stored, "%s in %s", kind, r)
			}
		}
		before = now
	}
}
