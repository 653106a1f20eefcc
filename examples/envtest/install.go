package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// install copies the executable as kube-apiserver and as etcd into a directory below dir, unless it is
// there already, and returns the directory. The directory is named by the digest of the executable and
// appears complete or not at all, so any number of processes can call install at the same time.
func install(dir, executable string) (string, error) {
	sum, err := digest(executable)
	if err != nil {
		return "", err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	assets := filepath.Join(dir, sum[:16])
	if !complete(assets, executable) {
		if err := fill(dir, assets, executable); err != nil {
			return "", err
		}
	}
	if err := linkKubectl(assets); err != nil {
		fmt.Fprintln(os.Stderr, "envtest: tests will not find kubectl:", err)
	}
	return assets, nil
}

func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// binaries returns the names under which the executable is installed.
func binaries(executable string) []string {
	ext := filepath.Ext(executable)
	if ext != ".exe" {
		ext = ""
	}
	return []string{"kube-apiserver" + ext, "etcd" + ext}
}

// complete reports whether a directory has the binaries, each with its full size.
func complete(assets, executable string) bool {
	want, err := os.Stat(executable)
	if err != nil {
		return false
	}
	for _, name := range binaries(executable) {
		if has, err := os.Stat(filepath.Join(assets, name)); err != nil || has.Size() != want.Size() {
			return false
		}
	}
	return true
}

// fill creates a directory with the binaries next to assets and renames it. If another process was
// faster, its directory stays.
func fill(dir, assets, executable string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	next, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(next)
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	names := binaries(executable)
	first := filepath.Join(next, names[0])
	if err := copyFile(first, executable); err != nil {
		return err
	}
	for _, name := range names[1:] {
		path := filepath.Join(next, name)
		if os.Link(first, path) != nil { // not all file systems support links
			if err := copyFile(path, executable); err != nil {
				return err
			}
		}
	}
	err = os.Rename(next, assets)
	if err == nil || complete(assets, executable) {
		return nil
	}
	// The existing directory is incomplete: a file was removed from it.
	for _, name := range names {
		if err := os.Rename(filepath.Join(next, name), filepath.Join(assets, name)); err != nil {
			return fmt.Errorf("%s is damaged: %w", assets, err)
		}
	}
	return nil
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}

// linkKubectl links the kubectl of the PATH next to the binaries, where the few tests that need it look
// for it.
func linkKubectl(assets string) error {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		return nil
	}
	if kubectl, err = filepath.Abs(kubectl); err != nil {
		return err
	}
	link := filepath.Join(assets, filepath.Base(kubectl))
	if _, err := os.Stat(link); kubectl == link || err == nil {
		return nil
	}
	_ = os.Remove(link) // a dangling link
	if err := os.Symlink(kubectl, link); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
