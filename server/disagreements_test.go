package server_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
)

// TestSpecificationAndReferenceDiffer asks one server that follows the specification, one
// that follows the newest reference, and one that follows an old reference for everything in
// which these differ.
func TestSpecificationAndReferenceDiffer(t *testing.T) {
	for _, row := range []struct {
		name    string
		names   names.Profile
		release string
		lists   bool // deletecollection answers a list, and cleared owners stay cleared
		newest  bool // of several default classes the newest is taken
		changes bool // CSIDriver fields may change
		status  bool // CSINode has a status
	}{
		{"orch", names.Orch, "", false, false, false, false},
		{"kubernetes", names.Kubernetes, "", true, true, true, true},
		{"kubernetes 1.24", names.Kubernetes, "1.24", true, false, false, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			configure := func(b *server.Builder) { b.Names, b.Release = row.names, row.release }
			a := inProcess(t, servertest.New(t, configure))
			group := func(spec string) string { return "/apis/" + row.names.Group(spec) + "/v1" }
			t.Run("deletecollection", func(t *testing.T) { deletedCollection(t, a, row.names, row.lists) })
			t.Run("cleared owners", func(t *testing.T) { clearedOwners(t, a, row.lists) })
			t.Run("default classes", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					defaultClasses(t, inProcess(t, servertest.New(t, configure)), row.names, row.newest)
				})
			})
			t.Run("CSIDriver", func(t *testing.T) {
				drivers := group(names.GroupStorage) + "/csidrivers"
				a.must(201, "POST", drivers, `{"metadata":{"name":"d"},"spec":{}}`)
				for _, spec := range []string{`{"fsGroupPolicy":"File"}`, `{"podInfoOnMount":true}`} {
					assert.Equal(t, map[bool]int{true: 200, false: 422}[row.changes], a.do("PATCH", drivers+"/d", `{"spec":`+spec+`}`).code, spec)
				}
				a.must(422, "PATCH", drivers+"/d", `{"spec":{"attachRequired":false}}`)
			})
			t.Run("overhead", func(t *testing.T) {
				a.must(201, "POST", group(names.GroupNode)+"/runtimeclasses", `{"metadata":{"name":"r"},"handler":"h","overhead":{"podFixed":{"cpu":"1"}}}`)
				pod := `{"metadata":{"name":"p"},"spec":{"runtimeClassName":"r","overhead":{"cpu":"1"},"containers":[{"name":"c","image":"i"}]}}`
				const pods = "/api/v1/namespaces/default/pods?dryRun=All"
				assert.Equal(t, map[bool]int{true: 201, false: 403}[row.lists], a.do("POST", pods, pod).code)
				got := a.must(201, "POST", pods, strings.Replace(pod, `"overhead":{"cpu":"1"},`, "", 1))
				assert.Equal(t, map[string]any{"cpu": "1"}, at(got.body, "spec", "overhead"))
			})
			t.Run("CSINode", func(t *testing.T) {
				nodes := group(names.GroupStorage) + "/csinodes"
				a.must(201, "POST", nodes, `{"metadata":{"name":"n"},"spec":{"drivers":[]}}`)
				assert.Equal(t, map[bool]int{true: 200, false: 404}[row.status], a.do("GET", nodes+"/n/status", nil).code)
			})
		})
	}
}

