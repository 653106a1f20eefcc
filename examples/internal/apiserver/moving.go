package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/badgerstore"
)

// moving is the store of a server that moves it to another place while it serves. Reads continue until
// the server stops. Writes are rejected when little is left to copy, and permanently when everything is
// copied.
type moving struct {
	*badgerstore.Store
	from, to *location

	cancel context.CancelFunc // cancels the move; without effect after writes were stopped
	moves  sync.WaitGroup

	mu      sync.RWMutex // held for reading during each write
	refused error        // guarded by mu: the error of writes, or nil if they are accepted
}

// openStore opens the store of a server. If the flags name a place to move to, the result is a *moving.
func (f *flags) openStore(ctx context.Context, log *slog.Logger) (storage.Backend, error) {
	store, err := f.open(ctx, log, true)
	if err != nil || !f.to.isSet() {
		return store, err
	}
	dir, ok := store.(*badgerstore.Store)
	if !ok {
		err := errors.New("only a store in a directory can be moved while its server runs: for other engines, stop the servers and use the command copy")
		return nil, errors.Join(err, store.Close())
	}
	return &moving{Store: dir, from: &f.location, to: &f.to, cancel: func() {}}, nil
}

// Commit implements storage.Backend.
func (m *moving) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.refused != nil {
		return 0, m.refused
	}
	return m.Store.Commit(ctx, ws...)
}

// CommitSequence implements storage.Sequencer.
func (m *moving) CommitSequence(ctx context.Context, first storage.Write, then ...[]byte) ([]storage.Revision, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.refused != nil {
		return nil, m.refused
	}
	return m.Store.CommitSequence(ctx, first, then...)
}

// Writable implements storage.Writer. The server is not ready while it accepts no writes.
func (m *moving) Writable(ctx context.Context) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.refused != nil {
		return m.refused
	}
	return m.Store.Writable(ctx)
}

// refuse waits for running writes, and makes later writes fail with err, or accepts them again if err
// is nil.
func (m *moving) refuse(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = err
}

// start begins to move the store, until the context ends.
func (m *moving) start(ctx context.Context, log *slog.Logger, out io.Writer) {
	ctx, m.cancel = context.WithCancel(ctx)
	m.moves.Go(func() { m.run(ctx, log, out) })
}

// Close implements storage.Backend. It first cancels the move, or waits for its end if it has stopped
// writes.
func (m *moving) Close() error {
	m.cancel()
	m.moves.Wait()
	return m.Store.Close()
}

// run moves the store. When the context ends it stops, unless writes are stopped already: from then on
// the new store may be complete at any time. If the move fails, the server continues with its old
// store, unless the new store may be complete, so that another server could start with it.
func (m *moving) run(ctx context.Context, log *slog.Logger, out io.Writer) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	stopped := false
	shown := newProgress()
	report, err := copyStore(inner, m.Store, m.from, m.to, backup.Options{
		Progress: shown.report,
		Cutover: func(context.Context) error {
			if !stop() {
				return context.Cause(ctx)
			}
			stopped = true
			m.refuse(unavailable("the store of this server is being moved, please try again"))
			return markMoved(m.from.dataDir, m.to.String())
		},
	})
	shown.end()
	if err == nil {
		m.refuse(unavailable("the store of this server has moved, please try again on another server"))
		fmt.Fprintf(out, "moved to %s: %d records. %s. This server accepts no more writes: stop it, and start a server with the new store\n", m.to, report.Keys, describeEffect(report, false))
		return
	}
	if stopped {
		if uncertain := m.acceptWrites(inner, log); uncertain != nil {
			log.Error("failed to move the store, but the new store may be complete; this server accepts no more writes", "to", m.to.String(), "err", errors.Join(err, uncertain))
			fmt.Fprintf(out, "possibly moved to %s: this server accepts no more writes. If a server starts with the new store, it is complete; otherwise remove %s in the old directory and start the move again\n", m.to, movedFile)
			return
		}
	}
	log.Error("failed to move the store", "to", m.to.String(), "err", err)
	fmt.Fprintf(out, "not moved to %s: this server continues with its old store\n", m.to)
}

// resumeTime limits how long the new store may take to answer.
const resumeTime = 30 * time.Second

// acceptWrites accepts writes again, after it is certain that the new store is incomplete.
func (m *moving) acceptWrites(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	if err := m.to.checkIncomplete(ctx, log); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(m.from.dataDir, movedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := syncDir(m.from.dataDir); err != nil {
		return err
	}
	m.refuse(nil)
	return nil
}

// unavailable returns a 503 Status with Retry-After.
func unavailable(why string) error {
	st := meta.Unavailable("%s", why)
	st.Details = &meta.StatusDetails{RetryAfterSeconds: 1}
	return st
}

// movedFile is a file in the old directory that names the new store. It is written before the new store
// is complete.
const movedFile = "MOVED"

// markMoved makes servers refuse to start with the old directory, which would continue from an old
// state.
func markMoved(dir, to string) error {
	return save(filepath.Join(dir, movedFile), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, to)
		return err
	})
}

func checkNotMoved(dir string) error {
	path := filepath.Join(dir, movedFile)
	to, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the store in %s has moved to %s, and the data here is old; if servers refuse to start with the new store, the move was interrupted: to continue with the data here, remove %s", dir, strings.TrimSpace(string(to)), path)
}
