package operator

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

// assets builds the replacement of envtest's binaries and returns their directory, as
// KUBEBUILDER_ASSETS=$(go run ./examples/envtest) does.
func assets(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "run", "./examples/envtest", "--dir", t.TempDir())
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func captained(name, captain string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sea.example.com/v1", "kind": "Ship",
		"metadata": map[string]any{"name": name, "namespace": "default"}, "spec": map[string]any{"captain": captain},
	}}
}

// TestEnvtest is a typical suite of an operator with envtest's own Environment: it installs definitions
// and webhooks, adds users, and is started twice.
func TestEnvtest(t *testing.T) {
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets(t), CRDDirectoryPaths: []string{"crds"}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join("config", "webhook")}},
	}
	data := t.TempDir()
	env.ControlPlane.GetAPIServer().Configure().Set("data-dir", data)
	for range 2 { // the second start finds the data of the first
		startEnvtest(t, env)
	}
}

func startEnvtest(t *testing.T, env *envtest.Environment) {
	config, err := env.Start()
	require.NoError(t, err)
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			assert.NoError(t, env.Stop())
		}
	}
	defer stop()
	admin, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	hooks := &env.WebhookInstallOptions
	again := true // otherwise the name of a controller must be unique in the process
	m, err := ctrl.NewManager(config, ctrl.Options{
		Controller: ctrlconfig.Controller{SkipNameValidation: &again},
		Scheme:     clientgoscheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir}),
	})
	require.NoError(t, err)
	m.GetWebhookServer().Register("/", Webhooks(clientgoscheme.Scheme))
	sailed := make(chan string, 100)
	require.NoError(t, ctrl.NewControllerManagedBy(m).For(captained("", "")).Complete(reconcile.Func(
		func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			sailed <- r.Name
			return reconcile.Result{}, nil
		})))
	running, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Start(running) }()
	defer func() {
		end()
		assert.NoError(t, <-ended)
		stop()
	}()
	require.Eventually(t, func() bool { return m.GetWebhookServer().StartedChecker()(nil) == nil }, time.Minute, 10*time.Millisecond)

	err = admin.Create(ctx, captained("queen-annes-revenge", "Blackbeard"))
	require.ErrorContains(t, err, "no pirates")
	err = admin.Create(ctx, captained("pequod", "Ahab"))
	first := err == nil
	if !first {
		require.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	}
	select {
	case name := <-sailed:
		assert.Equal(t, "pequod", name)
	case <-ctx.Done():
		require.FailNow(t, "no reconciliation within two minutes")
	}

	user, err := env.AddUser(envtest.User{Name: "jane", Groups: []string{"devs"}}, nil)
	require.NoError(t, err)
	jane, err := client.New(user.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	require.NoError(t, err)
	if first {
		require.True(t, apierrors.IsForbidden(jane.List(ctx, &corev1.ConfigMapList{})))
		require.NoError(t, admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "devs"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "devs"}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}))
	}
	require.Eventually(t, func() bool { return jane.List(ctx, &corev1.ConfigMapList{}) == nil }, time.Minute, 10*time.Millisecond)
}
