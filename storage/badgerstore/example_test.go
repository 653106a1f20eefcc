package badgerstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
)

func ExampleOpen() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "badgerstore")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	s, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = badgerstore.Open(badgerstore.Options{Dir: dir})
	fmt.Println(errors.Is(err, badgerstore.ErrInUse))
	revision, _ := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")})
	_, _ = s.Commit(ctx, storage.Write{Key: "a", Value: []byte("2"), Expect: revision})
	_ = s.Close()

	s, err = badgerstore.Open(badgerstore.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	old, _ := s.Get(ctx, "a", revision)
	fmt.Println(string(old.Value))
	for commit, err := range s.Watch(ctx, "", 0) {
		for _, event := range commit {
			fmt.Printf("%d: %q after %q\n", event.Revision, event.Value, event.Prev.Value)
		}
		if err != nil || commit[0].Revision == 2 {
			break
		}
	}
	// Output:
	// true
	// 1
	// 1: "1" after ""
	// 2: "2" after "1"
}
