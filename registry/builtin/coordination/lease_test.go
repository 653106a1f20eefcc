package coordination_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry/builtin/coordination"
	"orch.io/controlplane/registry/internal/kindtest"
)

func TestLease(t *testing.T) {
	k := kindtest.Of(t, names.Kubernetes, coordination.Kinds(), "Lease")
	require.True(t, k.PutWithVersion)
	require.True(t, k.CreateOnPut)
	for body, want := range map[string][]string{
		`{}`:                                       {},
		`{"spec":{"holderIdentity":""}}`:           {},
		`{"spec":{"leaseDurationSeconds":0}}`:      {"Invalid:spec.leaseDurationSeconds"},
		`{"spec":{"leaseDurationSeconds":-5}}`:     {"Invalid:spec.leaseDurationSeconds"},
		`{"spec":{"leaseTransitions":-1}}`:         {"Invalid:spec.leaseTransitions"},
		`{"spec":{"leaseTransitions":0}}`:          {},
		`{"spec":{"preferredHolder":"x"}}`:         {"Forbidden:spec.preferredHolder"},
		`{"spec":{"strategy":"no good strategy"}}`: {"Invalid:spec.strategy"},
	} {
		_, got := k.Create(t, body)
		require.Equal(t, want, got, body)
	}
	obj, _ := k.Create(t, `{"spec":{"acquireTime":"2024-01-02T03:04:05.123456Z"}}`)
	require.Equal(t, "2024-01-02T03:04:05.123456Z", obj.String("spec", "acquireTime"), "microseconds are kept")
	bare, _ := k.Create(t, `{}`)
	require.Equal(t, map[string]any{}, bare.Map("spec"))
}
