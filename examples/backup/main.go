// Command backup keeps a program's data safe: its store is saved in a file while it serves, later
// what changed since in another one, and both are restored into a new directory when the first
// one is lost. What is restored has the versions that it had, so that clients go on from what they
// saw last. Those that saw what happened after the last backup must start over: see
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

// save backs up a store that is in use, or what changed in it since an earlier backup. The file has
// its name only once it is whole and on the disk.
func save(ctx context.Context, store storage.Backend, since backup.Position, file string) (*backup.Report, error) {
	f, err := os.OpenFile(file+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) // it has all that is secret
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

// restore makes a directory from a backup and those that were made on top of it. If that fails, or
// failed in an earlier attempt, nothing is left of it.
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

// serve runs the program's server over a directory while work lasts.
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
	var seen string // the version that a client saw last
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
		fmt.Fprintln(out, "monday has everything up to the version that the client saw:", fmt.Sprint(first.Revision) == seen)
		if _, err := notes.Modify(ctx, "todo", func(n *Note) error { n.Text = "buy milk and bread"; return nil }); err != nil {
			return err
		}
		second, err := save(ctx, store, first.Position, tuesday)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "tuesday has what came after:", second.Revision-first.Revision, "change")
		return nil
	}
	goOn := func(_ storage.Backend, notes *client.Objects[Note]) error {
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
	if err := os.RemoveAll(data); err != nil { // the disk is gone
		return err
	}
	fmt.Fprintln(out, "tuesday alone is refused:", errors.Is(restore(ctx, data, tuesday), backup.ErrWrongBase))
	if err := restore(ctx, data, monday, tuesday); err != nil {
		return err
	}
	return serve(ctx, data, goOn)
}
