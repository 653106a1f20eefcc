package verbs_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/internal/apitest"
	"orch.io/controlplane/server/servertest"
)

const (
	budgetPath = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
)

// TestEvictionsKeepToTheBudget: of many concurrent evictions, as many succeed as the budget allows.
func TestEvictionsKeepToTheBudget(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", budgetPath, `{"metadata":{"name":"b"},"spec":{"minAvailable":1,"selector":{"matchLabels":{"app":"x"}}}}`)
	for i := range 10 {
		apitest.RunPod(a, fmt.Sprint("p", i))
	}
	early := a.Must(429, "POST", apitest.PodsPath+"/p0/eviction", `{"metadata":{"name":"p0"}}`)
	require.Equal(t, "10", early.Header.Get("Retry-After"))
	a.Must(200, "PATCH", budgetPath+"/b/status", `{"status":{"observedGeneration":1,"disruptionsAllowed":3,"currentHealthy":10,"desiredHealthy":7,"expectedPods":10}}`,
		"Content-Type", "application/merge-patch+json")
	a.Must(201, "POST", apitest.PodsPath+"/p0/eviction?dryRun=All", `{"metadata":{"name":"p0"}}`)
	a.Must(409, "POST", apitest.PodsPath+"/p0/eviction", `{"metadata":{"name":"p0"},"deleteOptions":{"preconditions":{"resourceVersion":"1"}}}`)
	a.Must(422, "POST", apitest.PodsPath+"/p0/eviction", `{"metadata":{"name":"p0"},"deleteOptions":{"propagationPolicy":"Foo"}}`)
	a.Must(422, "POST", apitest.PodsPath+"/p0/eviction", `{"metadata":{"name":"p0"},"deleteOptions":{"ignoreStoreReadErrorWithClusterBreakingPotential":true}}`)
	a.Must(400, "POST", apitest.PodsPath+"/p0/eviction", `{"metadata":{"name":"p1"}}`)
	var done, refused atomic.Int32
	var wait sync.WaitGroup
	for i := range 10 {
		wait.Go(func() {
			switch got := a.Do("POST", fmt.Sprintf("%s/p%d/eviction", apitest.PodsPath, i), fmt.Sprintf(`{"metadata":{"name":"p%d"}}`, i)); got.Code {
			case 201:
				done.Add(1)
			case 429:
				refused.Add(1)
			default:
				assert.Fail(t, "an eviction", "%s", got.Raw)
			}
		})
	}
	wait.Wait()
	require.Equal(t, []int32{3, 7}, []int32{done.Load(), refused.Load()})
	budget := a.Must(200, "GET", budgetPath+"/b", nil).Body
	require.EqualValues(t, 0, apitest.Nested(budget, "status", "disruptionsAllowed"))
	require.Len(t, apitest.Nested(budget, "status", "disruptedPods"), 3)
	for pod := range apitest.Nested(budget, "status", "disruptedPods").(map[string]any) {
		got := a.Must(200, "GET", apitest.PodsPath+"/"+pod, nil)
		require.Contains(t, string(got.Raw), "EvictionByEvictionAPI")
		require.EqualValues(t, 30, apitest.Nested(got.Body, "metadata", "deletionGracePeriodSeconds"))
	}
}

// TestBindingsOfOnePod: one of many concurrent bindings of a pod succeeds, and the others get a conflict.
func TestBindingsOfOnePod(t *testing.T) {
	t.Parallel()
	a := apitest.InProcess(t, servertest.New(t))
	a.Must(201, "POST", apitest.PodsPath, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	a.Must(201, "POST", apitest.PodsPath+"/p/binding?dryRun=All", `{"metadata":{"name":"p"},"target":{"name":"dry"}}`)
	a.Must(422, "POST", apitest.PodsPath+"/p/binding", `{"metadata":{"name":"p"},"target":{"kind":"Pod"}}`)
	a.Must(404, "POST", "/api/v1/namespaces/default/bindings", `{"metadata":{"name":"none"},"target":{"name":"n"}}`)
	var done atomic.Int32
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			path := apitest.PodsPath + "/p/binding"
			if i%2 == 0 {
				path = "/api/v1/namespaces/default/bindings"
			}
			got := a.Do("POST", path, fmt.Sprintf(`{"metadata":{"name":"p","labels":{"by":"b%d"}},"target":{"name":"n%d"}}`, i, i))
			if got.Code == 201 {
				done.Add(1)
				return
			}
			assert.Equal(t, 409, got.Code, "%s", got.Raw)
		})
	}
	wait.Wait()
	require.EqualValues(t, 1, done.Load())
	pod := a.Must(200, "GET", apitest.PodsPath+"/p", nil).Body
	require.Equal(t, apitest.Nested(pod, "metadata", "labels", "by").(string)[1:], apitest.Nested(pod, "spec", "nodeName").(string)[1:])
	require.EqualValues(t, 1, apitest.Nested(pod, "metadata", "generation"))
}
