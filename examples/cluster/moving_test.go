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

	"orch.io/controlplane/storage/etcdstore/etcdtest"
)

// does runs a command of the program, which must not fail, and returns what it printed.
func does(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary, args...).CombinedOutput()
	require.NoError(t, err, "%s: %s", args, out)
	return string(out)
}

// versions are those of the objects that there are.
func (p *process) versions() map[string]uint64 {
	p.t.Helper()
	code, list, err := p.patientCall(p.t.Context(), "GET", mapsPath, "")
	require.NoError(p.t, err)
	require.Equal(p.t, 200, code)
	found := map[string]uint64{}
	for _, o := range list.objects() {
		found[o.Name] = o.Version
	}
	return found
}

// create creates an object, and again until the server has an answer.
func (p *process) create(name string) (version uint64, err error) {
	code, made, err := p.patientCall(p.t.Context(), "POST", mapsPath, object{Name: name, Epoch: "e"}.body())
	if err == nil && code != 201 {
		err = fmt.Errorf("create %s: %d %s", name, code, made.Text)
	}
	return made.version(), err
}

// createUntilMoved creates objects until the server says that its store has moved, and notes those
// that it took.
func (p *process) createUntilMoved(writer int, note func(name string, version uint64)) {
	for i := 0; ; i++ {
		name := fmt.Sprintf("w%d-%d", writer, i)
		if said := p.log.String(); !assert.NotContains(p.t, said, "failed to move the store") || !assert.NotContains(p.t, said, "failed to move the store, but") {
			return
		}
		version, err := p.create(name)
		switch {
		case err == nil:
			note(name, version)
		case strings.Contains(err.Error(), "has moved, please try again on another server"):
			return
		case strings.Contains(err.Error(), "is being moved, please try again"):
			time.Sleep(10 * time.Millisecond)
		default:
			assert.NoError(p.t, err)
			return
		}
	}
}

// createSeen creates an object and returns its version, which a watch from an earlier version must
// tell next.
func (p *process) createSeen(name string, after uint64) uint64 {
	p.t.Helper()
	version, err := p.create(name)
	require.NoError(p.t, err)
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	var seen event
	err = p.watch(ctx, after, func(e event) bool {
		seen = e
		return e.Type == "BOOKMARK"
	})
	require.NoError(p.t, err)
	require.Equal(p.t, []any{"ADDED", name, version}, []any{seen.Type, seen.Object.Metadata.Name, seen.Object.version()})
	return version
}

// outdated waits for the answer 410 to a watch.
func (p *process) outdated(after uint64) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	told := ""
	err := p.watch(ctx, after, func(e event) bool {
		told = fmt.Sprint(e.Type, " ", e.Object.Code)
		return false
	})
	require.Contains(p.t, fmt.Sprint(told, " ", err), "410")
}

