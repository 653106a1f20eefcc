package verbs_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// TestDeviationsOfTheReference: each difference between the specification and the reference server is tested with the
// rules of the specification, of the newest reference, and of an old reference.
func TestDeviationsOfTheReference(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		names   names.Profile
		release string
		lists   bool // deletecollection returns a list, and cleared owners stay cleared
		newest  bool // the newest of several default classes is used
		changes bool // CSIDriver fields are mutable
		status  bool // CSINode has a status
	}{
		{"orch", names.Orch, "", false, false, false, false},
		{"kubernetes", names.Kubernetes, "", true, true, true, true},
		{"kubernetes 1.24", names.Kubernetes, "1.24", true, false, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			configure := func(b *server.Builder) { b.Names, b.Release = row.names, row.release }
			a := apitest.InProcess(t, servertest.New(t, configure))
			group := func(spec string) string { return "/apis/" + row.names.Group(spec) + "/v1" }
			t.Run("deletecollection", func(t *testing.T) { deletedCollection(t, a, row.names, row.lists) })
			t.Run("cleared owners", func(t *testing.T) { clearedOwners(t, a, row.lists) })
			t.Run("default classes", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					defaultClasses(t, apitest.InProcess(t, servertest.New(t, configure)), row.names, row.newest)
				})
			})
			t.Run("CSIDriver", func(t *testing.T) {
				drivers := group(wellknown.GroupStorage) + "/csidrivers"
				a.Must(201, "POST", drivers, `{"metadata":{"name":"d"},"spec":{}}`)
				for _, spec := range []string{`{"fsGroupPolicy":"File"}`, `{"podInfoOnMount":true}`} {
					assert.Equal(t, map[bool]int{true: 200, false: 422}[row.changes], a.Do("PATCH", drivers+"/d", `{"spec":`+spec+`}`).Code, spec)
				}
				a.Must(422, "PATCH", drivers+"/d", `{"spec":{"attachRequired":false}}`)
			})
			t.Run("overhead", func(t *testing.T) {
				a.Must(201, "POST", group(wellknown.GroupNode)+"/runtimeclasses", `{"metadata":{"name":"r"},"handler":"h","overhead":{"podFixed":{"cpu":"1"}}}`)
				pod := `{"metadata":{"name":"p"},"spec":{"runtimeClassName":"r","overhead":{"cpu":"1"},"containers":[{"name":"c","image":"i"}]}}`
				const pods = "/api/v1/namespaces/default/pods?dryRun=All"
				assert.Equal(t, map[bool]int{true: 201, false: 403}[row.lists], a.Do("POST", pods, pod).Code)
				got := a.Must(201, "POST", pods, strings.Replace(pod, `"overhead":{"cpu":"1"},`, "", 1))
				assert.Equal(t, map[string]any{"cpu": "1"}, apitest.Nested(got.Body, "spec", "overhead"))
			})
			t.Run("CSINode", func(t *testing.T) {
				nodes := group(wellknown.GroupStorage) + "/csinodes"
				a.Must(201, "POST", nodes, `{"metadata":{"name":"n"},"spec":{"drivers":[]}}`)
				assert.Equal(t, map[bool]int{true: 200, false: 404}[row.status], a.Do("GET", nodes+"/n/status", nil).Code)
			})
		})
	}
}

