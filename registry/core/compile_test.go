package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/core"
	"orch.io/controlplane/registry/names"
)

func TestEveryKindCompilesUnderBothProfiles(t *testing.T) {
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		for _, k := range core.Kinds(p) {
			_, err := k.Compile(p)
			require.NoError(t, err, k.Kind)
		}
	}
}
