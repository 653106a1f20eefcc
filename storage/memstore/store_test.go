package memstore_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/memstore"
	"orch.io/controlplane/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(testing.TB) storage.Backend {
		return memstore.New(memstore.Options{})
	})
}

func TestRetentionContract(t *testing.T) {
	storagetest.RunRetained(t, func(_ testing.TB, _ string, keep time.Duration) storage.Backend {
		return memstore.New(memstore.Options{Retain: keep})
	}, false)
}

func TestForkConformance(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storage.Backend {
		s := memstore.New(memstore.Options{})
		t.Cleanup(func() { _ = s.Close() })
		return s.Fork()
	})
}
