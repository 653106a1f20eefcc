package storagetest_test

import (
	"testing"
	"time"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/storagetest"
)

// The tests of a store in a directory also run RunDurable and RunRetained.
func ExampleRunDurable() {
	_ = func(t *testing.T) {
		var keeping storagetest.OpenRetaining = func(t testing.TB, dir string, keep time.Duration) storage.Backend {
			store, err := badgerstore.Open(badgerstore.Options{Dir: dir, Retain: keep})
			if err != nil {
				t.Fatal(err)
			}
			return store
		}
		var forever storagetest.OpenDir = func(t testing.TB, dir string) storage.Backend { return keeping(t, dir, -1) }
		storagetest.RunDurable(t, forever)
		storagetest.RunRetained(t, keeping, true)
	}
	// Output:
}
