package operator

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/internal/documents"
)

// TestGoOfDocumentsCompiles compiles the Go code in documents that uses packages of Kubernetes.
func TestGoOfDocumentsCompiles(t *testing.T) {
	all, err := documents.Read("../..")
	require.NoError(t, err)
	m := documents.Module{
		Dir: "examples/operator", Kubernetes: true, Dot: "orch.io/controlplane/examples/operator",
		Packages: map[string]string{"client": "sigs.k8s.io/controller-runtime/pkg/client"},
	}
	n, err := m.Compile("../..", all)
	require.NoError(t, err)
	assert.NotZero(t, n, "no document has a Go block with packages of Kubernetes")
	assert.Equal(t, documents.Module{Kubernetes: true}.Count(all), n, "the blocks that TestGoCompiles leaves to this module")
}
