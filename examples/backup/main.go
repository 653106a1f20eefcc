// Command backup shows how a program backs up and restores its data. It saves its store to a file while
// it serves, then the changes since to a second file, and restores both into a new directory after the
// data directory is lost. Restored objects keep their versions, so clients continue from the version
// that they saw last. Clients that saw changes after the last backup must start over, see
// backup.Options.StartOver.
//
//	go run ./examples/backup
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/client"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/badgerstore"
)

// Note is the program's data.
type Note struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Text            string `json:"text" schema:"required"`
}

func main() {
	dir, err := os.MkdirTemp("", "backup-")
	if err == nil {
		err = errors.Join(run(context.Background(), dir, os.Stdout), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "backup:", err)
		os.Exit(1)
	}
}

// save backs up a store that is in use, or its changes since an earlier backup. The file gets its name
// only when it is complete and on the disk.
func save(ctx context.Context, store storage.Backend, since backup.Position, file string) (*backup.Report, error) {
	f, err := os.OpenFile(file+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) // only for the owner, because a backup contains all secrets
	if err != nil {
		return nil, err
	}
	report, err := backup.Backup(ctx, store, f, backup.Options{Base: since})
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return report, syncDir(filepath.Dir(file))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// restore fills a directory from a backup and the backups based on it. If restore fails, it leaves
// nothing in the directory.
func restore(ctx context.Context, dir string, files ...string) error {
	var readers []io.Reader
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		readers = append(readers, f)
	}
	return badgerstore.Fill(badgerstore.Options{Dir: dir}, func(store *badgerstore.Store) error {
		_, err := backup.Restore(ctx, store, backup.Options{}, readers...)
		return err
	})
}

// serve runs the server with a directory while work runs.
func serve(ctx context.Context, dir string, work func(storage.Backend, *client.Objects[Note]) error) error {
	store, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	if err != nil {
		return err
	}
	note := registry.Of(registry.Definition[Note]{Group: "example.com", Version: "v1", Scope: registry.Cluster})
	b := &server.Builder{Authorizer: auth.AllowAll, Storage: store}
	b.Register(note)
	s, err := b.Build(ctx)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	err = work(store, client.Of[Note](s.Conn(auth.User{Name: "jane"}), note))
	return errors.Join(err, s.Shutdown(ctx), store.Close())
}

func run(ctx context.Context, dir string, out io.Writer) error {
	data, monday, tuesday := filepath.Join(dir, "data"), filepath.Join(dir, "monday"), filepath.Join(dir, "tuesday")
	var seen string // the version that the client saw last
	write := func(store storage.Backend, notes *client.Objects[Note]) error {
		made, err := notes.Create(ctx, &Note{ObjectMeta: meta.ObjectMeta{Name: "todo"}, Text: "buy milk"})
		if err != nil {
			return err
		}
		seen = made.ResourceVersion
		first, err := save(ctx, store, backup.Position{}, monday)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "monday contains the version that the client saw:", fmt.Sprint(first.Revision) == seen)
		if _, err := notes.Modify(ctx, "todo", func(n *Note) error { n.Text = "buy milk and bread"; return nil }); err != nil {
			return err
		}
		second, err := save(ctx, store, first.Position, tuesday)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "changes in tuesday:", second.Revision-first.Revision)
		return nil
	}
	resume := func(_ storage.Backend, notes *client.Objects[Note]) error {
		for e, err := range notes.Watch(ctx, seen) {
			if err == nil {
				fmt.Fprintln(out, "the client missed:", e.Type, e.Object.Text)
			}
			return err
		}
		return nil
	}
	if err := serve(ctx, data, write); err != nil {
		return err
	}
	if err := os.RemoveAll(data); err != nil { // the disk is lost
		return err
	}
	fmt.Fprintln(out, "tuesday alone is rejected:", errors.Is(restore(ctx, data, tuesday), backup.ErrWrongBase))
	if err := restore(ctx, data, monday, tuesday); err != nil {
		return err
	}
	return serve(ctx, data, resume)
}
