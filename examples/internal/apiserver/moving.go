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

// moving is the store of a server that moves it to another place while it serves. Reads go on
// until the server ends; writes are refused once little is left to copy, and for good when all is
// copied.
type moving struct {
	*badgerstore.Store
	from, to *place

	giveUp context.CancelFunc // of the move, as long as the new store cannot be whole
	moves  sync.WaitGroup

	mu      sync.RWMutex // held for reading while anything is written
	refused error        // what writes are answered; nil: they are taken
}

// openStore opens a server's store, which is a *moving one if the flags say where to.
func (f *flags) openStore(ctx context.Context, log *slog.Logger) (storage.Backend, error) {
	store, err := f.open(ctx, log, true)
	if err != nil || !f.to.named() {
		return store, err
	}
	dir, ok := store.(*badgerstore.Store)
	if !ok {
		err := errors.New("only the store in a directory moves while its server serves: for another one stop the servers and use the command copy")
		return nil, errors.Join(err, store.Close())
	}
	return &moving{Store: dir, from: &f.place, to: &f.to, giveUp: func() {}}, nil
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

// Writable implements storage.Writer, so that the server is not ready while it takes no writes.
func (m *moving) Writable(ctx context.Context) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.refused != nil {
		return m.refused
	}
	return m.Store.Writable(ctx)
}

// refuse waits for the writes that are under way, and answers later ones with an error, or takes
// them again.
func (m *moving) refuse(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refused = err
}

// start moves the store until the context ends.
func (m *moving) start(ctx context.Context, log *slog.Logger, out io.Writer) {
	ctx, m.giveUp = context.WithCancel(ctx)
	m.moves.Go(func() { m.run(ctx, log, out) })
}

// Close implements storage.Backend. A move that has stopped writes is finished before.
func (m *moving) Close() error {
	m.giveUp()
	m.moves.Wait()
	return m.Store.Close()
}

// run moves the store. It is given up when the context ends, but not once writes are stopped: the
// new store may be whole at any time then. If it fails, the server goes on with the store that it
// has, unless somebody could start another one over the new store, which is whole for all that
// this one knows.
func (m *moving) run(ctx context.Context, log *slog.Logger, out io.Writer) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	stopped := false
	shown := onStderr()
	report, err := copyStore(inner, m.Store, m.from, m.to, backup.Options{
		Progress: shown.tell,
		Cutover: func(context.Context) error {
			if !stop() {
				return context.Cause(ctx)
			}
			stopped = true
			m.refuse(unavailable("the store of this server moves to another place, please try again"))
			return markMoved(m.from.dataDir, m.to.String())
		},
	})
	shown.end()
	if err == nil {
		m.refuse(unavailable("the store of this server has moved, please try again at another one"))
		fmt.Fprintf(out, "moved to %s: %d records. %s. This server takes no more writes: end it, and start one over that\n", m.to, report.Keys, goOn(report, false))
		return
	}
	if stopped {
		if doubt := m.resume(inner, log); doubt != nil {
			log.Error("the move of the store failed, but the new one may be whole: this server takes no more writes", "to", m.to.String(), "err", errors.Join(err, doubt))
			fmt.Fprintf(out, "perhaps moved to %s: this server takes no more writes. If a server starts over that all is there, else remove %s here and begin again\n", m.to, movedFile)
			return
		}
	}
	log.Error("the store was not moved", "to", m.to.String(), "err", err)
	fmt.Fprintf(out, "not moved to %s: this server goes on with the store that it has\n", m.to)
}

// resumeTime is how long the new store may take to answer.
const resumeTime = 30 * time.Second

// resume takes writes again, once it is certain that the new store is not whole.
func (m *moving) resume(ctx context.Context, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(ctx, resumeTime)
	defer cancel()
	if err := m.to.unfinished(ctx, log); err != nil {
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

// unavailable is 503 with Retry-After.
func unavailable(why string) error {
	st := meta.Unavailable("%s", why)
	st.Details = &meta.StatusDetails{RetryAfterSeconds: 1}
	return st
}

// movedFile says in a directory where its store went. It is there before the new one is whole.
const movedFile = "MOVED"

// markMoved has the directory refused by servers: who starts one over it by mistake would go on
// from an old state.
func markMoved(dir, to string) error {
	return save(filepath.Join(dir, movedFile), func(w io.Writer) error {
		_, err := fmt.Fprintln(w, to)
		return err
	})
}

func hasMoved(dir string) error {
	path := filepath.Join(dir, movedFile)
	to, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("the store in %s has moved to %s, and what is here is old; if servers refuse to start over that, the move was broken off: to go on with what is here, remove %s", dir, strings.TrimSpace(string(to)), path)
}
