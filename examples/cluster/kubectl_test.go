package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/cluster/internal/testbed"
)

// kubectl runs kubectl with a kubeconfig, and returns its output.
func kubectl(ctx context.Context, kubeconfig, input string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "kubectl", args...)
	c.Env = []string{"HOME=" + filepath.Dir(kubeconfig), "KUBECONFIG=" + kubeconfig, "PATH=" + os.Getenv("PATH")}
	c.Stdin = strings.NewReader(input)
	var out, errors bytes.Buffer
	c.Stdout, c.Stderr = &out, &errors
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%v: %w: %s", args, err, &errors)
	}
	return out.String(), nil
}

const mapOfKubectl = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kubectl","namespace":"default"},"data":{"n":"%d"}}`

// TestKubectlDuringRollingRestart: kubectl applies, waits and watches through the balancer while the
// servers are restarted in turn. Each command succeeds. A "get --watch" ends with its server, as with a
// single server, and the next watch shows the changes in between.
func TestKubectlDuringRollingRestart(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Skip("kubectl is not installed")
	}
	_, servers := testbed.StartCluster(t, "--shutdown-delay-duration", "3s")
	kubeconfig := testbed.NewBalancer(t, servers).Kubeconfig(filepath.Join(t.TempDir(), "kubeconfig"))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	applied := 0
	apply := func() {
		t.Helper()
		applied++
		_, err := kubectl(ctx, kubeconfig, fmt.Sprintf(mapOfKubectl, applied), "apply", "-f", "-")
		require.NoError(t, err)
		_, err = kubectl(ctx, kubeconfig, "", "wait", "--timeout=1m", "configmap/kubectl", fmt.Sprintf("--for=jsonpath={.data.n}=%d", applied))
		require.NoError(t, err)
	}
	apply()
	watching, end := context.WithCancel(ctx)
	var all sync.WaitGroup
	var shown []int
	begun := make(chan bool, 1)
	all.Go(func() {
		for watching.Err() == nil {
			begun <- true
			out, err := kubectl(watching, kubeconfig, "", "get", "configmap", "kubectl", "--watch", "-o", `jsonpath={.data.n}{"\n"}`)
			if watching.Err() == nil && err != nil {
				t.Error(err)
			}
			for line := range strings.Lines(out) {
				if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil {
					shown = append(shown, n)
				}
			}
			<-begun
		}
	})
	t.Cleanup(all.Wait)
	t.Cleanup(end)
	waited := make(chan error, 1)
	all.Go(func() {
		_, err := kubectl(ctx, kubeconfig, "", "wait", "--timeout=5m", "configmap/kubectl", "--for=jsonpath={.data.n}=-1")
		waited <- err
	})
	for _, p := range servers {
		p.Terminate()
		apply()
		p.Restart()
		apply()
	}
	applied = -2
	apply()
	require.NoError(t, <-waited)
	end()
	all.Wait()
	t.Logf("shown %v", shown)
	for i := 1; i < len(shown); i++ {
		require.True(t, shown[i] >= shown[i-1] || shown[i] == -1, "%v", shown)
	}
	require.Contains(t, shown, 2*len(servers)+1)
}
