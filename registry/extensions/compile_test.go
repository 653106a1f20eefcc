package extensions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/extensions"
	"orch.io/controlplane/registry/names"
)

func TestEveryKindCompilesUnderBothProfiles(t *testing.T) {
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		for _, k := range extensions.Kinds(p) {
			_, err := k.Compile(p)
			require.NoError(t, err, k.Kind)
		}
	}
}
