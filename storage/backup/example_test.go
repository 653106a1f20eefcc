package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/memstore"
)

// A store is backed up while it is written to, then incrementally, and restored with its revisions.
func ExampleBackup() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	commit := func(key, value string) {
		if _, err := store.Commit(ctx, storage.Write{Key: key, Value: []byte(value)}); err != nil {
			fmt.Println(err)
		}
	}
	var monday, tuesday bytes.Buffer
	commit("a", "1")
	first, err := backup.Backup(ctx, store, &monday, backup.Options{})
	fmt.Println(first.Keys, err)
	commit("b", "2")
	var since backup.Position = first.Position
	second, err := backup.Backup(ctx, store, &tuesday, backup.Options{Base: since})
	fmt.Println(second.Keys, err)

	report, err := backup.Verify(ctx, backup.Options{}, bytes.NewReader(tuesday.Bytes()))
	fmt.Println(report.Revision, report.Base == since, err)

	restored := memstore.New(memstore.Options{})
	defer restored.Close()
	_, err = backup.Restore(ctx, restored, backup.Options{}, bytes.NewReader(tuesday.Bytes()))
	fmt.Println(errors.Is(err, backup.ErrWrongBase))
	_, err = backup.Restore(ctx, restored, backup.Options{}, &monday, &tuesday)
	if err != nil {
		fmt.Println(err)
		return
	}
	record, err := restored.Get(ctx, "b", 0)
	fmt.Println(string(record.Value), record.Revision, err)
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 2 true <nil>
	// true
	// 2 2 <nil>
}

// A server serves backups of its store, here without access control. The client verifies a backup while it receives it,
// and keeps it if it is valid.
func ExampleHandler() {
	ctx := context.Background()
	store := memstore.New(memstore.Options{})
	defer store.Close()
	if _, err := store.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")}); err != nil {
		fmt.Println(err)
		return
	}
	web := httptest.NewServer(backup.Handler(store))
	defer web.Close()
	from, err := backup.Fetch(ctx, web.Client(), web.URL, backup.Position{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer from.Close()
	var file bytes.Buffer
	report, err := backup.Verify(ctx, backup.Options{}, io.TeeReader(from, &file))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Keys, report.Revision, file.Len() > 0)
	// Output:
	// 1 1 true
}

// A store is copied to another one. When few commits are left, the program stops its writes, and then it continues with
// the other store.
func ExampleCopy() {
	ctx := context.Background()
	from, to := memstore.New(memstore.Options{}), memstore.New(memstore.Options{})
	defer from.Close()
	defer to.Close()
	if _, err := from.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")}); err != nil {
		fmt.Println(err)
		return
	}
	var _ storage.Importer = to // it takes revisions as they are
	var stamps storage.StampReader = to
	var report *backup.Report
	var phases []backup.Phase
	report, err := backup.Copy(ctx, from, to, backup.Options{
		Cutover:  func(context.Context) error { fmt.Println("no more writes"); return nil },
		Progress: func(p backup.Progress) { phases = append(phases, p.Phase) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Keys, report.Revision, report.RevisionsKept, phases[len(phases)-1])
	fmt.Println(stamps.Stamps(ctx))
	// Output:
	// no more writes
	// 1 1 true verifying
	// map[] <nil>
}
