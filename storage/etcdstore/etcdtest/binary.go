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

// binary returns the path of the server. It is kept in the user's cache under a name that says
// what it was built from, so that several tests can build it at once.
var binary = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	source, err := source()
	if err != nil {
		return "", err
	}
	of, err := digest(source)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "etcdtest", "etcd-"+of)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, build(source, path)
})

// source is the directory of the module that the server is built from.
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
