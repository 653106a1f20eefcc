package oldclients

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"orch.io/controlplane/examples/oldclients/internal/typed"
)

// TestRemovedVersions: the versions that client-go 0.17 has.
func TestRemovedVersions(t *testing.T) {
	typed.Run(t, clients, 0, 17)
}

func clients(t *testing.T, host string, transport http.RoundTripper, mediaType string) (clientset, untyped any) {
	config := &rest.Config{Host: host, Transport: transport, QPS: -1,
		ContentConfig: rest.ContentConfig{ContentType: mediaType, AcceptContentTypes: mediaType}}
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	d, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return c, d
}
