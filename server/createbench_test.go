package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/server"
	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

// BenchmarkCreate has eight clients create ConfigMaps.
func BenchmarkCreate(b *testing.B) {
	benchCreate(b, "/api/v1/namespaces/default/configmaps", func(i int) string { return configMap(fmt.Sprint("n", i), 200) })
}

// BenchmarkCreateService has eight clients create Services, each of which takes an address and a
// node port.
func BenchmarkCreateService(b *testing.B) {
	benchCreate(b, apitest.ServicesPath, func(i int) string { return apitest.NewService(fmt.Sprint("n", i), `,"type":"NodePort"`) })
}

// benchCreate creates objects in a memory store and in a Badger directory, alternating with a bare
// handler that answers with the same bytes.
func benchCreate(b *testing.B, path string, body func(i int) string) {
	stores := map[string]func(b *testing.B) storage.Backend{
		"memory":    func(*testing.B) storage.Backend { return memstore.New(memstore.Options{}) },
		"directory": func(b *testing.B) storage.Backend { return apitest.OpenBadger(b, b.TempDir()) },
	}
	for _, name := range []string{"memory", "directory"} {
		b.Run(name, func(b *testing.B) {
			store := stores[name](b)
			s := servertest.New(b, apitest.WithStorage(store), func(sb *server.Builder) {
				sb.Kind("", "Service").Allocator = core.ServiceNetwork{
					Addresses: netip.MustParsePrefix("10.0.0.0/12"), FirstPort: 1, LastPort: 65535,
				}.Pool()
			})
			post(b, s.Client(), s.Host()+path, body(0))
			answer := fetch(b, s, path+"/n0")
			bare := func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write(answer)
			}
			p := newPair(b, s, bare)
			p.client.Transport.(*http.Transport).MaxIdleConnsPerHost = 16
			var ours, limit time.Duration
			const rounds, clients = 8, 8
			each := max(1, b.N/rounds/clients)
			do := func(method, url string, body func(i int) string) time.Duration {
				begun := time.Now()
				var all sync.WaitGroup
				for c := range clients {
					all.Go(func() {
						for i := range each {
							p.do(b, method, url, body, 1+c*each+i)
						}
					})
				}
				all.Wait()
				return time.Since(begun)
			}
			b.ResetTimer()
			for range rounds {
				ours += do("POST", p.ours.URL+path, body)
				b.StopTimer()
				limit += do("POST", p.limit.URL+path, body)
				do("DELETE", p.ours.URL+path, nil)
				b.StartTimer()
			}
			b.ReportMetric(float64(limit)/float64(ours), "of-limit")
			b.ReportMetric(float64(ours.Microseconds())/float64(rounds*each*clients), "µs/create")
			if d, ok := store.(*badgerstore.Store); ok {
				b.ReportMetric(float64(d.Stats().Commits)/float64(d.Stats().Fsyncs), "writes/fsync")
			}
		})
	}
}

// do creates the object with number i, or deletes it if body is nil.
func (p *pair) do(b *testing.B, method, url string, body func(i int) string, i int) {
	text := ""
	if body == nil {
		url += fmt.Sprint("/n", i)
	} else {
		text = body(i)
	}
	r, err := http.NewRequestWithContext(b.Context(), method, url, strings.NewReader(text))
	if err != nil {
		b.Error(err)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := p.client.Do(r)
	if err != nil {
		b.Error(err)
		return
	}
	answer, _ := io.ReadAll(res.Body)
	if _ = res.Body.Close(); res.StatusCode/100 != 2 {
		b.Errorf("%s %s: %d %s", method, url, res.StatusCode, answer)
	}
}
