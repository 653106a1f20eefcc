package rbac_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/names"
	"orch.io/controlplane/registry/rbac"
)

func TestEveryKindCompilesUnderBothProfiles(t *testing.T) {
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		for _, k := range rbac.Kinds(p) {
			_, err := k.Compile(p)
			require.NoError(t, err, k.Kind)
		}
	}
}
