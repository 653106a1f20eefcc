package etcdstore_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/etcdstore/etcdtest"
	"orch.io/controlplane/storage/memstore"
)

// TestCopyAndBackupToAndFromEtcd: a copy into etcd and back, and a backup of etcd, preserve all records
// and stamps. Records that come from etcd have their revisions there.
func TestCopyAndBackupToAndFromEtcd(t *testing.T) {
	other := func() *memstore.Store {
		s := memstore.New(memstore.Options{Retain: -1, MaxEvents: -1, MaxBytes: -1})
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	a := other()
	_, err := a.Stamp(t.Context(), "names", "x")
	require.NoError(t, err)
	for i := range 300 {
		_, err := a.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k", i%200), Value: fmt.Appendf(nil, "%d", i), Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	s := open(t, etcdtest.Start(t), "/moved")
	defer s.Close()
	report, err := backup.Copy(t.Context(), a, s, backup.Options{})
	require.NoError(t, err)
	require.False(t, report.RevisionsKept)
	at, err := s.Commit(t.Context(), storage.Write{Key: "later", Value: []byte("x")})
	require.NoError(t, err)
	require.Greater(t, at, report.Revision)

	var file bytes.Buffer
	_, err = backup.Backup(t.Context(), s, &file, backup.Options{})
	require.NoError(t, err)
	copied, restored := other(), other()
	_, err = backup.Copy(t.Context(), s, copied, backup.Options{})
	require.NoError(t, err)
	_, err = backup.Restore(t.Context(), restored, backup.Options{}, &file)
	require.NoError(t, err)
	for _, b := range []*memstore.Store{copied, restored} {
		stamps, err := b.Stamps(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]string{"names": "x"}, stamps)
		_, records, err := b.Scan(t.Context(), "", "", 0)
		require.NoError(t, err)
		keys := 0
		for rec, err := range records {
			require.NoError(t, err)
			have, err := s.Get(t.Context(), rec.Key, 0)
			require.NoError(t, err)
			require.Equal(t, have, rec)
			keys++
		}
		require.Equal(t, 201, keys)
	}
}
