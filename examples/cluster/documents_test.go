package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"orch.io/controlplane/examples/cluster/internal/testbed"
	"orch.io/controlplane/examples/internal/documents"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// TestConsolesOfDocuments runs every console block of every document with the example programs, kubectl
// and etcd. It is in this module because only this module has all three.
func TestConsolesOfDocuments(t *testing.T) {
	if _, err := exec.LookPath("kubectl"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("no kubectl in the PATH: .ci/kubectl builds one")
		}
		t.Skip("no kubectl in the PATH: .ci/kubectl builds one")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	all, err := documents.Read(root)
	require.NoError(t, err)
	programs := []string{"quickstart", "backup", "binary", "apiserver"}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", bin)
	for _, p := range programs {
		build.Args = append(build.Args, "./examples/"+p)
	}
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Symlink(testbed.Binary(), filepath.Join(bin, "cluster")))

	sessions := map[string]*documents.Session{}
	for _, b := range all {
		if b.Lang != "console" && b.Lang != "sh" || b.Skipped() != "" {
			continue
		}
		if sessions[b.File] == nil {
			sessions[b.File] = newSession(t, root, bin, programs)
		}
		if !assert.NoError(t, sessions[b.File].Run(b)) {
			break
		}
	}
	assert.NotEmpty(t, sessions, "no document has a console block that runs")
}

// newSession returns a session in a directory of its own, with the example programs and an etcd of its
// own.
func newSession(t *testing.T, root, bin string, programs []string) *documents.Session {
	dir, port := t.TempDir(), []string{"--secure-port", "0"}
	require.NoError(t, os.Symlink(filepath.Join(root, "examples"), filepath.Join(dir, "examples")))
	member := etcdtest.Start(t)
	s := &documents.Session{
		Dir: dir, Env: []string{"HOME=" + dir, "PATH=" + bin + string(filepath.ListSeparator) + os.Getenv("PATH")}, Programs: programs,
		Serve:   map[string][]string{"apiserver": port, "cluster": port, "binary": {"-listen", "127.0.0.1:0"}},
		Replace: strings.NewReplacer("127.0.0.1:23791", member.Endpoint),
		Do: map[string]func() error{"empty": func() error {
			etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{member.Endpoint}})
			if err != nil {
				return err
			}
			defer etcd.Close()
			_, err = etcd.Delete(t.Context(), "/", clientv3.WithPrefix())
			return err
		}},
	}
	t.Cleanup(func() { assert.NoError(t, s.End()) })
	return s
}
