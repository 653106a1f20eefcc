package badgerstore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestStraysStayWhileTheyAreRead: the tables that a compaction replaced are not in the list of the database, but a read
// that began before the compaction uses them. To truncate one would end the process with a SIGBUS.
func TestStraysStayWhileTheyAreRead(t *testing.T) {
	s, err := Open(Options{Dir: t.TempDir(), Retain: -1, memTable: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	value, random := make([]byte, 20<<10), rand.NewChaCha8([32]byte{})
	write := func() {
		for i := range 200 {
			_, _ = random.Read(value)
			_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprintf("%06d", i), Value: value, Expect: storage.AnyRevision})
			require.NoError(t, err)
		}
	}
	write()
	s.reads.RLock()
	txn := s.db.NewTransactionAt(uint64(s.published()), false)
	records := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(recordPrefix)})
	records.Rewind()
	write()
	require.NoError(t, s.db.Flatten(1))
	require.ErrorIs(t, s.removeStrays(), errReading)
	read := 0
	for ; records.Valid(); records.Next() {
		_, err := records.Item().ValueCopy(nil)
		require.NoError(t, err)
		read++
	}
	require.Equal(t, 200, read)
	records.Close()
	txn.Discard()
	s.reads.RUnlock()
	require.NoError(t, s.removeStrays())
}
