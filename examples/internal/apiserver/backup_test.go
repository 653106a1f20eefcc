package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mustRun runs a command of the program, which must succeed, and returns its output.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := command(args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", args, out)
	return string(out)
}

// mustFail runs a command of the program, which must fail with an error that contains why.
func mustFail(t *testing.T, why string, args ...string) {
	t.Helper()
	out, err := command(args...).CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s: %s", args, out)
	require.Equal(t, 1, exit.ExitCode(), "%s", out)
	require.Contains(t, string(out), why)
	require.NotContains(t, string(out), "goroutine")
}

// create creates a ConfigMap and returns its resourceVersion.
func (p *process) create(name string) uint64 {
	p.Helper()
	code, body := p.call("POST", mapsPath, fmt.Sprintf(`{"metadata":{"name":%q},"data":{"text":%q}}`, name, strings.Repeat(name, 1000)))
	require.Equal(p, 201, code, body)
	var o object
	require.NoError(p, json.Unmarshal([]byte(body), &o))
	return o.version()
}

// noOwnConfigMaps is a flag with which the server creates no ConfigMaps itself.
const noOwnConfigMaps = "--controllers=*,-root-ca-cert-publisher"

// TestBackupAndRestore: a full and an incremental backup of a running server are restored together with
// its keys. Clients continue with their credentials and watches.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	dir, saved := t.TempDir(), t.TempDir()
	monday, tuesday, restored := filepath.Join(saved, "monday"), filepath.Join(saved, "tuesday"), filepath.Join(saved, "restored")
	p := startProcess(t, dir, noOwnConfigMaps)
	first := p.create("first")
	mustFail(t, "use --kubeconfig to save the store of a running server", "backup", "--data-dir", dir, monday)
	mustFail(t, "start the server with the --to- flags", "copy", "--data-dir", dir, "--to-data-dir", restored)
	require.Contains(t, mustRun(t, "backup", "--kubeconfig", p.kubeconfig, monday), "records at revision")
	mustFail(t, "--data-dir cannot be used with --kubeconfig", "backup", "--kubeconfig", p.kubeconfig, "--data-dir", dir, tuesday)
	mustFail(t, "expected one file name, got 2", "backup", "--kubeconfig", p.kubeconfig, tuesday, monday)
	mustFail(t, "monday already exists", "backup", "--kubeconfig", p.kubeconfig, monday)
	last := p.create("second")
	require.Contains(t, mustRun(t, "backup", "--kubeconfig", p.kubeconfig, "--since", monday, tuesday), "based on a backup of revision")
	require.NoError(t, p.end(syscall.SIGTERM))
	whole, err := os.Stat(monday)
	require.NoError(t, err)
	part, err := os.Stat(tuesday)
	require.NoError(t, err)
	require.Less(t, part.Size(), whole.Size()/2)
	require.Equal(t, os.FileMode(0o600), part.Mode())

	require.Contains(t, mustRun(t, "verify", monday, tuesday), "complete: ")
	require.Contains(t, mustRun(t, "verify", tuesday), "based on")
	mustFail(t, "file 2: the backup is not based on the previous backup", "verify", tuesday, monday)
	mustFail(t, "which is also needed", "restore", "--data-dir", restored, tuesday)
	mustFail(t, "--data-dir is empty", "restore", monday)
	require.NoDirExists(t, restored)

	require.NoError(t, os.Mkdir(restored, 0o700))
	require.NoError(t, copyKeys(restored, dir))
	require.Contains(t, mustRun(t, "restore", "--data-dir", restored, monday, tuesday), "watches continue")
	mustFail(t, "storage is not empty", "restore", "--data-dir", restored, monday, tuesday)
	again := startProcess(t, restored, noOwnConfigMaps)
	again.client = p.client
	seen := make(chan []event)
	go func() { seen <- again.follow(first, "third") }()
	require.Greater(t, again.create("third"), last)
	names := []string{}
	for _, e := range <-seen {
		names = append(names, e.Object.Metadata.Name)
	}
	require.Equal(t, []string{"second"}, names)
	require.NoError(t, again.end(syscall.SIGTERM))
}

// TestRestoreStartsOver: after a restore with --bump-revision, no client continues at a revision that
// it saw.
func TestRestoreStartsOver(t *testing.T) {
	t.Parallel()
	dir, saved := t.TempDir(), filepath.Join(t.TempDir(), "saved")
	p := startProcess(t, dir)
	seen := p.create("first")
	require.NoError(t, p.end(syscall.SIGTERM))
	mustRun(t, "backup", "--data-dir", dir, saved)
	restored := filepath.Join(t.TempDir(), "restored")
	require.Contains(t, mustRun(t, "restore", "--data-dir", restored, "--bump-revision", "1000000", saved), "clients list again")
	p = startProcess(t, restored)
	require.Greater(t, p.create("second"), seen+1_000_000)
	code, body := p.call("GET", fmt.Sprintf("%s?watch=true&resourceVersion=%d", mapsPath, seen), "")
	require.Contains(t, fmt.Sprint(code, body), "410", "%d %s", code, body)
	require.NoError(t, p.end(syscall.SIGTERM))
}

