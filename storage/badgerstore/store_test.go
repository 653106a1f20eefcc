package badgerstore_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/storagetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, dir string) storage.Backend {
	s, err := badgerstore.Open(badgerstore.Options{Dir: dir})
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storage.Backend { return open(t, t.TempDir()) })
}
