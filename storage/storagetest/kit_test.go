package storagetest_test

import (
	"context"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKit(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storage.Backend { return memstore.New(memstore.Options{}) })
}

// wordy is a store that says where its errors come from.
type wordy struct{ storage.Backend }

func (w wordy) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	revision, err := w.Backend.Commit(ctx, ws...)
	if err != nil {
		err = fmt.Errorf("the store of the test: %w", err)
	}
	return revision, err
}

// TestKitTakesWrappedErrors, which everybody finds with errors.As.
func TestKitTakesWrappedErrors(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storage.Backend { return wordy{memstore.New(memstore.Options{})} })
}
