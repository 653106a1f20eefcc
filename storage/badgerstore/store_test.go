package badgerstore_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/badgerstore"
	"orch.io/controlplane/storage/storagetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		fmt.Fprintln(os.Stderr, runChild(dir))
		os.Exit(1)
	}
	if dir := os.Getenv(fillChild); dir != "" {
		if err := checkFilled(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, dir string) storage.Backend {
	s, err := badgerstore.Open(badgerstore.Options{Dir: dir, Retain: -1})
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storage.Backend { return open(t, t.TempDir()) })
}

func TestRetentionContract(t *testing.T) {
	storagetest.RunRetained(t, func(t testing.TB, dir string, keep time.Duration) storage.Backend {
		s, err := badgerstore.Open(badgerstore.Options{Dir: dir, Retain: keep})
		require.NoError(t, err)
		return s
	}, true)
}

func TestDurabilityContract(t *testing.T) { storagetest.RunDurable(t, open) }
