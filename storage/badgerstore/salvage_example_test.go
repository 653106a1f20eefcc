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

// A tool for operators checks whether a store is intact and salvages the readable records otherwise.
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
	fmt.Println("whole:", report.Intact(), report.Records)
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

// If a restore fails, Fill leaves no files of a store.
func ExampleFill() {
	dir, err := os.MkdirTemp("", "badgerstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	cut := errors.New("the file is cut off")
	records := func(yield func(storage.Record, error) bool) { yield(storage.Record{}, cut) }
	err = badgerstore.Fill(badgerstore.Options{Dir: dir}, func(s *badgerstore.Store) error {
		return s.Import(context.Background(), nil, 0, records)
	})
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	fmt.Println(errors.Is(err, cut), left)
	// Output:
	// true []
}
