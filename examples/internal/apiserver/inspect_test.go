package apiserver

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestInspectAndSalvage: a server with a truncated manifest refuses to start and recommends salvage.
// The command inspect reports the damage and refuses a directory in use. The salvaged data is served to
// the same clients.
func TestInspectAndSalvage(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) (string, error) {
		out, err := command(args...).CombinedOutput()
		return string(out), err
	}
	large := strings.Repeat("x", 1<<20)
	for range 2 {
		p := startProcess(t, dir)
		out, err := run("inspect", "--data-dir", dir)
		require.Error(t, err)
		require.Contains(t, out, "in use")
		for _, name := range []string{"small", "large"} {
			body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"` + name + `-"},"data":{"x":"` + large[:map[string]int{"small": 1, "large": 1 << 20}[name]] + `"}}`
			res, err := p.client.Post(p.url+"/api/v1/namespaces/default/configmaps", "application/json", strings.NewReader(body))
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusCreated, res.StatusCode)
		}
		require.NoError(t, p.end(os.Interrupt))
	}
	out, err := run("inspect", "--data-dir", dir)
	require.NoError(t, err, out)
	require.Contains(t, out, "no damage found")

	list := filepath.Join(dir, "MANIFEST")
	data, err := os.ReadFile(list)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(list, data[:len(data)/2], 0o600))
	out, err = run("--secure-port", "0", "--data-dir", dir, "--names", "kubernetes")
	require.Error(t, err)
	assert.Contains(t, out, "MANIFEST")
	assert.Contains(t, out, "salvage")

	salvaged := filepath.Join(t.TempDir(), "salvaged")
	out, err = run("inspect", "--data-dir", dir, "--salvage", salvaged)
	require.Error(t, err, "inspect of a damaged directory")
	require.Contains(t, out, "damage: ")
	require.Contains(t, out, "salvaged ")
	p := startProcess(t, salvaged)
	p.client = adminClient(t, filepath.Join(dir, "admin.kubeconfig"))
	res, err := p.client.Get(p.url + "/api/v1/namespaces/default/configmaps")
	require.NoError(t, err)
	var body bytes.Buffer
	_, err = body.ReadFrom(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, 2, strings.Count(body.String(), large))
	require.NoError(t, p.end(os.Interrupt))

	for _, args := range [][]string{{"inspect", "more"}, {"inspect", "--data-dir", filepath.Join(dir, "none")}, {"inspect", "--data-dir", dir, "--salvage", salvaged}} {
		_, err = run(args...)
		require.Error(t, err)
	}
}
