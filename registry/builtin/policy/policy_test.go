package policy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/policy"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range policy.Kinds() {
		fmt.Println(k)
	}
	fmt.Println(policy.Evict().Name)
	// Output:
	// kind PodDisruptionBudget.policy (Go type policy.PodDisruptionBudget)
	// eviction
}

func TestPodDisruptionBudget(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, policy.Kinds(), "PodDisruptionBudget")
	k.Creates(t, map[string][]string{
		`{}`:                                  nil,
		`{"metadata":{"name":"Any_Segment"}}`: nil,
		`{"spec":{"maxUnavailable":"30%","selector":{}}}`:                        nil,
		`{"spec":{"maxUnavailable":1,"minAvailable":1}}`:                         {"Invalid:spec"},
		`{"spec":{"maxUnavailable":-1}}`:                                         {"Invalid:spec.maxUnavailable"},
		`{"spec":{"maxUnavailable":"130%"}}`:                                     {"Invalid:spec.maxUnavailable"},
		`{"spec":{"minAvailable":"x"}}`:                                          {"Invalid:spec.minAvailable"},
		`{"spec":{"selector":{"matchLabels":{"a b":"c"}}}}`:                      {"Invalid:spec.selector.matchLabels"},
		`{"spec":{"unhealthyPodEvictionPolicy":"Foo"}}`:                          {"NotSupported:spec.unhealthyPodEvictionPolicy"},
		`{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow","minAvailable":0}}`: nil,
	})
	old, _ := k.Create(t, `{"spec":{"minAvailable":3}}`)
	for status, want := range map[string][]string{
		`{"disruptionsAllowed":-1,"currentHealthy":-1,"desiredHealthy":-1,"expectedPods":-1}`: {"Invalid:status.disruptionsAllowed", "Invalid:status.currentHealthy",
			"Invalid:status.desiredHealthy", "Invalid:status.expectedPods"},
		`{"conditions":[{"type":"A","status":"x"}]}`: {"NotSupported:status.conditions[0].status", "Required:status.conditions[0].lastTransitionTime", "Required:status.conditions[0].reason"},
		`{"conditions":[{"type":"A b","status":"True","reason":"a-b","observedGeneration":-1,"lastTransitionTime":"2020-01-01T00:00:00Z"}]}`: {"Invalid:status.conditions[0].type",
			"Invalid:status.conditions[0].reason", "Invalid:status.conditions[0].observedGeneration"},
		`{"conditions":[{"type":"A","status":"True","reason":"R","lastTransitionTime":"2020-01-01T00:00:00Z"}]}`: nil,
	} {
		_, got := k.Update(t, old, `{"status":`+status+`}`, "status")
		assert.ElementsMatch(t, want, got, status)
	}
	require.Equal(t, "3", k.Cell(t, old, "Min Available"))
	require.Equal(t, "N/A", k.Cell(t, old, "Max Unavailable"))
	require.Equal(t, int64(0), k.Cell(t, old, "Allowed Disruptions"))
}
