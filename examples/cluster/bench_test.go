package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"orch.io/controlplane/examples/cluster/internal/testbed"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// The benchmarks run with one server and with three, on three members of etcd that sync their disks.
// All processes share the processors of one machine, so the benchmarks also report the CPU time of each
// request: server-cpu for the servers, etcd-cpu for the members. To measure the throughput of servers
// or members that have a small processor each, limit them:
//
//	go test -run XXX -bench Read -server-share 0.1
//	go test -run XXX -bench Create -etcd-share 0.1
var (
	serverShare = flag.Float64("server-share", 0, "share of a processor for each server of a benchmark, at least 0.05, enforced by cgroups (Linux, root); 0: no limit")
	etcdShare   = flag.Float64("etcd-share", 0, "share of a processor for each etcd member, as in -server-share")
)

// benchCluster is a set of servers and their etcd.
type benchCluster struct {
	etcd    *etcdtest.Cluster
	servers []*testbed.Server
	bare    *clientv3.Client
	serial  atomic.Int64
}

const benchValue = 1 << 10 // size of the data of each object

func startBenched(b *testing.B, n int) *benchCluster {
	c := etcdtest.StartCluster(b, "--unsafe-no-fsync=false")
	var endpoints []string
	for _, m := range c.Members {
		endpoints = append(endpoints, m.Endpoint)
	}
	s := &benchCluster{etcd: c, servers: testbed.StartServers(b, endpoints, n)}
	for _, p := range s.servers {
		limit(b, p.Pid(), *serverShare, p.Kill)
	}
	for _, m := range c.Members {
		limit(b, m.Pid(), *etcdShare, m.Kill)
	}
	var err error
	s.bare, err = clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	require.NoError(b, err)
	b.Cleanup(func() { _ = s.bare.Close() })
	return s
}

// limit limits a process to a share of the time of one processor.
func limit(t testing.TB, pid int, share float64, kill func()) {
	if share == 0 {
		return
	}
	const period = 20_000 // microseconds
	groups, quota, text := "/sys/fs/cgroup", "cpu.max", fmt.Sprint(int(share*period), period)
	if _, err := os.Stat(filepath.Join(groups, "cgroup.controllers")); err != nil { // cgroups v1
		groups, quota, text = "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", fmt.Sprint(int(share*period))
	}
	group, err := os.MkdirTemp(groups, "controlplane-bench-")
	require.NoError(t, err)
	t.Cleanup(func() {
		kill()
		require.NoError(t, os.Remove(group))
	})
	set := func(file, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(group, file), []byte(text), 0))
	}
	if quota == "cpu.cfs_quota_us" {
		set("cpu.cfs_period_us", fmt.Sprint(period))
	}
	set(quota, text)
	set("cgroup.procs", fmt.Sprint(pid))
}

// spent holds the counters of the processes, either totals or of some runs, and the duration.
type spent struct{ time, serverCPU, etcdCPU, etcdCalls float64 }

func (s *benchCluster) spentSoFar(b *testing.B) (x spent) {
	for _, p := range s.servers {
		x.serverCPU += sum(b, p.HTTP, p.URL, `process_cpu_seconds_total`)
	}
	for _, m := range s.etcd.Members {
		url := "http://" + m.Endpoint
		x.etcdCPU += sum(b, http.DefaultClient, url, `process_cpu_seconds_total`)
		x.etcdCalls += sum(b, http.DefaultClient, url, `grpc_server_started_total\{.*grpc_type="unary".*\}`)
	}
	return x
}

// sum returns the sum of the metrics of a process that match a pattern.
func sum(b *testing.B, client *http.Client, url, pattern string) (total float64) {
	res, err := client.Get(url + "/metrics")
	require.NoError(b, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(b, err)
	for _, found := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(found[1]), 64)
		require.NoError(b, err)
		total += n
	}
	return total
}

