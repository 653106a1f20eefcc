package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

// A tool for operators: is the store whole, and what can be had of it if not.
func ExampleSalvage() {
	ctx := context.Background()
	top, err := os.MkdirTemp("", "badgerstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(top)
	dir, to := filepath.Join(top, "old"), filepath.Join(top, "new")
	s, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")})
	var stats badgerstore.Stats = s.Stats() // for metrics
	fmt.Println(stats.Keys, stats.Revision, err)
	if err := s.Close(); err != nil {
		fmt.Println(err)
		return
	}

	report, err := badgerstore.Inspect(ctx, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("whole:", report.Whole(), report.Records)
	var saved *badgerstore.Report
	if saved, err = badgerstore.Salvage(ctx, dir, to); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("saved:", saved.Records)
	// Output:
	// 1 1 <nil>
	// whole: true 1
	// saved: 1
}

// A restore that is begun again removes what an earlier one left that was broken off, and
// nothing else.
func ExampleDiscardImport() {
	dir, err := os.MkdirTemp("", "badgerstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := badgerstore.DiscardImport(dir); err != nil {
		fmt.Println(err)
		return
	}
	s, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	cut := errors.New("the file is cut off")
	records := func(yield func(storage.Record, error) bool) { yield(storage.Record{}, cut) }
	fmt.Println(errors.Is(s.Import(context.Background(), nil, 0, records), cut), s.Close())
	// Output:
	// true <nil>
}
