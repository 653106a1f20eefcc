package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/internal/kindtest"
)

func TestNode(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, core.Kinds(), "Node")
	k.Creates(t, map[string][]string{
		`{}`: nil,
		`{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","effect":"NoExecute"}]}}`:              nil,
		`{"spec":{"taints":[{"key":"a b","value":"c d","effect":"Nope"}]}}`:                                     {"Invalid:metadata.taints[0].key", "Invalid:metadata.taints[0].value", "NotSupported:metadata.taints[0].effect"},
		`{"spec":{"taints":[{"key":"a"}]}}`:                                                                     {"Required:metadata.taints[0].effect"},
		`{"spec":{"taints":[{"key":"a","effect":"NoSchedule"},{"key":"a","value":"x","effect":"NoSchedule"}]}}`: {"Duplicate:metadata.taints[1]"},
		`{"spec":{"podCIDRs":["10.0.0.0/24","fd00::/64"]}}`:                                                     nil,
		`{"spec":{"podCIDR":"nope"}}`:                                                                           {"Invalid:spec.podCIDRs[0]"},
		`{"spec":{"podCIDRs":["10.0.0.0/24","::ffff:10.1.0.0/112"]}}`:                                           {"Invalid:spec.podCIDRs[1]", "Invalid:spec.podCIDRs"},
		`{"spec":{"podCIDRs":["10.0.0.1/24"]}}`:                                                                 {"Invalid:spec.podCIDRs[0]"},
		`{"spec":{"podCIDRs":["10.0.0.0/24","10.1.0.0/24"]}}`:                                                   {"Invalid:spec.podCIDRs"},
		`{"status":{"capacity":{"cpu":"-2","example.com/x":"500m","pods":"110"}}}`:                              {"Invalid:status.capacity.cpu", "Invalid:status.capacity.example.com/x", "Invalid:status.allocatable.cpu", "Invalid:status.allocatable.example.com/x"},
		`{"spec":{"podPreemptionPolicy":{"disableResizePreemption":["a b"]}}}`:                                  {"Invalid:spec.podPreemptionPolicy.disableResizePreemption[0]"},
	})
	old, _ := k.Create(t, `{"spec":{"podCIDR":"10.0.0.0/24","providerID":"p://1","externalID":"e","configSource":{}},"status":{"capacity":{"cpu":"2"}},
		"metadata":{"name":"a","labels":{"node-role.kubernetes.io/worker":"","node-role.kubernetes.io/control-plane":"","kubernetes.io/role":"old"}}}`)
	require.Equal(t, []string{"10.0.0.0/24"}, old.Strings("spec", "podCIDRs"))
	require.Equal(t, "2", old.String("status", "allocatable", "cpu"))
	require.NotContains(t, old.Map("spec"), "configSource")
	for column, want := range map[string]string{
		"Status": "Unknown", "Roles": "control-plane,old,worker", "Internal-IP": "<none>", "OS-Image": "<unknown>", "Kernel-Version": "<unknown>",
	} {
		require.Equal(t, want, k.Cell(t, old, column), column)
	}
	const ranges, provider = "Forbidden:spec.podCIDRs", "Invalid:spec.providerID"
	k.Updates(t, old, map[string][]string{
		`{"spec":{"unschedulable":true},"status":{"capacity":{"cpu":"-1"}}}`: nil,
		`{"spec":{"podCIDR":"10.1.0.0/24"}}`:                                 {ranges},
		`{"spec":{"podCIDR":null,"podCIDRs":null}}`:                          {ranges},
		`{"spec":{"providerID":"p://2","externalID":"f"}}`:                   {provider, "Forbidden:spec.externalID"},
		`{"spec":{"taints":[{"key":"q","effect":"Q"}]}}`:                     {"NotSupported:metadata.taints[0].effect", "NotSupported:metadata.taints[0].effect"},
	})
	for patch, want := range map[string][]string{
		`{"status":{"addresses":[{"type":"InternalIP","address":"a"},{"type":"InternalIP","address":"b"}]}}`: {},
		`{"status":{"addresses":[{"type":"InternalIP","address":"a"},{"type":"InternalIP","address":"a"}]}}`: {"Duplicate:status.addresses[1]"},
		`{"status":{"declaredFeatures":["A","B/c"]}}`:                                                        {},
		`{"status":{"declaredFeatures":["B","A","A","a"]}}`:                                                  {"Invalid:status.declaredFeatures[1]", "Duplicate:status.declaredFeatures[2]", "Invalid:status.declaredFeatures[3]"},
	} {
		_, faults := k.Update(t, old, patch, "status")
		require.ElementsMatch(t, want, faults, patch)
	}
	now, _ := k.Update(t, old, `{"status":{"conditions":[{"type":"DiskPressure","status":"True"},{"type":"Ready","status":"True"}],
		"nodeInfo":{"kernelVersion":"6.1","architecture":"amd64"},"addresses":[{"type":"Hostname","address":"h"},{"type":"InternalIP","address":"10.9.9.9"}]}}`, "status")
	for column, want := range map[string]string{"Status": "Ready", "Internal-IP": "10.9.9.9", "Kernel-Version": "6.1 (amd64)"} {
		require.Equal(t, want, k.Cell(t, now, column), column)
	}
	now, _ = k.Update(t, now, `{"spec":{"unschedulable":true}}`, "")
	require.Equal(t, "Ready,SchedulingDisabled", k.Cell(t, now, "Status"))
}
