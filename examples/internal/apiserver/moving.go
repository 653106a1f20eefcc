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

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/transfer"
)

// moving is the store of a server that moves it to another place while it serves. Reads go on
// until the server ends; writes are refused once little is left to copy, and for good when all is
// copied.
type moving struct {
	*badgerstore.Store
	from, to *place

	mu      sync.RWMutex // held for reading while anything is written
	refused error        // what writes are answered; nil: they are taken
}

// openStore opens a server's store, which is a *moving one if the flags say where to.
func (f *flags) openStore(ctx context.Context, log *slog.Logger) (storage.Backend, error) {
	store, err := f.open(ctx, log)
	if err != nil || !f.to.named() {
		return store, err
	}
	dir, ok := store.(*badgerstore.Store)
	if !ok {
		err := errors.New("only the store in a directory moves while its server serves: for another one stop the servers and use the command copy")
		return nil, errors.Join(err, store.Close())
	}
	return &moving{Store: dir, from: &f.place, to: &f.to}, nil
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

// run moves the store. If that fails the server goes on with the store that it has.
func (m *moving) run(ctx context.Context, log *slog.Logger, out io.Writer) {
	report, err := copyStore(ctx, m.Store, m.from, m.to, transfer.Options{
		Progress: progress(),
		Cutover: func(context.Context) error {
			m.refuse(unavailable("the store of this server moves to another place, please try again"))
			return nil
		},
	})
	if err == nil {
		err = markMoved(m.from.dataDir, m.to.String())
	}
	if err != nil {
		m.refuse(nil)
		log.Error("the store was not moved", "to", m.to.String(), "err", err)
		fmt.Fprintf(out, "not moved to %s: this server goes on with the store that it has\n", m.to)
		return
	}
	m.refuse(unavailable("the store of this server has moved, please try again at another one"))
	fmt.Fprintf(out, "moved to %s: %d records. %s. This server takes no more writes: end it, and start one over that\n", m.to, report.Keys, goOn(report, false))
}

// unavailable is 503 with Retry-After.
func unavailable(why string) error {
	st := meta.Unavailable("%s", why)
	st.Details = &meta.Details{RetryAfterSeconds: 1}
	return st
}

// movedFile says in a directory where its store went.
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
	return errors.Join(err, fmt.Errorf("the store in %s has moved to %s, and what is here is old: to use it all the same, remove %s", dir, strings.TrimSpace(string(to)), path))
}
