package server_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
)

const (
	podPath    = "/api/v1/namespaces/default/pods"
	budgetPath = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
)

// running creates a pod on a node that is ready.
func running(a *api, name string) {
	a.t.Helper()
	a.must(201, "POST", podPath, `{"metadata":{"name":"`+name+`","labels":{"app":"x"}},"spec":{"nodeName":"n","containers":[{"name":"c","image":"i"}]}}`)
	a.must(200, "PATCH", podPath+"/"+name+"/status", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`, "Content-Type", "application/merge-patch+json")
}

// Of many who evict at a time as many succeed as the budget allows.
func TestEvictionsKeepToTheBudget(t *testing.T) {
	a := inProcess(t, servertest.New(t))
	a.must(201, "POST", budgetPath, `{"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}`)
	for i := range 10 {
		running(a, fmt.Sprint("p", i))
	}
	early := a.must(429, "POST", podPath+"/p0/eviction", `{"metadata":{"name":"p0"}}`)
	require.Equal(t, "10", early.header.Get("Retry-After"))
	a.must(200, "PATCH", budgetPath+"/b/status", `{"status":{"observedGeneration":1,"disruptionsAllowed":3,"currentHealthy":10,"desiredHealthy":7,"expectedPods":10}}`,
		"Content-Type", "application/merge-patch+json")
	a.must(201, "POST", podPath+"/p0/eviction?dryRun=All", `{"metadata":{"name":"p0"}}`)
	a.must(409, "POST", podPath+"/p0/eviction", `{"metadata":{"name":"p0"},"deleteOptions":{"preconditions":{"resourceVersion":"1"}}}`)
	a.must(422, "POST", podPath+"/p0/eviction", `{"metadata":{"name":"p0"},"deleteOptions":{"propagationPolicy":"Foo"}}`)
	a.must(422, "POST", podPath+"/p0/eviction", `{"metadata":{"name":"p0"},"deleteOptions":{"ignoreStoreReadErrorWithClusterBreakingPotential":true}}`)
	a.must(400, "POST", podPath+"/p0/eviction", `{"metadata":{"name":"p1"}}`)
	var done, refused atomic.Int32
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			switch got := a.do("POST", fmt.Sprintf("%s/p%d/eviction", podPath, i), fmt.Sprintf(`{"metadata":{"name":"p%d"}}`, i)); got.code {
			case 201:
				done.Add(1)
			case 429:
				refused.Add(1)
			default:
				assert.Fail(t, "an eviction", "%s", got.raw)
			}
		})
	}
	wait.Wait()
	require.Equal(t, []int32{3, 7}, []int32{done.Load(), refused.Load()})
	budget := a.must(200, "GET", budgetPath+"/b", nil).body
	require.EqualValues(t, 0, at(budget, "status", "disruptionsAllowed"))
	require.Len(t, at(budget, "status", "disruptedPods"), 3)
	for pod := range at(budget, "status", "disruptedPods").(map[string]any) {
		got := a.must(200, "GET", podPath+"/"+pod, nil)
		require.Contains(t, string(got.raw), "EvictionByEvictionAPI")
		require.EqualValues(t, 30, at(got.body, "metadata", "deletionGracePeriodSeconds"))
	}
}

// One of many bindings puts a pod on a node, and the others are told so.
func TestBindingsOfOnePod(t *testing.T) {
	a := inProcess(t, servertest.New(t))
	a.must(201, "POST", podPath, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	a.must(201, "POST", podPath+"/p/binding?dryRun=All", `{"metadata":{"name":"p"},"target":{"name":"dry"}}`)
	a.must(422, "POST", podPath+"/p/binding", `{"metadata":{"name":"p"},"target":{"kind":"Pod"}}`)
	a.must(404, "POST", "/api/v1/namespaces/default/bindings", `{"metadata":{"name":"none"},"target":{"name":"n"}}`)
	var done atomic.Int32
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			path := podPath + "/p/binding"
			if i%2 == 0 {
				path = "/api/v1/namespaces/default/bindings"
			}
			got := a.do("POST", path, fmt.Sprintf(`{"metadata":{"name":"p","labels":{"by":"b%d"}},"target":{"name":"n%d"}}`, i, i))
			if got.code == 201 {
				done.Add(1)
				return
			}
			assert.Equal(t, 409, got.code, "%s", got.raw)
		})
	}
	wait.Wait()
	require.EqualValues(t, 1, done.Load())
	pod := a.must(200, "GET", podPath+"/p", nil).body
	require.Equal(t, at(pod, "metadata", "labels", "by").(string)[1:], at(pod, "spec", "nodeName").(string)[1:])
	require.EqualValues(t, 1, at(pod, "metadata", "generation"))
}
