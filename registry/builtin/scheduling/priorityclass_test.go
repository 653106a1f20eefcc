package scheduling_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry/builtin/scheduling"
	"orch.io/controlplane/registry/internal/kindtest"
)

func ExampleKinds() {
	for _, k := range scheduling.Kinds() {
		t, err := resource.Compile(k, names.Orch)
		fmt.Println(t.GroupResource(), t.ShortNames, t.Namespaced, err)
	}
	// Output: priorityclasses.scheduling.orch.io [pc] false <nil>
}

func TestPriorityClass(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, scheduling.Kinds(), "PriorityClass")
	for body, want := range map[string][]string{
		`{}`:                           {},
		`{"value":-5}`:                 {},
		`{"value":1000000000}`:         {},
		`{"value":1000000001}`:         {"Forbidden:value"},
		`{"preemptionPolicy":"Bogus"}`: {"NotSupported:preemptionPolicy"},
		`{"value":1000000001,"preemptionPolicy":""}`:                                                    {"Forbidden:value", "NotSupported:preemptionPolicy"},
		`{"metadata":{"name":"system-x"},"value":1000000001}`:                                           {"Forbidden:metadata.name"},
		`{"metadata":{"name":"system-node-critical"},"value":5}`:                                        {"Forbidden:metadata.name"},
		`{"metadata":{"name":"system-node-critical"},"value":2000001000}`:                               {},
		`{"metadata":{"name":"system-cluster-critical"},"value":2000000000,"globalDefault":true}`:       {"Forbidden:metadata.name"},
		`{"metadata":{"name":"system-cluster-critical"},"value":2000000000,"preemptionPolicy":"Never"}`: {},
	} {
		_, got := k.Create(t, body)
		require.Equal(t, want, got, body)
	}
	for _, c := range k.Initial(names.Kubernetes) {
		_, got := k.Create(t, string(codec.EncodeJSON(nil, c.Tree())))
		require.Empty(t, got, c.Name())
	}
	require.Len(t, k.Initial(names.Kubernetes), 2)
	old, _ := k.Create(t, `{"value":1}`)
	require.Equal(t, "PreemptLowerPriority", old.String("preemptionPolicy"))
	require.Equal(t, false, k.Cell(t, old, "Global-Default"))
	for patch, want := range map[string][]string{
		`{"description":"d","globalDefault":true}`: {},
		`{"value":2,"preemptionPolicy":"Never"}`:   {"Forbidden:value", "Invalid:preemptionPolicy"},
		`{"preemptionPolicy":"Bogus"}`:             {"NotSupported:preemptionPolicy", "Invalid:preemptionPolicy"},
	} {
		obj, got := k.Update(t, old, patch, "")
		require.Equal(t, want, got, patch)
		require.Equal(t, old.Generation(), obj.Generation())
	}
}
