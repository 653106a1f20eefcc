package authentication_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/authentication"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

func act(_ context.Context, call *registry.Call) (*meta.Object, error) { return call.Object, nil }

func TestEveryKindCompilesUnderBothProfiles(t *testing.T) {
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		for _, k := range authentication.Kinds(authentication.Answers{Token: act, SelfSubject: act}) {
			_, err := k.Compile(p)
			require.NoError(t, err, k.Kind)
		}
	}
}
