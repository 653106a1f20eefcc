package fromfake

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"orch.io/controlplane/examples/operator"
	"orch.io/controlplane/server/servertest"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	operator.AddToScheme(scheme)
	return scheme
}

// newServer starts a server with the definitions of the operator's kinds.
func newServer(t *testing.T) *servertest.Server {
	t.Helper()
	s := servertest.New(t)
	s.InstallCRDs(os.DirFS("../config/crd"))
	return s
}

// connect returns a client of the server, in place of the client of NewClientBuilder.
func connect(t *testing.T, s *servertest.Server) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(&rest.Config{Host: s.Host(), Transport: s.Transport(), QPS: -1}, client.Options{Scheme: newScheme(t)})
	require.NoError(t, err)
	return c
}

func newFleet(ships int32, name ...string) *operator.Fleet {
	return &operator.Fleet{ObjectMeta: metav1.ObjectMeta{Name: append(name, "armada")[0], Namespace: "default"}, Spec: operator.FleetSpec{Ships: ships}}
}

func newShip(name string) *unstructured.Unstructured {
	ship := &unstructured.Unstructured{}
	ship.SetGroupVersionKind(operator.GroupVersion.WithKind("Ship"))
	ship.SetName(name)
	ship.SetNamespace("default")
	return ship
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
}
