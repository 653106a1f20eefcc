package storagetest_test

import (
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
