package replicas_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage/memstore"
)

func services(t *testing.T, s *servertest.Server) []*meta.Object {
	var out []*meta.Object
	for _, v := range apitest.Must(t, s, 200, "GET", apitest.ServicesPath, "").List("items") {
		out = append(out, meta.NewObject(v.(map[string]any)))
	}
	return out
}

// TestAllocatedValueIsNotAllocatedAgain: a value that one write allocated is not given to another
// write.
func TestAllocatedValueIsNotAllocatedAgain(t *testing.T) {
	t.Parallel()
	var chosen []string
	var between sync.Once
	var s *servertest.Server
	s = servertest.New(t, func(b *server.Builder) {
		k := b.Kind("", "Service")
		k.Allocator = &registry.Allocator{
			Values: func(o *meta.Object) []string {
				if ip := o.String("spec", "clusterIP"); ip != "" {
					return []string{ip}
				}
				return nil
			},
			Allocate: func(a *registry.Allocation) ([]meta.StatusCause, error) {
				for i := range 10 {
					if ip := fmt.Sprint("10.0.0.", i); a.Free(ip) {
						chosen = append(chosen, a.Object.Name()+" "+ip)
						a.Object.Set(ip, "spec", "clusterIP")
						a.Object.Set([]any{ip}, "spec", "clusterIPs")
						return nil, nil
					}
				}
				return nil, errors.New("none is left")
			},
		}
		defaults := k.Default
		k.Default = func(w *registry.Change[meta.Object]) {
			if defaults != nil {
				defaults(w)
			}
			if w.New.Name() == "a" && w.New.String("spec", "clusterIP") != "" {
				between.Do(func() { apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("b", "")) })
			}
		}
	})
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, apitest.NewService("a", ""))
	require.Equal(t, []string{"a 10.0.0.0", "b 10.0.0.1"}, chosen[len(chosen)-2:])
}

// TestServersAllocateEachValueOnce: servers over the same store allocate each value once. Five
// addresses, in addition to the address of the server, and four ports are enough to see that.
func TestServersAllocateEachValueOnce(t *testing.T) {
	t.Parallel()
	store := apitest.KeepOpen{Backend: memstore.New(memstore.Options{})}
	small := func(b *server.Builder) {
		b.Storage = store
		b.Kind("", "Service").Allocator = core.ServiceNetwork{
			Addresses: netip.MustParsePrefix("10.0.0.0/29"), FirstPort: 30000, LastPort: 30003,
		}.Pool()
	}
	s := servertest.New(t, small)
	for range 20 { // neither a dry run nor a failure takes anything
		apitest.Must(t, s, 201, "POST", apitest.ServicesPath+"?dryRun=All", apitest.NewService("a", ""))
		apitest.Must(t, s, 422, "POST", apitest.ServicesPath, apitest.NewService("a", `,"sessionAffinity":"X"`))
	}

	codes := make([]int, 8)
	var wg sync.WaitGroup
	for i := range codes {
		wg.Go(func() {
			codes[i], _ = apitest.Call(t, s, "POST", apitest.ServicesPath, apitest.NewService(fmt.Sprint("s", i), ""))
		})
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
	apitest.Must(t, s, 200, "DELETE", apitest.ServicesPath+"/"+first.Name(), "")
	wish := func(o *meta.Object) string {
		return apitest.NewService("b", `,"clusterIP":"`+o.String("spec", "clusterIP")+`"`)
	}
	taken := apitest.Must(t, s, 422, "POST", apitest.ServicesPath, wish(second))
	require.Equal(t, "spec.clusterIPs", meta.NewObject(taken.List("details", "causes")[0].(map[string]any)).String("field"))
	apitest.Must(t, s, 201, "POST", apitest.ServicesPath, wish(first))

	const port, plain = `{"spec":{"type":"NodePort","ports":[{"port":1,"nodePort":30002}]}}`, `{"spec":{"type":"ClusterIP"}}`
	other := apitest.ServicesPath + "/" + second.Name()
	apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/b", port)
	apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/b", `{"metadata":{"labels":{"a":"b"}}}`)
	apitest.Must(t, s, 422, "PATCH", other, port)
	apitest.Must(t, s, 200, "PATCH", apitest.ServicesPath+"/b", plain)
	apitest.Must(t, s, 200, "PATCH", other, port)

	later := servertest.New(t, small)
	apitest.Must(t, later, 500, "POST", apitest.ServicesPath, apitest.NewService("c", ""))
	apitest.Must(t, later, 422, "PATCH", apitest.ServicesPath+"/b", port)
}

// TestUncommittedAllocationsStayFree: a value that a dry run or an unfinished write has chosen is
// free for the write that commits it first.
func TestUncommittedAllocationsStayFree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, query, spec string
		refuse            error
		code              int
	}{
		{"dry run", "?dryRun=All", `,"type":"NodePort"`, nil, 201},
		{"dry run of a wish", "?dryRun=All", `,"clusterIP":"10.0.0.9"`, nil, 201},
		{"refused later", "", `,"clusterIP":"10.0.0.9"`, errors.New("no"), 403},
		{"wish", "", `,"clusterIP":"10.0.0.9"`, nil, 422},
		{"choice", "", `,"type":"NodePort"`, nil, 201},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s *servertest.Server
			other := 0
			s = servertest.New(t, smallNetwork(memstore.New(memstore.Options{})), func(b *server.Builder) {
				b.Admission = append(b.Admission, admission.Plugin{Name: "test", Validate: func(_ context.Context, r *admission.Request) error {
					if r.Name != "first" || other != 0 {
						return nil
					}
					ports, _ := json.Marshal(r.Object.List("spec", "ports"))
					other, _ = apitest.Call(t, s, "POST", apitest.ServicesPath, fmt.Sprintf(`{"metadata":{"name":"second"},"spec":{"type":%q,"clusterIP":%q,"ports":%s}}`,
						r.Object.String("spec", "type"), r.Object.String("spec", "clusterIP"), ports))
					return c.refuse
				}})
			})
			got := apitest.Must(t, s, c.code, "POST", apitest.ServicesPath+c.query, apitest.NewService("first", c.spec))
			require.Equal(t, 201, other)
			if c.code == 201 && c.query == "" {
				second := apitest.Must(t, s, 200, "GET", apitest.ServicesPath+"/second", "")
				require.NotEqual(t, second.String("spec", "clusterIP"), got.String("spec", "clusterIP"))
			}
		})
	}
}
