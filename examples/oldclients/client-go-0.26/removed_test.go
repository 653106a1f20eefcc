// Package oldclients tests client-go 0.26 with API versions that later releases removed.
package oldclients

import (
	"math"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"orch.io/controlplane/examples/oldclients/internal/typed"
)

// TestRemovedVersions uses the versions that were introduced after client-go 0.17.
func TestRemovedVersions(t *testing.T) {
	typed.Run(t, kubernetes.NewForConfig, dynamic.NewForConfig, 18, math.MaxInt)
}
