package memstore_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

func ExampleStore() {
	ctx := context.Background()
	s := memstore.New(memstore.Options{})
	defer s.Close()
	first, _ := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")})
	second, _ := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("2"), Expect: first})
	old, _ := s.Get(ctx, "a", first)
	now, _ := s.Get(ctx, "a", 0)
	fmt.Println(first, second, string(old.Value), string(now.Value))

	_, err := s.Commit(ctx, storage.Write{Key: "a", Expect: first})
	var conflict *storage.ConflictError
	fmt.Println(errors.As(err, &conflict), err)
	// Output:
	// 1 2 1 2
	// true commit "a": expected revision 1, found 2
}

func ExampleStore_Fork() {
	ctx := context.Background()
	s := memstore.New(memstore.Options{})
	defer s.Close()
	_, _ = s.Commit(ctx, storage.Write{Key: "seed", Value: []byte("x")})

	f := s.Fork()
	defer f.Close()
	_, _ = f.Commit(ctx, storage.Write{Key: "seed", Expect: storage.AnyRevision})
	_, err := f.Get(ctx, "seed", 0)
	fmt.Println(err)
	rec, _ := s.Get(ctx, "seed", 0)
	fmt.Println(string(rec.Value))
	// Output:
	// key not found
	// x
}
