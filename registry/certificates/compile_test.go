package certificates_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry/certificates"
	"orch.io/controlplane/registry/names"
)

func TestEveryKindCompilesUnderBothProfiles(t *testing.T) {
	for _, p := range []names.Profile{names.Orch, names.Kubernetes} {
		for _, k := range certificates.Kinds(p) {
			_, err := k.Compile(p)
			require.NoError(t, err, k.Kind)
		}
	}
}