func deletedCollection(t *testing.T, a *api, p names.Profile, lists bool) {
	const some = configMaps + "?labelSelector=x%3Dy"
	for _, name := range []string{"a", "b", "c"} {
		cm := newConfigMap(name)
		cm["metadata"].(map[string]any)["labels"] = map[string]any{"x": "y"}
		a.must(201, "POST", configMaps, cm)
	}
	partial := "application/json;as=PartialObjectMetadataList;v=v1;g=" + p.Group(names.GroupMeta)
	table := "application/json;as=Table;v=v1;g=" + p.Group(names.GroupMeta)
	dry := a.must(200, "DELETE", some+"&dryRun=All", nil)
	if !lists {
		assert.Equal(t, "Status", dry.body["kind"])
		a.must(406, "DELETE", some+"&dryRun=All", nil, "Accept", partial)
		assert.Equal(t, "Status", a.must(200, "DELETE", some, nil).body["kind"])
		return
	}
	assert.Equal(t, "ConfigMapList", dry.body["kind"])
	assert.Equal(t, []string{"a", "b", "c"}, dry.names())
	assert.Equal(t, "PartialObjectMetadataList", a.must(200, "DELETE", some+"&dryRun=All", nil, "Accept", partial).body["kind"])
	assert.Len(t, a.must(200, "DELETE", some+"&dryRun=All", nil, "Accept", table).body["rows"], 3)
	first := a.must(200, "DELETE", some+"&limit=2", nil)
	assert.Equal(t, []string{"a", "b"}, first.names())
	token := text(first.body, "metadata", "continue")
	require.NotEmpty(t, token)
	assert.Equal(t, []string{"c"}, a.must(200, "DELETE", some+"&limit=2&continue="+token, nil).names())
	last := a.must(200, "DELETE", some, nil)
	assert.Equal(t, []string{}, last.names())
	assert.NotEmpty(t, last.version())
}

func clearedOwners(t *testing.T, a *api, stay bool) {
	managers := func(r answer) int {
		list, _ := at(r.body, "metadata", "managedFields").([]any)
		return len(list)
	}
	put := func(owners, value string) int {
		a.do("DELETE", configMaps+"/o", nil)
		a.must(201, "POST", configMaps+"?fieldManager=one", newConfigMap("o", "a", "1", "b", "2"))
		return managers(a.must(200, "PUT", configMaps+"/o?fieldManager=two", `{"metadata":{"name":"o","managedFields":`+owners+`},"data":{"a":"1","b":"`+value+`"}}`))
	}
	want := map[string]int{"[{}]": 1, "[]": 2, "null": 2}
	if stay {
		want = map[string]int{"[{}]": 0, "[]": 0, "null": 2}
	}
	for owners, n := range want {
		assert.Equal(t, n, put(owners, "3"), owners)
	}
	assert.Zero(t, put("[{}]", "2"), "nothing else changes")
}

func defaultClasses(t *testing.T, a *api, p names.Profile, newest bool) {
	const claims, claim = "/api/v1/namespaces/default/persistentvolumeclaims?dryRun=All", `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`
	ingresses := "/apis/" + p.Group(names.GroupNetworking) + "/v1/namespaces/default/ingresses?dryRun=All"
	const ingress = `{"metadata":{"name":"i"},"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}`
	for i, name := range []string{"k", "z", "a"} { // in no order by name
		time.Sleep(time.Second) // creationTimestamp has whole seconds
		a.must(201, "POST", "/apis/"+p.Group(names.GroupStorage)+"/v1/storageclasses", `{"metadata":{"name":"`+name+`","annotations":{"`+p.Wire(names.DefaultStorageClass)+`":"true"}},"provisioner":"x"}`)
		a.must(201, "POST", "/apis/"+p.Group(names.GroupNetworking)+"/v1/ingressclasses", `{"metadata":{"name":"`+name+`","annotations":{"`+p.Wire(names.DefaultIngressClass)+`":"true"}},"spec":{"controller":"x.io/c"}}`)
		gotClaim, gotIngress := a.do("POST", claims, claim), a.do("POST", ingresses, ingress)
		if i > 0 && !newest {
			assert.Equal(t, 403, gotClaim.code)
			assert.Equal(t, 403, gotIngress.code)
			continue
		}
		assert.Equal(t, name, text(gotClaim.body, "spec", "storageClassName"), "%s", gotClaim.raw)
		assert.Equal(t, name, text(gotIngress.body, "spec", "ingressClassName"), "%s", gotIngress.raw)
	}
}
