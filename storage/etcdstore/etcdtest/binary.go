package etcdtest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// binary returns the path of the server, which it builds if necessary. The server is kept in the user's
// cache directory under a name that includes a digest of its sources, so that several test processes
// can build it at the same time.
var binary = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	source, err := source()
	if err != nil {
		return "", err
	}
	sum, err := digest(source)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "etcdtest", "etcd-"+sum)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(source, path)
})

// source returns the directory of the module of the server.
func source() (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "orch.io/controlplane/storage/etcdstore/etcdtest").Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of etcd: %w", err)
	}
	return filepath.Join(string(bytes.TrimSpace(out)), "..", "internal", "etcd"), nil
}

func digest(source string) (string, error) {
	h := sha256.New()
	for _, name := range []string{"main.go", "go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", fmt.Errorf("read the sources of etcd: %w", err)
		}
		h.Write(b)
	}
	fmt.Fprint(h, runtime.Version(), clockRead, clockSet)
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

func build(source, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), "build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := clockOverlay(dir, source)
	if err != nil {
		return err
	}
	built := filepath.Join(dir, "etcd")
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", overlay, "-o", built, ".")
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build etcd: %w\n%s", err, out)
	}
	return os.Rename(built, path)
}
