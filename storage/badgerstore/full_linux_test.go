package badgerstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestFullDiskAcceptsDeletions checks that a store that has filled its disk accepts the deletion of all
// records, on disks of different sizes and after a restart, and then has space for other writes again.
func TestFullDiskAcceptsDeletions(t *testing.T) {
	for name, c := range map[string]struct {
		size    int64
		leveled bool
	}{"32 MiB": {size: 32}, "60 MiB": {size: 60}, "128 MiB": {size: 128}, "levels": {60, true}} {
		if testing.Short() && c.size != 60 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			size := c.size
			disk := smallDisk(t, size<<20)
			o := Options{Dir: filepath.Join(disk, "store"), Retain: time.Second, leveled: c.leveled}
			s, err := Open(o)
			require.NoError(t, err)
			defer func() { require.NoError(t, s.Close()) }()
			for round := range 2 {
				n := fillStore(t, s, min(20_000, int(size)*300))
				require.Positive(t, n)
				for i := range n {
					_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision})
					require.NoError(t, err, "round %d, deletion %d of %d", round, i, n)
				}
				if round == 0 { // a reopened store finds the same space
					require.NoError(t, s.Close())
					s, err = Open(o)
					require.NoError(t, err)
				}
				require.Eventually(t, func() bool {
					_, err := s.Commit(t.Context(), storage.Write{Key: "new", Value: []byte("x"), Expect: storage.AnyRevision})
					if err != nil {
						require.ErrorIs(t, err, storage.ErrFull)
					}
					return err == nil
				}, time.Minute, 10*time.Millisecond, "the space of the deleted records is not reclaimed")
			}
		})
	}
}

// TestFullDiskWithSmallRecordsAcceptsDeletions uses records that are so small that the tables of their
// deletions take nearly as much space as the records.
func TestFullDiskWithSmallRecordsAcceptsDeletions(t *testing.T) {
	disk := smallDisk(t, 24<<20)
	s, err := Open(Options{Dir: filepath.Join(disk, "store"), Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	const writers = 64
	var taken [writers]int
	each := func(do func(w, i int) bool) {
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := 0; do(w, i); i++ {
				}
			})
		}
		all.Wait()
	}
	value := func(w, i int) []byte {
		v := make([]byte, 64)
		_, _ = rand.NewChaCha8([32]byte{byte(w), byte(i), byte(i >> 8), byte(i >> 16)}).Read(v)
		return v
	}
	each(func(w, i int) bool {
		_, err := s.Commit(context.Background(), storage.Write{Key: fmt.Sprint(i, "/", w), Value: value(w, i)})
		if err == nil {
			taken[w]++
		} else {
			assert.ErrorIs(t, err, storage.ErrFull)
		}
		return err == nil
	})
	each(func(w, i int) bool {
		if i >= taken[w] {
			return false
		}
		_, err := s.Commit(context.Background(), storage.Write{Key: fmt.Sprint(i, "/", w), Expect: storage.AnyRevision})
		return assert.NoError(t, err, "deletion %d of %d", i, taken[w])
	})
	require.Zero(t, s.Stats().Keys)
}

// fillStore creates incompressible records of the given size until the store is full, and returns the number
// of records.
func fillStore(t *testing.T, s *Store, bytes int) int {
	value := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(value)
	refused := 0
	for i := 0; ; {
		_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k", i), Value: append(value, fmt.Sprint(i)...), Expect: storage.AnyRevision})
		switch {
		case err == nil:
			i, refused = i+1, 0
		case !errors.Is(err, storage.ErrFull):
			require.NoError(t, err)
		case refused > 50:
			return i
		default:
			refused++
			time.Sleep(10 * time.Millisecond) // also fill the space that compactions free
		}
	}
}

// TestDeletionsOnDiskFilledByOthers checks that deletions are accepted and other writes are refused if other
// files leave little space on a small disk.
func TestDeletionsOnDiskFilledByOthers(t *testing.T) {
	disk := smallDisk(t, 60<<20)
	s, err := Open(Options{Dir: filepath.Join(disk, "store"), Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	const n = 2000
	for i := range n {
		_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k", i), Value: []byte("x")})
		require.NoError(t, err)
	}
	free, _, _ := diskBytes(disk)
	require.NoError(t, os.WriteFile(filepath.Join(disk, "others"), make([]byte, free-5<<20), 0o600))
	_, err = s.Commit(t.Context(), storage.Write{Key: "more", Value: []byte("x")})
	require.ErrorIs(t, err, storage.ErrFull)
	for i := range n {
		_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision})
		require.NoError(t, err, "deletion %d", i)
	}
}

// TestSpaceOfFewTablesIsReclaimed checks that the space of deleted records is reclaimed even if they are in
// few tables.
func TestSpaceOfFewTablesIsReclaimed(t *testing.T) {
	disk := smallDisk(t, 60<<20)
	s, err := Open(Options{Dir: filepath.Join(disk, "store"), Retain: -1})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	const n = 80
	value := make([]byte, 32<<10)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(value)
	for i := range n {
		_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k", i), Value: append(value, byte(i))})
		require.NoError(t, err)
	}
	write := func() error {
		_, err := s.Commit(t.Context(), storage.Write{Key: "new", Value: []byte("x"), Expect: storage.AnyRevision})
		return err
	}
	others, err := os.Create(filepath.Join(disk, "others"))
	require.NoError(t, err)
	defer others.Close()
	for write() == nil {
		_, err := others.Write(make([]byte, 256<<10))
		require.NoError(t, err)
	}
	require.ErrorIs(t, write(), storage.ErrFull)
	for i := range n {
		_, err := s.Commit(t.Context(), storage.Write{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision})
		require.NoError(t, err)
	}
	newest, err := s.Revision(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Compact(t.Context(), newest))
	require.Eventually(t, func() bool { return write() == nil }, time.Minute, 10*time.Millisecond)
}
