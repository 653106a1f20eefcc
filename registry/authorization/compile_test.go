package authorization_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/authorization"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

func act(_ context.Context, call *registry.Call) (*meta.Object, error) { return call.Object, nil }

func TestEveryKindCompilesUnderBothProfiles(t *testing.T) {
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		for _, k := range authorization.Kinds(authorization.Answers{Subject: act, SelfSubject: act, LocalSubject: act, SelfSubjectRules: act}) {
			_, err := k.Compile(p)
			require.NoError(t, err, k.Kind)
		}
	}
}