// run makes n requests with concurrent clients, each on one of the servers, and adds the resources that
// they used to the total. It makes at most rate requests per second, or any number if rate is 0.
func (s *benchCluster) run(b *testing.B, clients, n int, rate float64, to *spent, do func(p *testbed.Server, serial int64) error) {
	before, from := s.spentSoFar(b), time.Now()
	var all sync.WaitGroup
	var begun atomic.Int64
	for i := range clients {
		p := s.servers[i%len(s.servers)]
		all.Go(func() {
			for i := begun.Add(1); i <= int64(n); i = begun.Add(1) {
				if rate > 0 {
					time.Sleep(time.Until(from.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
				}
				if err := do(p, s.serial.Add(1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(from).Seconds()
	after := s.spentSoFar(b)
	to.add(spent{took, after.serverCPU - before.serverCPU, after.etcdCPU - before.etcdCPU, after.etcdCalls - before.etcdCalls})
}

func (x *spent) add(y spent) {
	x.time += y.time
	x.serverCPU += y.serverCPU
	x.etcdCPU += y.etcdCPU
	x.etcdCalls += y.etcdCalls
}

func (x spent) report(b *testing.B, n int) {
	b.ReportMetric(float64(n)/x.time, "requests/s")
	b.ReportMetric(1e6*x.serverCPU/float64(n), "server-cpu-µs/op")
	b.ReportMetric(1e6*x.etcdCPU/float64(n), "etcd-cpu-µs/op")
	b.ReportMetric(x.etcdCalls/float64(n), "etcd-calls/op")
}

// want makes a request that must succeed.
func want(ctx context.Context, p *testbed.Server, method, path, body string) error {
	r, err := http.NewRequestWithContext(ctx, method, p.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := p.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %d %s %w", method, path, res.StatusCode, text, err)
	}
	return nil
}

func benchBody(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"value":%q}}`, name, strings.Repeat("x", benchValue))
}

// BenchmarkRead measures consistent reads of one object and of a list of 100 objects. etcd-calls is
// less than one if concurrent reads share a quorum read.
func BenchmarkRead(b *testing.B) {
	const objects = 100
	name := func(i int64) string { return fmt.Sprint("n", i%objects) }
	for _, n := range []int{1, 3} {
		s := startBenched(b, n)
		for i := range int64(objects) {
			require.NoError(b, want(b.Context(), s.servers[0], "POST", testbed.ConfigMaps, benchBody(name(i))))
		}
		for what, path := range map[string]func(i int64) string{
			"get":  func(i int64) string { return testbed.ConfigMaps + "/" + name(i) },
			"list": func(int64) string { return testbed.ConfigMaps },
		} {
			for _, clients := range []int{1, 64, 256} {
				b.Run(fmt.Sprintf("%s/servers=%d/clients=%d", what, n, clients), func(b *testing.B) {
					get := func(p *testbed.Server, i int64) error { return want(b.Context(), p, "GET", path(i), "") }
					s.run(b, clients, 2*clients, 0, &spent{}, get)
					var x spent
					b.ResetTimer()
					s.run(b, clients, b.N, 0, &x, get)
					x.report(b, b.N)
				})
			}
		}
	}
}

// BenchmarkCreate measures creates of ConfigMaps. It alternates with puts of keys and values of the
// same length by etcd's client. of-limit is the time of the puts divided by the time of the creates,
// with all processes on the same processors. etcd-cpu-of-limit is the same ratio of the CPU time of the
// members, with the puts at the rate of the creates, as an estimate for servers, members and clients on
// separate machines.
func BenchmarkCreate(b *testing.B) {
	const rounds = 10
	name := func(i int64) string { return fmt.Sprintf("n%09d", i) }
	for _, n := range []int{1, 3} {
		s := startBenched(b, n)
		create := func(p *testbed.Server, i int64) error {
			return want(b.Context(), p, "POST", testbed.ConfigMaps, benchBody(name(i)))
		}
		require.NoError(b, create(s.servers[0], s.serial.Load()))
		found, err := s.bare.Get(b.Context(), "/registry/data/configmaps/default/"+name(0))
		require.NoError(b, err)
		require.Len(b, found.Kvs, 1)
		value := string(found.Kvs[0].Value)
		put := func(_ *testbed.Server, i int64) error {
			_, err := s.bare.Put(b.Context(), "/limits_/data/configmaps/default/"+name(i), value)
			return err
		}
		for _, clients := range []int{1, 16, 64, 128, 256} {
			b.Run(fmt.Sprintf("servers=%d/clients=%d", n, clients), func(b *testing.B) {
				each := max(clients, b.N/rounds)
				var ours, limit, paced spent
				s.run(b, clients, clients, 0, &spent{}, create)
				b.ResetTimer()
				for range rounds {
					var now spent
					s.run(b, clients, each, 0, &now, create)
					b.StopTimer()
					ours.add(now)
					s.run(b, clients, each, 0, &limit, put)
					s.run(b, clients, each, float64(each)/now.time, &paced, put)
					b.StartTimer()
				}
				ours.report(b, rounds*each)
				b.ReportMetric(limit.time/ours.time, "of-limit")
				b.ReportMetric(paced.etcdCPU/ours.etcdCPU, "etcd-cpu-of-limit")
			})
		}
	}
}
