package clients

import (
	"context"
	"encoding/pem"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"orch.io/controlplane/server/servertest"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// inProcess returns a configuration that reaches a server without a socket.
func inProcess(s *servertest.Server) *rest.Config {
	return &rest.Config{Host: s.Host(), Transport: s.Transport(), QPS: -1}
}

// overTLS returns a configuration that reaches a server over TLS on the loopback, with HTTP/2.
func overTLS(t *testing.T, s *servertest.Server) *rest.Config {
	t.Helper()
	web := httptest.NewUnstartedServer(s)
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	return &rest.Config{Host: web.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
}

func inProtobuf(c *rest.Config) *rest.Config {
	c.ContentType, c.AcceptContentTypes = protobuf, protobuf
	return c
}

// everyWay runs a test with each transport and content type, each time with a fork of one server.
func everyWay(t *testing.T, test func(t *testing.T, ctx context.Context, s *servertest.Server, c *rest.Config)) {
	t.Helper()
	seeded := servertest.New(t)
	ways := map[string]func(*testing.T, *servertest.Server) *rest.Config{
		"in process":          func(_ *testing.T, s *servertest.Server) *rest.Config { return inProcess(s) },
		"TLS":                 overTLS,
		"in process protobuf": func(_ *testing.T, s *servertest.Server) *rest.Config { return inProtobuf(inProcess(s)) },
		"TLS protobuf":        func(t *testing.T, s *servertest.Server) *rest.Config { return inProtobuf(overTLS(t, s)) },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			s := seeded.Fork(t)
			test(t, patience(t), s, way(t, s))
		})
	}
}

// patience returns a context that limits a test that waits for events.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func typed(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	set, err := kubernetes.NewForConfig(c)
	require.NoError(t, err)
	return set
}
