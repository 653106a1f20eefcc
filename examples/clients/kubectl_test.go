package clients

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/server/servertest"
)

// kubectl returns a command that runs kubectl with a server.
func kubectl(t *testing.T, s *servertest.Server, args ...string) *exec.Cmd {
	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, path, append([]string{"--server=" + s.URL()}, args...)...)
	c.Env = []string{"HOME=" + dir, "KUBECONFIG=" + filepath.Join(dir, "none"), "PATH=" + os.Getenv("PATH")}
	return c
}

// requireOutput runs a command that must succeed with the given output.
func requireOutput(t *testing.T, want string, c *exec.Cmd) {
	t.Helper()
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s: %s", c.Args, out)
	require.Contains(t, string(out), want, "%s", c.Args)
}

// background starts a command that keeps running, and returns the match of the expression in its first
// output.
func background(t *testing.T, expression string, c *exec.Cmd) string {
	t.Helper()
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.Stderr = t.Output()
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	buffer := make([]byte, 4096)
	n, err := out.Read(buffer)
	require.NoError(t, err)
	found := regexp.MustCompile(expression).FindSubmatch(buffer[:n])
	require.Len(t, found, 2, "%s", buffer[:n])
	return string(found[1])
}

// TestKubectlConnects: kubectl tries WebSocket first, then SPDY.
func TestKubectlConnects(t *testing.T) {
	for name, a := range map[string]nodeAgent{"SPDY only": {}, "WebSocket": {sockets: true}} {
		t.Run(name, func(t *testing.T) {
			s, _ := withAgent(t, a)
			requireOutput(t, "log of /containerLogs/default/web/main", kubectl(t, s, "logs", "-f", "web"))
			run := kubectl(t, s, "exec", "-i", "web", "--", "tr", "a-z", "A-Z")
			input, err := run.StdinPipe()
			require.NoError(t, err)
			_, err = io.WriteString(input, "hello")
			require.NoError(t, err)
			require.NoError(t, input.Close())
			requireOutput(t, "HELLO", run)
			requireOutput(t, `"status":"Success"`, kubectl(t, s, "get", "--raw", "/api/v1/nodes/n/proxy/healthz"))
		})
	}
	s, _ := withAgent(t, nodeAgent{})
	requireOutput(t, "ATTACHED", kubectl(t, s, "attach", "web"))

	port := background(t, `127\.0\.0\.1:(\d+)`, kubectl(t, s, "port-forward", "pod/web", ":80"))
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	require.NoError(t, err)
	_, err = io.WriteString(conn, "hello")
	require.NoError(t, err)
	require.NoError(t, conn.(*net.TCPConn).CloseWrite())
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
	conn.Close()

	at := background(t, `(127\.0\.0\.1:\d+)`, kubectl(t, s, "proxy", "--port=0"))
	res, err := http.Get("http://" + at + "/api/v1/nodes/n/proxy/healthz")
	require.NoError(t, err)
	defer res.Body.Close()
	text, err = io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(text), "Success")
}
