package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/memstore"
)

// writeUntilRefused creates ConfigMaps until the server says that it accepts no more writes, and
// returns the versions of the created ones.
func (p *process) writeUntilRefused(writer int) (taken map[string]uint64, err error) {
	taken = map[string]uint64{}
	for i := 0; ; i++ {
		name := fmt.Sprintf("w%d-%d", writer, i)
		res, err := p.client.Post(p.url+mapsPath, "application/json", strings.NewReader(fmt.Sprintf(`{"metadata":{"name":%q}}`, name)))
		if err != nil {
			return taken, err
		}
		text, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return taken, err
		}
		var o object
		switch res.StatusCode {
		case 201:
			if err := json.Unmarshal(text, &o); err != nil {
				return taken, err
			}
			taken[name] = o.version()
		case 503:
			if after := res.Header.Get("Retry-After"); after != "1" || !strings.Contains(string(text), "store of this server") {
				return taken, fmt.Errorf("Retry-After %q: %s", after, text)
			}
			return taken, nil
		default:
			return taken, fmt.Errorf("%d %s", res.StatusCode, text)
		}
	}
}

// versions returns the versions of all ConfigMaps in the default namespace whose names have the prefix.
func (p *process) versions(prefix string) map[string]uint64 {
	p.Helper()
	code, body := p.call("GET", mapsPath, "")
	require.Equal(p, 200, code, body)
	var list struct {
		Items []object `json:"items"`
	}
	require.NoError(p, json.Unmarshal([]byte(body), &list))
	found := map[string]uint64{}
	for _, o := range list.Items {
		if strings.HasPrefix(o.Metadata.Name, prefix) {
			found[o.Metadata.Name] = o.version()
		}
	}
	return found
}

// moved waits for the message about the outcome of the move.
func (p *process) moved() string {
	p.Helper()
	for {
		line, err := p.stdout.ReadString('\n')
		require.NoError(p, err)
		if strings.Contains(line, "moved to ") {
			return line
		}
	}
}

