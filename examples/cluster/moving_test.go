package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/examples/cluster/internal/testbed"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// mustRun runs a command of the program, which must succeed, and returns its output.
func mustRun(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(testbed.Binary(), args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", args, out)
	return string(out)
}

// versions returns the versions of the existing objects.
func versions(p *testbed.Server) map[string]uint64 {
	found := map[string]uint64{}
	for _, o := range p.Must(200, "GET", testbed.ConfigMaps, "").ConfigMaps() {
		found[o.Name] = o.Version
	}
	return found
}

// createObject creates an object and returns its version.
func createObject(ctx context.Context, p *testbed.Server, name string) (version uint64, err error) {
	code, made, err := p.Call(ctx, "POST", testbed.ConfigMaps, testbed.ConfigMap{Name: name, Epoch: "e"}.JSON())
	if err == nil && code != 201 {
		err = fmt.Errorf("create %s: %d %s", name, code, made.Message)
	}
	return made.Version(), err
}

// createUntilMoved creates objects until the server reports that its store has moved, and records the
// created objects.
func createUntilMoved(t *testing.T, p *testbed.Server, writer int, note func(name string, version uint64)) {
	for i := 0; ; i++ {
		name := fmt.Sprintf("w%d-%d", writer, i)
		if !assert.NotContains(t, p.Log(), "failed to move the store") {
			return
		}
		version, err := createObject(t.Context(), p, name)
		switch {
		case err == nil:
			note(name, version)
		case strings.Contains(err.Error(), "has moved, please try again on another server"):
			return
		case strings.Contains(err.Error(), "is being moved, please try again"):
			time.Sleep(10 * time.Millisecond)
		default:
			assert.NoError(t, err)
			return
		}
	}
}

// createSeen creates an object and returns its version, which must be the next event of a watch from an
// earlier version.
func createSeen(t *testing.T, p *testbed.Server, name string, after uint64) uint64 {
	t.Helper()
	version, err := createObject(t.Context(), p, name)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var seen testbed.Event
	err = p.Watch(ctx, testbed.ConfigMaps, fmt.Sprint("resourceVersion=", after), func(e testbed.Event) bool {
		seen = e
		return e.Type == "BOOKMARK"
	})
	require.NoError(t, err)
	require.Equal(t, []any{"ADDED", name, version}, []any{seen.Type, seen.Object.Metadata.Name, seen.Object.Version()})
	return version
}

// outdated requires that a watch is answered with 410.
func outdated(t *testing.T, p *testbed.Server, after uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := ""
	err := p.Watch(ctx, testbed.ConfigMaps, fmt.Sprint("resourceVersion=", after), func(e testbed.Event) bool {
		told = fmt.Sprint(e.Type, " ", e.Object.Code)
		return false
	})
	require.Contains(t, fmt.Sprint(told, " ", err), "410")
}

// TestMoveIntoEtcd: a server moves its directory into etcd while 4 clients write. No acknowledged write
// is lost, old versions are answered with 410, and clients continue after they list again. A backup of
// the new store is restored into a directory, where watches continue.
func TestMoveIntoEtcd(t *testing.T) {
	etcd, dir := etcdtest.Start(t), t.TempDir()
	p := testbed.NewServer(t, 0, dir)
	flags := p.Args
	p.Start()
	p.Ready()
	old, err := createObject(t.Context(), p, "first")
	require.NoError(t, err)
	for i := range 200 {
		_, err := createObject(t.Context(), p, fmt.Sprint("early-", i))
		require.NoError(t, err)
	}
	p.Terminate()

	p.Args = append(flags[:len(flags):len(flags)], "--to-storage", "etcd", "--to-etcd-servers", "http://"+etcd.Endpoint)
	p.Restart()
	taken, mu := versions(p), sync.Mutex{}
	require.Len(t, taken, 201)
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			createUntilMoved(t, p, i, func(name string, version uint64) {
				mu.Lock()
				defer mu.Unlock()
				taken[name] = version
			})
		})
	}
	writers.Wait()
	require.Greater(t, len(taken), 201, "writes are accepted during the move")
	require.Equal(t, taken, versions(p), "reads continue")
	p.Terminate()

	p.Args = append(flags[:len(flags):len(flags)], "--storage", "etcd", "--etcd-servers", "http://"+etcd.Endpoint, "--etcd-compaction-interval", "0")
	p.Restart()
	outdated(t, p, old)
	moved := versions(p)
	require.ElementsMatch(t, slices.Collect(maps.Keys(taken)), slices.Collect(maps.Keys(moved)))
	for name, version := range moved {
		require.Greater(t, version, taken[name])
	}
	newest := slices.Max(slices.Collect(maps.Values(moved)))
	last := createSeen(t, p, "last", newest)
	moved["last"] = last

	file, back := filepath.Join(t.TempDir(), "file"), t.TempDir()
	mustRun(t, "backup", "--kubeconfig", p.Kubeconfig(), file)
	mustRun(t, "restore", "--data-dir", back, file)
	for _, name := range []string{"authority.pem", "service-account.pem"} {
		key, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(back, name), key, 0o600))
	}
	p.Terminate()
	said := mustRun(t, "copy", "--storage", "etcd", "--etcd-servers", "http://"+etcd.Endpoint, "--to-data-dir", filepath.Join(back, "copied"))
	require.Contains(t, said, "watches continue")
	p.Args = append([]string{"--data-dir", back}, flags[2:]...)
	p.Restart()
	require.Equal(t, moved, versions(p))
	createSeen(t, p, "after", last)
}

