package server_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

// largeDefinition returns a CustomResourceDefinition with some 880 documented fields.
func largeDefinition(group, plural, kind string) string {
	var fields strings.Builder
	for i := range 80 {
		if i > 0 {
			fields.WriteByte(',')
		}
		fmt.Fprintf(&fields, `"part%d":{"type":"object","description":"Part %d of what is wanted, with fields of its own.","properties":{`, i, i)
		for j := range 10 {
			if j > 0 {
				fields.WriteByte(',')
			}
			fmt.Fprintf(&fields, `"field%d":{"type":"string","description":"Field %d of part %d, as people would document it.","maxLength":63}`, j, j, i)
		}
		fields.WriteString(`}}`)
	}
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.%s"},
	"spec":{"group":%q,"scope":"Namespaced","names":{"plural":%q,"kind":%q},
	"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}}]}}`,
		plural, group, group, plural, kind, fields.String())
}

// BenchmarkDefinitions creates definitions of 880 fields in one group, on a server with 0 or 100
// others, and waits until each is served. It also reports the CPU time and the live memory for each
// definition.
func BenchmarkDefinitions(b *testing.B) {
	for _, there := range []int{0, 100} {
		b.Run(fmt.Sprintf("There%d", there), func(b *testing.B) {
			s := servertest.New(b)
			create := func(name string) {
				post(b, s.Client(), s.Host()+apitest.DefinitionsPath, largeDefinition("example.com", name, "K"+name))
				for code := 0; code != http.StatusOK; {
					code, _ = apitest.Call(b, s, "GET", "/apis/example.com/v1/"+name, "")
				}
			}
			for i := range there {
				create(fmt.Sprintf("old%d", i))
			}
			s.Settle()
			b.ReportAllocs()
			heap, cpu := liveHeap(), usedCPU(b)
			n := 0
			for ; b.Loop(); n++ {
				create(fmt.Sprintf("new%d", n))
			}
			s.Settle()
			b.ReportMetric(float64(usedCPU(b)-cpu)/1e6/float64(n), "cpu-ms/op")
			b.ReportMetric(float64(liveHeap()-heap)/1024/float64(n), "live-KB/op")
		})
	}
}

func liveHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func usedCPU(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
