package authentication_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/authentication"
)

func act(_ context.Context, call *registry.Call) (*meta.Object, error) { return call.Object, nil }

func TestTokenReviewNeedsAToken(t *testing.T) {
	kinds := authentication.Kinds(authentication.Answers{Token: act})
	require.Len(t, kinds, 1, "a kind that nobody answers is not there")
	k, err := kinds[0].Compile(names.Kubernetes)
	require.NoError(t, err)
	for token, reason := range map[string]meta.Reason{"": meta.ReasonBadRequest, "x": ""} {
		_, err := k.Act(t.Context(), &registry.Call{Object: meta.NewObject(map[string]any{"spec": map[string]any{"token": token}})})
		require.Equal(t, reason, meta.ReasonOf(err))
	}
}

func TestTokenRequestLifetimes(t *testing.T) {
	for seconds, bad := range map[any]bool{nil: false, int64(599): true, int64(600): false, int64(1 << 32): false, int64(1<<32 + 1): true} {
		r := meta.NewObject(map[string]any{"spec": map[string]any{"expirationSeconds": seconds}})
		require.Equal(t, bad, len(authentication.TokenRequestFaults(r)) > 0, "%v", seconds)
	}
}