// TestDamagedBackups: a truncated or changed backup is rejected, wherever the damage is, and nothing is
// left behind.
func TestDamagedBackups(t *testing.T) {
	t.Parallel()
	dir, saved := t.TempDir(), t.TempDir()
	p := startProcess(t, dir)
	p.create("first")
	require.NoError(t, p.end(syscall.SIGTERM))
	file, to := filepath.Join(saved, "file"), filepath.Join(saved, "restored")
	mustRun(t, "backup", "--data-dir", dir, file)
	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	damaged := filepath.Join(saved, "damaged")
	for _, text := range [][]byte{nil, whole[:len(whole)/2], whole[:len(whole)-1], []byte("something else"), append(append(append([]byte(nil), whole[:5000]...), 'x'), whole[5001:]...)} {
		require.NoError(t, os.WriteFile(damaged, text, 0o600))
		mustFail(t, "damaged backup", "restore", "--data-dir", to, damaged)
		mustFail(t, "damaged backup", "verify", damaged)
		require.NoDirExists(t, to)
	}
	mustFail(t, "no such file", "restore", "--data-dir", to, filepath.Join(saved, "none"))
	mustFail(t, "--data-dir is empty", "restore", filepath.Join(saved, "none"))
	mustFail(t, "--bump-revision must be between 0 and", "restore", "--data-dir", to, "--bump-revision", fmt.Sprint(int64(1)<<40+1), file)
	mustFail(t, "no files", "restore", "--data-dir", to)
	mustFail(t, "no store in directory", "backup", "--data-dir", filepath.Join(saved, "none"), filepath.Join(saved, "x"))
	mustFail(t, "no store in directory", "copy", "--data-dir", saved, "--to-data-dir", to)
	require.NoDirExists(t, to)
	left, err := filepath.Glob(filepath.Join(saved, "*"))
	require.NoError(t, err)
	require.Equal(t, []string{damaged, file}, left)
}

// TestNoKeyIsReplaced: copyKeys does not replace a key of another server, and copied keys are readable
// by the owner only.
func TestNoKeyIsReplaced(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"a.pem": "a", "b.pem": "b"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte(text), 0o600))
	}
	require.NoError(t, copyKeys(to, from))
	require.NoError(t, copyKeys(to, from), "a repeated copy")
	info, err := os.Stat(filepath.Join(to, "b.pem"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.NoError(t, os.WriteFile(filepath.Join(to, "b.pem"), []byte("other"), 0o600))
	require.ErrorContains(t, copyKeys(to, from), "with other content")
	text, err := os.ReadFile(filepath.Join(to, "b.pem"))
	require.NoError(t, err)
	require.Equal(t, "other", string(text))
}

// TestSaveReplacesNothing: save does not replace a file, even if another process creates the file
// meanwhile.
func TestSaveReplacesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	err := save(path, func(w io.Writer) error { return os.WriteFile(path, []byte("other"), 0o600) })
	require.ErrorContains(t, err, "already exists")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "other", string(text))
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// TestBackupsAreForAdministrators: only administrators get backups, whatever access control allows
// others.
func TestBackupsAreForAdministrators(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"AlwaysAllow", "RBAC"} {
		address, kubeconfig := startServerWithConfig(t, "--token-auth-file", users(t), "--authorization-mode", mode, "--anonymous-auth=true")
		for token, want := range map[string]int{"": 403, "alice-token": 403, "carol-token": 403, "admin-token": 200} {
			r, err := http.NewRequest("GET", address+backupPath, nil)
			require.NoError(t, err)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			client := adminClient(t, kubeconfig)
			client.Transport.(*http.Transport).TLSClientConfig.Certificates = nil
			res, err := client.Do(r)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			assert.Equal(t, want, res.StatusCode, "%s %q", mode, token)
		}
	}
}

// TestInterruptedBackupLeavesNoFile: if the server dies during a backup, no file is left.
func TestInterruptedBackupLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir, saved := t.TempDir(), t.TempDir()
	p := startProcess(t, dir)
	for i := range 40 {
		code, body := p.call("POST", mapsPath, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"text":%q}}`, i, strings.Repeat("x", 1<<20)))
		require.Equal(t, 201, code, body)
	}
	for round := 0; ; round++ {
		file := filepath.Join(saved, fmt.Sprint("file", round))
		cmd := command("backup", "--kubeconfig", p.kubeconfig, file)
		progress, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = progress.Read(make([]byte, 100))
		require.NoError(t, err)
		require.NoError(t, p.cmd.Process.Kill())
		_ = p.cmd.Wait() // killed
		if cmd.Wait() != nil {
			require.NoFileExists(t, file)
			left, err := os.ReadDir(saved)
			require.NoError(t, err)
			require.Len(t, left, round)
			return
		}
		require.Less(t, round, 10, "the backup always finished before the kill")
		p = startProcess(t, dir)
	}
}