// TestMoveWhileServing: a server moves its directory while 8 clients write. No acknowledged write is
// lost; at the end writes are rejected and reads work, and no server starts with the old directory by
// mistake.
func TestMoveWhileServing(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "new")
	p := startProcess(t, dir)
	for i := range 20 {
		code, body := p.call("POST", mapsPath, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"text":%q}}`, i, strings.Repeat("x", 500<<10)))
		require.Equal(t, 201, code, body)
	}
	require.NoError(t, p.end(syscall.SIGTERM))
	p = startProcess(t, dir, "--to-data-dir", to)
	var writers sync.WaitGroup
	all := make([]map[string]uint64, 8)
	for i := range all {
		writers.Go(func() {
			var err error
			all[i], err = p.writeUntilRefused(i)
			assert.NoError(t, err)
		})
	}
	outcome := p.moved()
	require.True(t, strings.HasPrefix(outcome, "moved to "), outcome)
	require.Contains(t, outcome, "watches continue. This server accepts no more writes")
	writers.Wait()
	taken := map[string]uint64{}
	for _, some := range all {
		for name, version := range some {
			taken[name] = version
		}
	}
	require.NotEmpty(t, taken, "writes are accepted during the move")
	t.Logf("%d writes were taken", len(taken))
	require.Equal(t, taken, p.versions("w"))
	code, body := p.call("DELETE", mapsPath+"/large-1", "")
	require.Equal(t, 503, code, body)
	code, body = p.call("GET", "/readyz", "")
	require.NotEqual(t, 200, code, body)
	code, body = p.call("GET", "/livez", "")
	require.Equal(t, 200, code, body)
	require.NoError(t, p.end(syscall.SIGTERM))
	mustFail(t, "has moved to "+to, "--secure-port", "0", "--data-dir", dir)
	mustFail(t, "has moved to "+to, "backup", "--data-dir", dir, filepath.Join(t.TempDir(), "file"))

	again := startProcess(t, to)
	again.client = p.client
	require.Equal(t, taken, again.versions("w"))
	require.Len(t, again.versions("large"), 20)
	after := again.create("after")
	for _, version := range taken {
		require.Greater(t, after, version)
	}
	require.NoError(t, again.end(syscall.SIGTERM))
}

// TestFailedMoveKeepsServing: a server whose store cannot be moved reports that, and continues to
// accept writes.
func TestFailedMoveKeepsServing(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), t.TempDir()
	p := startProcess(t, to)
	require.NoError(t, p.end(syscall.SIGTERM))
	p = startProcess(t, dir, "--to-data-dir", to)
	require.Contains(t, p.moved(), "not moved to ")
	p.create("first")
	require.NoError(t, p.end(syscall.SIGTERM))
	require.Contains(t, p.stderr.String(), "storage is not empty")
	p = startProcess(t, dir)
	require.Len(t, p.versions("first"), 1)
	require.NoError(t, p.end(syscall.SIGTERM))
	mustFail(t, "only a store in a directory", "--secure-port", "0", "--data-dir", "", "--to-data-dir", to)
}

// reopenable is a store that can be used after Close.
type reopenable struct{ *faultinject.Store }

func (reopenable) Close() error { return nil }

// TestFailedMoveAfterCutover: after a moving server has stopped writes, it accepts them again only if
// no server can start with the new store. Until then, no server can start with the old store either.
func TestFailedMoveAfterCutover(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	tests := map[string]struct {
		outcome string
		plan    func(end context.CancelFunc) faultinject.Plan // faults of the new store after writes were stopped
	}{
		"moved to": {"moved to", nil},
		"ended": {"moved to", func(end context.CancelFunc) faultinject.Plan {
			return func(faultinject.Call) faultinject.Fault { end(); return faultinject.Fault{} }
		}},
		"failing": {"not moved to", func(context.CancelFunc) faultinject.Plan {
			return func(c faultinject.Call) faultinject.Fault {
				if c.Op == faultinject.OpCompact {
					return faultinject.Fault{Err: broken}
				}
				return faultinject.Fault{}
			}
		}},
		"last answer lost": {"possibly moved to", func(context.CancelFunc) faultinject.Plan {
			return func(c faultinject.Call) faultinject.Fault {
				if c.Op == faultinject.OpCommit && c.Key == storage.IncompleteKey {
					return faultinject.Fault{Err: broken, Done: true}
				}
				return faultinject.Fault{}
			}
		}},
		"silent": {"possibly moved to", func(context.CancelFunc) faultinject.Plan {
			return func(c faultinject.Call) faultinject.Fault { return faultinject.Fault{Err: broken} }
		}},
		"no mark": {"not moved to", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ctx, end := context.WithCancel(t.Context())
			defer end()
			dir := t.TempDir()
			store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
			require.NoError(t, err)
			inner := memstore.New(memstore.Options{})
			var attic reopenable
			to := &location{storage: "attic", openers: map[string]Opener{"attic": func(context.Context, *slog.Logger, bool) (storage.Backend, error) {
				return attic, nil
			}}}
			m := &moving{Store: store, from: &location{storage: directory, dataDir: dir}, to: to, cancel: func() {}}
			defer func() { require.NoError(t, errors.Join(m.Close(), inner.Close())) }()
			for i := range 50 {
				_, err := m.Commit(ctx, storage.Write{Key: fmt.Sprint("k", i), Value: []byte("x")})
				require.NoError(t, err)
			}
			if name == "no mark" {
				require.NoError(t, os.Mkdir(filepath.Join(dir, movedFile), 0o700))
			}
			attic = reopenable{faultinject.Wrap(inner, func(c faultinject.Call) faultinject.Fault {
				if m.Writable(ctx) == nil || test.plan == nil {
					return faultinject.Fault{}
				}
				if c.Op == faultinject.OpCommit && name != "silent" {
					assert.FileExists(t, filepath.Join(dir, movedFile))
				}
				return test.plan(end)(c)
			})}
			var out strings.Builder
			m.start(ctx, slog.New(slog.DiscardHandler), &out)
			m.moves.Wait()
			require.True(t, strings.HasPrefix(out.String(), test.outcome+" attic"), out.String())
			_, err = m.Commit(t.Context(), storage.Write{Key: "more", Value: []byte("x")})
			_, part := inner.Get(t.Context(), storage.IncompleteKey, 0)
			if test.outcome == "not moved to" {
				require.NoError(t, err)
				require.NoError(t, part)
				require.NoFileExists(t, filepath.Join(dir, movedFile))
				return
			}
			require.ErrorContains(t, err, "the store of this server")
			require.ErrorContains(t, checkNotMoved(dir), "has moved to attic")
			if name != "silent" {
				require.ErrorIs(t, part, storage.ErrNotFound)
			}
		})
	}
}

// TestShutdownCancelsMove: a server that stops during a move leaves nothing of the new store, and its
// own store unchanged.
func TestShutdownCancelsMove(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), t.TempDir()
	store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.NoError(t, err)
	_, err = store.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")})
	require.NoError(t, err)
	m := &moving{Store: store, from: &location{storage: directory, dataDir: dir}, to: &location{storage: directory, dataDir: to}}
	ctx, end := context.WithCancel(t.Context())
	end()
	var out strings.Builder
	m.start(ctx, slog.New(slog.DiscardHandler), &out)
	require.NoError(t, m.Close())
	require.Contains(t, out.String(), "not moved to")
	left, err := filepath.Glob(filepath.Join(to, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoError(t, checkNotMoved(dir))
}

// killed is the number of rounds of TestKilledCommands: go test -run TestKilledCommands -killed 200.
var killed = flag.Int("killed", 3, "number of commands to kill")

// TestKilledCommands: a restore or copy that is killed at any moment leaves nothing that looks
// complete, and can be repeated.
func TestKilledCommands(t *testing.T) {
	t.Parallel()
	dir, saved, spare := t.TempDir(), filepath.Join(t.TempDir(), "saved"), t.TempDir()
	p := startProcess(t, dir)
	for i := range 20 {
		code, body := p.call("POST", mapsPath, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"text":%q}}`, i, strings.Repeat("x", 500<<10)))
		require.Equal(t, 201, code, body)
	}
	require.NoError(t, p.end(syscall.SIGTERM))
	mustRun(t, "backup", "--data-dir", dir, saved)
	_, want, _ := strings.Cut(mustRun(t, "verify", saved), "complete: ")
	want, _, _ = strings.Cut(want, ",")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	usual, whole := 2*time.Second, 0
	for round := range *killed {
		to, file := filepath.Join(spare, fmt.Sprint("to", round)), filepath.Join(spare, fmt.Sprint("file", round))
		args := []string{"restore", "--data-dir", to, saved}
		if round%2 == 1 {
			args = []string{"copy", "--data-dir", dir, "--to-data-dir", to}
		}
		cmd := command(args...)
		begun := time.Now()
		require.NoError(t, cmd.Start())
		killer := time.AfterFunc(time.Duration(r.Int64N(int64(usual))), func() { _ = cmd.Process.Kill() })
		if cmd.Wait() == nil {
			usual = time.Since(begun)
		}
		killer.Stop()
		if out, err := command("backup", "--data-dir", to, file).CombinedOutput(); err == nil {
			whole++
			require.Contains(t, string(out), want)
			mustFail(t, "storage is not empty", args...)
		} else {
			mustRun(t, args...)
			require.Contains(t, mustRun(t, "backup", "--data-dir", to, file), want)
		}
		require.NoError(t, errors.Join(os.RemoveAll(to), os.Remove(file)))
	}
	t.Logf("%d of %d commands completed before the kill", whole, *killed)
}

// TestFailedFillLeavesNothing: a failed fill leaves nothing that a server could start with, even if the
// store was complete when it failed.
func TestFailedFillLeavesNothing(t *testing.T) {
	t.Parallel()
	source, stop := memstore.New(memstore.Options{}), errors.New("not what was sent")
	defer func() { require.NoError(t, source.Close()) }()
	_, err := source.Commit(t.Context(), storage.Write{Key: "a", Value: []byte("x")})
	require.NoError(t, err)
	p := &location{storage: directory, dataDir: t.TempDir()}
	for _, work := range []func(storage.Backend) error{
		func(storage.Backend) error { return nil },
		func(to storage.Backend) error {
			_, err := backup.Copy(t.Context(), source, to, backup.Options{})
			return err
		},
	} {
		err := p.fill(t.Context(), slog.New(slog.DiscardHandler), func(to storage.Backend) error {
			require.NoError(t, work(to))
			return stop
		})
		require.ErrorIs(t, err, stop)
		left, err := os.ReadDir(p.dataDir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}
