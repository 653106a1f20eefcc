package backup_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
	"orch.io/controlplane/storage/backup"
	"orch.io/controlplane/storage/memstore"
)

// slow is a store that takes a millisecond for each record.
type slow struct{ *memstore.Store }

func (s slow) Scan(ctx context.Context, prefix, start string, at storage.Revision) (storage.Revision, iter.Seq2[storage.Record, error], error) {
	at, records, err := s.Store.Scan(ctx, prefix, start, at)
	return at, func(yield func(storage.Record, error) bool) {
		for rec, err := range records {
			time.Sleep(time.Millisecond)
			if !yield(rec, err) {
				return
			}
		}
	}, err
}

// noted returns a function for Options.Progress that records the reports and compares each with the previous one.
func noted(t *testing.T, all *[]backup.Progress) func(backup.Progress) {
	return func(p backup.Progress) {
		assert.GreaterOrEqual(t, p.Left, time.Duration(0))
		if p.Total > 0 {
			assert.LessOrEqual(t, p.Versions, p.Total)
		}
		*all = append(*all, p)
	}
}

// TestProgressFigures checks that backup, verification, restore and copy report total, rate and remaining time.
func TestProgressFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const records = 7_000
		const versions = 2 * records // each is in the history, too
		inner := memstore.New(memstore.Options{})
		defer inner.Close()
		for i := range records {
			_, err := inner.Commit(t.Context(), storage.Write{Key: fmt.Sprintf("a/b/%05d", i), Value: []byte("v")})
			require.NoError(t, err)
		}
		var file bytes.Buffer
		var all []backup.Progress
		_, err := backup.Backup(t.Context(), slow{inner}, &file, backup.Options{Progress: noted(t, &all)})
		require.NoError(t, err)
		var rates int
		for _, p := range all {
			if p.Phase != backup.Copying {
				continue
			}
			assert.InDelta(t, versions, p.Total, 1)
			if p.Rate > 0 {
				rates++
				assert.InDelta(t, float64(p.Total-p.Versions)/p.Rate, p.Left.Seconds(), 0.01)
			}
		}
		assert.Greater(t, rates, 1)

		for name, work := range map[string]func(o backup.Options) error{
			"verify": func(o backup.Options) error {
				_, err := backup.Verify(t.Context(), o, io.MultiReader(bytes.NewReader(file.Bytes())))
				return err
			},
			"restore": func(o backup.Options) error {
				to := memstore.New(memstore.Options{})
				defer to.Close()
				_, err := backup.Restore(t.Context(), to, o, bytes.NewReader(file.Bytes()))
				return err
			},
			"copy": func(o backup.Options) error {
				to := memstore.New(memstore.Options{})
				defer to.Close()
				_, err := backup.Copy(t.Context(), inner, to, o)
				return err
			},
		} {
			all = nil
			require.NoError(t, work(backup.Options{Progress: noted(t, &all)}), name)
			require.NotEmpty(t, all, name)
			for _, p := range all {
				assert.Greater(t, p.Total, int64(records-1), "%s %s", name, p.Phase)
				assert.Less(t, p.Total, int64(versions+1), "%s %s", name, p.Phase)
			}
		}
	})
}
