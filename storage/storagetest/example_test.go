package storagetest_test

import (
	"testing"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/storage/storagetest"
)

// The test of a store runs the kit; open returns an empty store of yours.
func ExampleRun() {
	_ = func(t *testing.T) {
		storagetest.Run(t, func(testing.TB) storage.Backend {
			return memstore.New(memstore.Options{})
		})
	}
	// Output:
}