func deletedCollection(t *testing.T, a *apitest.Client, p names.Profile, lists bool) {
	const some = apitest.ConfigMapsPath + "?labelSelector=x%3Dy"
	for _, name := range []string{"a", "b", "c"} {
		cm := apitest.NewConfigMap(name)
		cm["metadata"].(map[string]any)["labels"] = map[string]any{"x": "y"}
		a.Must(201, "POST", apitest.ConfigMapsPath, cm)
	}
	partial := "application/json;as=PartialObjectMetadataList;v=v1;g=" + p.Group(wellknown.GroupMeta)
	table := "application/json;as=Table;v=v1;g=" + p.Group(wellknown.GroupMeta)
	dry := a.Must(200, "DELETE", some+"&dryRun=All", nil)
	if !lists {
		assert.Equal(t, "Status", dry.Body["kind"])
		a.Must(406, "DELETE", some+"&dryRun=All", nil, "Accept", partial)
		assert.Equal(t, "Status", a.Must(200, "DELETE", some, nil).Body["kind"])
		return
	}
	assert.Equal(t, "ConfigMapList", dry.Body["kind"])
	assert.Equal(t, []string{"a", "b", "c"}, dry.Names())
	assert.Equal(t, "PartialObjectMetadataList", a.Must(200, "DELETE", some+"&dryRun=All", nil, "Accept", partial).Body["kind"])
	assert.Len(t, a.Must(200, "DELETE", some+"&dryRun=All", nil, "Accept", table).Body["rows"], 3)
	first := a.Must(200, "DELETE", some+"&limit=2", nil)
	assert.Equal(t, []string{"a", "b"}, first.Names())
	token := apitest.NestedString(first.Body, "metadata", "continue")
	require.NotEmpty(t, token)
	assert.Equal(t, []string{"c"}, a.Must(200, "DELETE", some+"&limit=2&continue="+token, nil).Names())
	last := a.Must(200, "DELETE", some, nil)
	assert.Equal(t, []string{}, last.Names())
	assert.NotEmpty(t, last.ResourceVersion())
}

func clearedOwners(t *testing.T, a *apitest.Client, stay bool) {
	managers := func(r apitest.Response) int {
		list, _ := apitest.Nested(r.Body, "metadata", "managedFields").([]any)
		return len(list)
	}
	put := func(owners, value string) int {
		a.Do("DELETE", apitest.ConfigMapsPath+"/o", nil)
		a.Must(201, "POST", apitest.ConfigMapsPath+"?fieldManager=one", apitest.NewConfigMap("o", "a", "1", "b", "2"))
		return managers(a.Must(200, "PUT", apitest.ConfigMapsPath+"/o?fieldManager=two", `{"metadata":{"name":"o","managedFields":`+owners+`},"data":{"a":"1","b":"`+value+`"}}`))
	}
	want := map[string]int{"[{}]": 1, "[]": 2, "null": 2}
	if stay {
		want = map[string]int{"[{}]": 0, "[]": 0, "null": 2}
	}
	for owners, n := range want {
		assert.Equal(t, n, put(owners, "3"), owners)
	}
	assert.Zero(t, put("[{}]", "2"), "nothing else may change")
}

func defaultClasses(t *testing.T, a *apitest.Client, p names.Profile, newest bool) {
	const claims, claim = "/api/v1/namespaces/default/persistentvolumeclaims?dryRun=All", `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`
	ingresses := "/apis/" + p.Group(wellknown.GroupNetworking) + "/v1/namespaces/default/ingresses?dryRun=All"
	const ingress = `{"metadata":{"name":"i"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`
	for i, name := range []string{"k", "z", "a"} { // not sorted by name
		time.Sleep(time.Second) // creationTimestamp has whole seconds
		a.Must(201, "POST", "/apis/"+p.Group(wellknown.GroupStorage)+"/v1/storageclasses", `{"metadata":{"name":"`+name+`","annotations":{"`+p.Wire(wellknown.DefaultStorageClass)+`":"true"}},"provisioner":"x"}`)
		a.Must(201, "POST", "/apis/"+p.Group(wellknown.GroupNetworking)+"/v1/ingressclasses", `{"metadata":{"name":"`+name+`","annotations":{"`+p.Wire(wellknown.DefaultIngressClass)+`":"true"}},"spec":{"controller":"x.io/c"}}`)
		gotClaim, gotIngress := a.Do("POST", claims, claim), a.Do("POST", ingresses, ingress)
		if i > 0 && !newest {
			assert.Equal(t, 403, gotClaim.Code)
			assert.Equal(t, 403, gotIngress.Code)
			continue
		}
		assert.Equal(t, name, apitest.NestedString(gotClaim.Body, "spec", "storageClassName"), "%s", gotClaim.Raw)
		assert.Equal(t, name, apitest.NestedString(gotIngress.Body, "spec", "ingressClassName"), "%s", gotIngress.Raw)
	}
}
