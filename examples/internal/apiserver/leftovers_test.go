package apiserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFileInsteadOfDirectory: commands report a file given instead of a directory.
func TestFileInsteadOfDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	p := startProcess(t, filepath.Join(dir, "data"))
	saved := filepath.Join(dir, "saved")
	mustRun(t, "backup", "--kubeconfig", p.kubeconfig, saved)
	require.NoError(t, p.end(syscall.SIGTERM))
	for _, args := range [][]string{
		{"restore", "--data-dir", file, saved}, {"copy", "--data-dir", p.dir(), "--to-data-dir", file},
		{"copy", "--data-dir", file, "--to-data-dir", filepath.Join(dir, "new")},
		{"backup", "--data-dir", file, filepath.Join(dir, "more")}, {"--data-dir", file, "--secure-port", "0"},
	} {
		mustFail(t, file+" is a file, not a directory", args...)
	}
}

// dir returns the data directory of the process.
func (p *process) dir() string { return filepath.Dir(p.kubeconfig) }

// TestBackupRemovesLeftovers: a backup removes the incomplete files of killed backups, but no file that
// a process still writes and no other file.
func TestBackupRemovesLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, filepath.Join(dir, "data"))
	part := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	left, short := part("monday.part-123", backupBegin+" and more"), part("sunday.part-77", "")
	require.NoError(t, os.Chtimes(short, time.Time{}, time.Now().Add(-time.Hour)))
	kept := []string{part("other.part-9", "a film"), part("monday.part-x", backupBegin), part("new.part-8", ""), part("held.part-5", backupBegin)}
	f, err := os.Open(kept[3])
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, lockFile(f))
	saved := filepath.Join(dir, "tuesday")
	mustRun(t, "backup", "--kubeconfig", p.kubeconfig, saved)
	for _, path := range kept {
		require.FileExists(t, path)
	}
	require.NoFileExists(t, left)
	require.NoFileExists(t, short)
	begin, err := os.ReadFile(saved)
	require.NoError(t, err)
	require.Equal(t, backupBegin, string(begin[:len(backupBegin)]))
	require.NoError(t, p.end(syscall.SIGTERM))
}

// TestShutdownWithHangingAuditWebhook: a server whose audit webhook does not answer shuts down normally
// and logs that records are lost.
func TestShutdownWithHangingAuditWebhook(t *testing.T) {
	t.Parallel()
	called, release := make(chan struct{}, 100), make(chan struct{})
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-release
	}))
	defer hook.Close()
	defer close(release)
	dir := t.TempDir()
	policy, config := filepath.Join(dir, "policy"), filepath.Join(dir, "config")
	require.NoError(t, os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"), 0o600))
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: hook, cluster: {server: %q}}]
contexts: [{name: hook, context: {cluster: hook, user: ""}}]
current-context: hook
`, hook.URL), 0o600))
	p := startProcess(t, filepath.Join(dir, "data"), "--audit-policy-file", policy, "--audit-webhook-config-file", config)
	p.create("audited")
	<-called
	require.NoError(t, p.end(syscall.SIGTERM), "%s", p.stderr.String())
	require.Contains(t, p.stderr.String(), "audit records are lost")
}

// TestPrivateDirectory: the server closes an existing directory to other users before it writes to it.
// A directory that is opened to others later fails the health check.
func TestPrivateDirectory(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(dir, 0o755))
	p := startProcess(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	code, _ := p.call("GET", "/readyz", "")
	require.Equal(t, 200, code)
	require.NoError(t, os.Chmod(dir, 0o755))
	code, body := p.call("GET", "/readyz", "")
	require.Equal(t, 500, code)
	require.Contains(t, body, "[-]storage-integrity failed")
	require.NoError(t, p.end(syscall.SIGTERM))
	require.Contains(t, p.stderr.String(), "chmod 700 "+dir)
}
