package authentication_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/authentication"
)

func act(_ context.Context, call *registry.Call) (*meta.Object, error) { return call.Object, nil }

func TestTokenReviewNeedsAToken(t *testing.T) {
	kinds := authentication.Kinds(authentication.Answers{Token: act})
	require.Len(t, kinds, 1, "a kind that nobody answers is not there")
	k, err := resource.Compile(kinds[0], names.Kubernetes)
	require.NoError(t, err)
	for token, reason := range map[string]meta.Reason{"": meta.ReasonBadRequest, "x": ""} {
		_, err := k.Act(t.Context(), &registry.Call{Object: meta.NewObject(map[string]any{"spec": map[string]any{"token": token}})})
		require.Equal(t, reason, meta.ReasonOf(err))
	}
}
