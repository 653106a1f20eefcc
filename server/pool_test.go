package server_test

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

const servicePath = "/api/v1/namespaces/default/services"

func service(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"ports":[{"port":1}]%s}}`, name, spec)
}

func services(t *testing.T, s *servertest.Server) []*meta.Object {
	var out []*meta.Object
	for _, v := range must(t, s, 200, "GET", servicePath, "").List("items") {
		out = append(out, meta.NewObject(v.(map[string]any)))
	}
	return out
}

// Five addresses, beside that of the server itself, and four ports are enough to
// see each of them given once.
func TestPool(t *testing.T) {
	store := shared{memstore.New(memstore.Options{})}
	small := func(b *server.Builder) {
		b.Storage = store
		b.Kind("", "Service").Pool = core.ServiceNetwork{
			Addresses: netip.MustParsePrefix("10.0.0.0/29"), FirstPort: 30000, LastPort: 30003,
		}.Pool()
	}
	s := servertest.New(t, small)
	for range 20 { // neither a dry run nor a failure takes anything
		must(t, s, 201, "POST", servicePath+"?dryRun=All", service("a", ""))
		must(t, s, 422, "POST", servicePath, service("a", `,"sessionAffinity":"X"`))
	}

	codes := make([]int, 8)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() { codes[i], _ = call(t, s, "POST", servicePath, service(fmt.Sprint("s", i), "")) })
	}
	wg.Wait()
	require.ElementsMatch(t, []int{201, 201, 201, 201, 201, 500, 500, 500}, codes)
	given := map[string]bool{}
	for _, o := range services(t, s) {
		given[o.String("spec", "clusterIP")] = true
	}
	require.Len(t, given, 5)
	require.NotContains(t, given, "10.0.0.1")

	first, second := services(t, s)[0], services(t, s)[1]
	must(t, s, 200, "DELETE", servicePath+"/"+first.Name(), "")
	wish := func(o *meta.Object) string { return service("b", `,"clusterIP":"`+o.String("spec", "clusterIP")+`"`) }
	taken := must(t, s, 422, "POST", servicePath, wish(second))
	require.Equal(t, "spec.clusterIPs", meta.NewObject(taken.List("details", "causes")[0].(map[string]any)).String("field"))
	must(t, s, 201, "POST", servicePath, wish(first))

	const port, plain = `{"spec":{"type":"NodePort","ports":[{"port":1,"nodePort":30002}]}}`, `{"spec":{"type":"ClusterIP"}}`
	other := servicePath + "/" + second.Name()
	must(t, s, 200, "PATCH", servicePath+"/b", port)
	must(t, s, 200, "PATCH", servicePath+"/b", `{"metadata":{"labels":{"a":"b"}}}`)
	must(t, s, 422, "PATCH", other, port)
	must(t, s, 200, "PATCH", servicePath+"/b", plain)
	must(t, s, 200, "PATCH", other, port)

	later := servertest.New(t, small)
	must(t, later, 500, "POST", servicePath, service("c", ""))
	must(t, later, 422, "PATCH", servicePath+"/b", port)
}
