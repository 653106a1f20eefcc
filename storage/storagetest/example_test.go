package storagetest_test

import (
	"testing"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/storage/storagetest"
)

// The tests of a store call Run with a function that returns an empty store.
func ExampleRun() {
	_ = func(t *testing.T) {
		storagetest.Run(t, func(testing.TB) storage.Backend {
			return memstore.New(memstore.Options{})
		})
	}
	// Output:
}
