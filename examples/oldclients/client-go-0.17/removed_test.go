package oldclients

import (
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"orch.io/controlplane/examples/oldclients/internal/typed"
)

// TestRemovedVersions uses the versions that client-go 0.17 has.
func TestRemovedVersions(t *testing.T) {
	typed.Run(t, kubernetes.NewForConfig, dynamic.NewForConfig, 0, 17)
}
