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

func TestRun(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storage.Backend { return memstore.New(memstore.Options{}) })
}

// wordy is a store that wraps its errors.
type wordy struct{ storage.Backend }

func (w wordy) Commit(ctx context.Context, ws ...storage.Write) (storage.Revision, error) {
	revision, err := w.Backend.Commit(ctx, ws...)
	if err != nil {
		err = fmt.Errorf("the store of the test: %w", err)
	}
	return revision, err
}

// TestRunAcceptsWrappedErrors checks that a store may wrap the errors of the contract.
func TestRunAcceptsWrappedErrors(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storage.Backend { return wordy{memstore.New(memstore.Options{})} })
}
