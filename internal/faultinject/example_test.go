package faultinject_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/internal/faultinject"
	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
)

// The second commit succeeds but returns an error.
func ExampleWrap() {
	ctx := context.Background()
	lost := errors.New("connection lost")
	s := faultinject.Wrap(memstore.New(memstore.Options{}), func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpCommit && c.N == 2 {
			return faultinject.Fault{Err: lost, Done: true}
		}
		return faultinject.Fault{}
	})
	defer s.Close()

	_, err := s.Commit(ctx, storage.Write{Key: "a", Value: []byte("1")})
	fmt.Println(err)
	_, err = s.Commit(ctx, storage.Write{Key: "b", Value: []byte("2")})
	fmt.Println(err)
	rec, err := s.Get(ctx, "b", 0)
	fmt.Println(string(rec.Value), err)
	// Output:
	// <nil>
	// connection lost
	// 2 <nil>
}

// A test can change the plan while it runs.
func ExampleStore_SetPlan() {
	ctx := context.Background()
	s := faultinject.Wrap(memstore.New(memstore.Options{}), nil)
	defer s.Close()

	s.SetPlan(func(c faultinject.Call) faultinject.Fault {
		if c.Op == faultinject.OpRevision {
			return faultinject.Fault{Err: errors.New("no answer")}
		}
		return faultinject.Fault{}
	})
	_, err := s.Revision(ctx)
	fmt.Println(err)
	s.SetPlan(nil)
	rev, err := s.Revision(ctx)
	fmt.Println(rev, err)
	// Output:
	// no answer
	// 0 <nil>
}
