// Command backup keeps a program's data safe: while the server is stopped, its directory is
// copied, and the copy is examined before it counts as a backup. What is restored has the
// versions that it had, so that clients go on from what they saw last. Those that saw what
// happened after the backup have to start over: its versions are given once more.
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

// backup copies the directory of a server that does not run. The copy has its name only
// once it is whole and on disk.
func backup(ctx context.Context, data, to string) error {
	if err := copyTo(ctx, data, to+".part"); err != nil {
		return err
	}
	return os.Rename(to+".part", to)
}

// restore makes the directory of a server anew. What was there is kept beside it: whoever
// restores may have chosen the wrong backup.
func restore(ctx context.Context, from, data string) error {
	if err := copyTo(ctx, from, data+".part"); err != nil {
		return err
	}
	if err := os.Rename(data, data+".before"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(data+".part", data)
}

// copyTo copies a directory that no server has open, and refuses what is not whole.
func copyTo(ctx context.Context, from, to string) error {
	if err := whole(ctx, from); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil { // what a copy left that was cut off
		return err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return errors.Join(whole(ctx, to), syncAll(to))
}

// whole is badgerstore.ErrInUse while a server has the directory open.
func whole(ctx context.Context, dir string) error {
	report, err := badgerstore.Inspect(ctx, dir)
	if err == nil && !report.Whole() {
		err = fmt.Errorf("%s is damaged: %q, %v", dir, report.Faults, report.Damaged)
	}
	return err
}

// syncAll brings a directory and its files to disk.
func syncAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// serve runs the program's server over a directory while work lasts.
func serve(ctx context.Context, dir string, work func(*client.Objects[Note]) error) error {
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
	err = work(client.Of[Note](s.Conn(auth.User{Name: "jane"}), note))
	return errors.Join(err, s.Shutdown(ctx), store.Close())
}

func run(ctx context.Context, dir string, out io.Writer) error {
	data, saved := filepath.Join(dir, "data"), filepath.Join(dir, "monday")
	var seen string // the version that a client saw last before the backup
	write := func(notes *client.Objects[Note]) error {
		made, err := notes.Create(ctx, &Note{ObjectMeta: meta.ObjectMeta{Name: "todo"}, Text: "buy milk"})
		if err != nil {
			return err
		}
		seen = made.ResourceVersion
		_, err = notes.Modify(ctx, "todo", func(n *Note) error { n.Text = "buy milk and bread"; return nil })
		fmt.Fprintln(out, "refused while the server runs:", errors.Is(backup(ctx, data, saved), badgerstore.ErrInUse))
		return err
	}
	lose := func(notes *client.Objects[Note]) error { return notes.Delete(ctx, "todo", registry.DeleteOptions{}) }
	goOn := func(notes *client.Objects[Note]) error {
		for e, err := range notes.Watch(ctx, seen) {
			if err == nil {
				fmt.Fprintln(out, "the client missed:", e.Type, e.Object.Text)
			}
			return err
		}
		return nil
	}
	for _, step := range []func() error{
		func() error { return serve(ctx, data, write) },
		func() error { return backup(ctx, data, saved) },
		func() error { return serve(ctx, data, lose) },
		func() error { return restore(ctx, saved, data) },
		func() error { return serve(ctx, data, goOn) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