// TestMoveIntoEtcd: a server moves its directory into etcd while 4 clients write. Nothing that they
// were told is lost, old versions are told to be too old, and who lists anew goes on. A
// backup of that goes back into a directory, where watches go on.
func TestMoveIntoEtcd(t *testing.T) {
	etcd, dir := etcdtest.Start(t), t.TempDir()
	p := newProcess(t, 0, dir)
	flags := p.args
	p.start()
	p.ready()
	old, err := p.create("first")
	require.NoError(t, err)
	for i := range 200 {
		_, err := p.create(fmt.Sprint("early-", i))
		require.NoError(t, err)
	}
	p.terminate()

	p.args = append(flags[:len(flags):len(flags)], "--to-storage", "etcd", "--to-etcd-servers", "http://"+etcd.Endpoint)
	p.restart()
	taken, mu := p.versions(), sync.Mutex{}
	require.Len(t, taken, 201)
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			p.createUntilMoved(i, func(name string, version uint64) {
				mu.Lock()
				defer mu.Unlock()
				taken[name] = version
			})
		})
	}
	writers.Wait()
	require.Greater(t, len(taken), 201, "no write was accepted while the store moved")
	require.Equal(t, taken, p.versions(), "reads go on")
	p.terminate()

	p.args = append(flags[:len(flags):len(flags)], "--storage", "etcd", "--etcd-servers", "http://"+etcd.Endpoint, "--etcd-compaction-interval", "0")
	p.restart()
	p.outdated(old)
	moved := p.versions()
	require.ElementsMatch(t, slices.Collect(maps.Keys(taken)), slices.Collect(maps.Keys(moved)))
	for name, version := range moved {
		require.Greater(t, version, taken[name])
	}
	newest := slices.Max(slices.Collect(maps.Values(moved)))
	last := p.createSeen("last", newest)
	moved["last"] = last

	file, back := filepath.Join(t.TempDir(), "file"), t.TempDir()
	does(t, "backup", "--kubeconfig", p.kubeconfig(), file)
	does(t, "restore", "--data-dir", back, file)
	for _, name := range []string{"authority.pem", "service-account.pem"} {
		key, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(back, name), key, 0o600))
	}
	p.terminate()
	said := does(t, "copy", "--storage", "etcd", "--etcd-servers", "http://"+etcd.Endpoint, "--to-data-dir", filepath.Join(back, "copied"))
	require.Contains(t, said, "watches continue")
	p.args = append([]string{"--data-dir", back}, flags[2:]...)
	p.restart()
	require.Equal(t, moved, p.versions())
	p.createSeen("after", last)
}

// TestKilledCopy: a copy into etcd that is killed at any moment is taken for the whole by no command
// and no server, and can be begun again.
func TestKilledCopy(t *testing.T) {
	etcd, dir, spare := etcdtest.Start(t), t.TempDir(), t.TempDir()
	p := newProcess(t, 0, dir)
	p.start()
	p.ready()
	for i := range 200 {
		_, err := p.create(fmt.Sprint("n", i))
		require.NoError(t, err)
	}
	p.terminate()
	whole := filepath.Join(spare, "whole")
	does(t, "backup", "--data-dir", dir, whole)
	_, want, _ := strings.Cut(does(t, "verify", whole), "complete: ")
	want, _, _ = strings.Cut(want, " of revision")
	usual, seed := time.Second, uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range *rounds {
		prefix, file := fmt.Sprint("/round", round), filepath.Join(spare, fmt.Sprint("file", round))
		args := []string{"copy", "--data-dir", dir, "--to-storage", "etcd", "--to-etcd-servers", "http://" + etcd.Endpoint, "--to-etcd-prefix", prefix}
		over := []string{"--storage", "etcd", "--etcd-servers", "http://" + etcd.Endpoint, "--etcd-prefix", prefix}
		backup := append([]string{"backup"}, append(over, file)...)
		begun, cmd := time.Now(), exec.Command(binary, args...)
		require.NoError(t, cmd.Start())
		killer := time.AfterFunc(time.Duration(r.Int64N(int64(usual))), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() == nil {
			usual = time.Since(begun)
		}
		killer.Stop()
		out, err := exec.Command(binary, backup...).CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
			t.Logf("round %d: whole", round)
		case strings.Contains(string(out), "is empty"):
			does(t, args...)
			does(t, backup...)
		default:
			require.ErrorAs(t, err, &exit)
			require.Contains(t, string(out), "the source is incomplete")
			out, err := exec.Command(binary, append([]string{"--data-dir", spare, "--secure-port", "0"}, over...)...).CombinedOutput()
			require.ErrorAs(t, err, &exit, "%s", out)
			require.Contains(t, string(out), "it has a part of its data", "no server serves it")
			does(t, args...)
			does(t, backup...)
		}
		require.Contains(t, does(t, "verify", file), want)
	}
}

// TestCommandsForgetNothing: how much of the history in etcd stays is for servers to say.
func TestCommandsForgetNothing(t *testing.T) {
	f := &etcdFlags{}
	f.define(flag.NewFlagSet("", flag.ContinueOnError))
	require.Equal(t, 5*time.Minute, f.retain(true))
	require.EqualValues(t, -1, f.retain(false))
	f.compaction = 0
	require.EqualValues(t, -1, f.retain(true))
}
