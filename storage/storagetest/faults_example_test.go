package storagetest_test

import (
	"testing"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/storage/storagetest"
)

// The tests of a store on a separate database engine call RunFaults. In this example the engine does not fail.
func ExampleRunFaults() {
	_ = func(t *testing.T) {
		store := memstore.New(memstore.Options{})
		defer store.Close()
		failed := storagetest.RunFaults(t, []storage.Backend{store, store}, func(progress func(commits int)) {
			for range 3 {
				progress(100) // meanwhile, kill and restart the engine
			}
		})
		for _, err := range failed {
			t.Error(err)
		}
	}
	// Output:
}