// TestKilledCopy: after a copy into etcd was killed at any moment, no command and no server uses the
// incomplete store, and the copy can be repeated.
func TestKilledCopy(t *testing.T) {
	etcd, dir, spare := etcdtest.Start(t), t.TempDir(), t.TempDir()
	p := testbed.NewServer(t, 0, dir)
	p.Start()
	p.Ready()
	for i := range 200 {
		_, err := createObject(t.Context(), p, fmt.Sprint("n", i))
		require.NoError(t, err)
	}
	p.Terminate()
	whole := filepath.Join(spare, "whole")
	mustRun(t, "backup", "--data-dir", dir, whole)
	_, want, _ := strings.Cut(mustRun(t, "verify", whole), "complete: ")
	want, _, _ = strings.Cut(want, " at revision")
	usual, seed := time.Second, uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range *rounds {
		prefix, file := fmt.Sprint("/round", round), filepath.Join(spare, fmt.Sprint("file", round))
		args := []string{"copy", "--data-dir", dir, "--to-storage", "etcd", "--to-etcd-servers", "http://" + etcd.Endpoint, "--to-etcd-prefix", prefix}
		over := []string{"--storage", "etcd", "--etcd-servers", "http://" + etcd.Endpoint, "--etcd-prefix", prefix}
		backup := append([]string{"backup"}, append(over, file)...)
		begun, cmd := time.Now(), exec.Command(testbed.Binary(), args...)
		require.NoError(t, cmd.Start())
		killer := time.AfterFunc(time.Duration(r.Int64N(int64(usual))), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() == nil {
			usual = time.Since(begun)
		}
		killer.Stop()
		out, err := exec.Command(testbed.Binary(), backup...).CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			t.Logf("round %d: complete", round)
		case strings.Contains(string(out), "is empty"):
			mustRun(t, args...)
			mustRun(t, backup...)
		default:
			require.ErrorAs(t, err, &exit)
			require.Contains(t, string(out), "the source is incomplete")
			out, err := exec.Command(testbed.Binary(), append([]string{"--data-dir", spare, "--secure-port", "0"}, over...)...).CombinedOutput()
			require.ErrorAs(t, err, &exit, "%s", out)
			require.Contains(t, string(out), "a copy into it was interrupted", "a server must not start with it")
			mustRun(t, args...)
			mustRun(t, backup...)
		}
		require.Contains(t, mustRun(t, "verify", file), want)
	}
}

// TestCommandsDoNotCompact: commands do not compact the history in etcd; only servers do.
func TestCommandsDoNotCompact(t *testing.T) {
	f := &etcdFlags{}
	f.define(flag.NewFlagSet("", flag.ContinueOnError))
	require.Equal(t, 5*time.Minute, f.retain(true))
	require.EqualValues(t, -1, f.retain(false))
	f.compaction = 0
	require.EqualValues(t, -1, f.retain(true))
}
