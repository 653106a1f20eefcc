package badgerstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/storage"
)

// TestWatchCostIsLinear checks that the reads of a watch before its first event do not depend on the age of
// its revision, and that all its reads are proportional to the number of events.
func TestWatchCostIsLinear(t *testing.T) {
	c := &churn{t: t, dir: t.TempDir(), now: map[string]storage.Record{}}
	c.open()
	c.write(rand.New(rand.NewPCG(5, 6)), 10*blockCommits)
	require.NoError(t, c.s.Close())
	for _, reopened := range []bool{false, true} {
		c.open()
		if reopened {
			c.write(rand.New(rand.NewPCG(7, 8)), blockCommits/2)
		}
		for _, from := range []storage.Revision{0, 1, blockCommits, 5*blockCommits + 7, c.s.published() - 1} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			before, first := c.s.stats.reads.Load(), uint64(0)
			after := from
			for commit, err := range c.s.Watch(ctx, "k/", from) {
				require.NoError(t, err)
				if first == 0 {
					first = c.s.stats.reads.Load() - before
				}
				require.Equal(t, []storage.Event{c.events[after]}, commit)
				if after = commit[0].Revision; after == c.s.published() {
					break
				}
			}
			cancel()
			require.LessOrEqual(t, first, uint64(2*replayEvents))
			require.LessOrEqual(t, c.s.stats.reads.Load()-before, uint64(2*(after-from)))
		}
		before := c.s.stats.reads.Load()
		for range c.s.History(t.Context(), "none", 0, c.s.published()) {
			t.Fatal("there is nothing under this prefix")
		}
		require.Equal(t, before, c.s.stats.reads.Load(), "what others wrote is not read")
		require.NoError(t, c.s.Close())
	}
}

// TestWatchWithoutIndexBlocks checks that a watch yields all events if blocks of the index are missing or
// damaged.
func TestWatchWithoutIndexBlocks(t *testing.T) {
	for name, spoil := range map[string]func(*badger.WriteBatch, []byte, []byte) error{
		"missing": func(b *badger.WriteBatch, key, _ []byte) error { return b.DeleteAt(key, blockTombstone) },
		"damaged": func(b *badger.WriteBatch, key, data []byte) error {
			data[len(data)/2] ^= 1
			return b.SetEntryAt(badger.NewEntry(key, data), blockTombstone)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := &churn{t: t, dir: t.TempDir(), now: map[string]storage.Record{}}
			c.open()
			c.write(rand.New(rand.NewPCG(1, 9)), 5*blockCommits)
			txn := c.s.db.NewTransactionAt(1<<62, false)
			batch := c.s.db.NewManagedWriteBatch()
			n := 0
			it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(indexPrefix)})
			for it.Rewind(); it.Valid(); it.Next() {
				if n++; n%2 == 0 || n == 1 {
					value, err := it.Item().ValueCopy(nil)
					require.NoError(t, err)
					require.NoError(t, spoil(batch, it.Item().KeyCopy(nil), value))
				}
			}
			it.Close()
			txn.Discard()
			require.NoError(t, batch.Flush())
			require.Greater(t, n, 3)
			for _, from := range []storage.Revision{0, 3, blockCommits, 2*blockCommits + 1} {
				c.check(from)
			}
			require.NoError(t, c.s.Close())
			c.open()
			c.check(1)
			require.NoError(t, c.s.Close())
		})
	}
}

// TestIndexIsCompacted checks that blocks are deleted together with the history.
func TestIndexIsCompacted(t *testing.T) {
	c := &churn{t: t, dir: t.TempDir(), now: map[string]storage.Record{}}
	c.open()
	defer func() { require.NoError(t, c.s.Close()) }()
	c.write(rand.New(rand.NewPCG(3, 9)), 6*blockCommits)
	floor := storage.Revision(4*blockCommits + 10)
	require.NoError(t, c.s.Compact(t.Context(), floor))
	c.check(floor)
	txn := c.s.db.NewTransactionAt(1<<62, false)
	defer txn.Discard()
	it := txn.NewIterator(badger.IteratorOptions{Prefix: []byte(indexPrefix)})
	defer it.Close()
	it.Rewind()
	require.True(t, it.Valid())
	require.Greater(t, blockEnd(it.Item().Key()), floor)
}

func TestBlockEncoding(t *testing.T) {
	b := block{after: 7, last: 300, commits: []commit{{"a", 8, true, false}, {"", 9, false, true}, {"a/b", 300, false, false}}}
	got, ok := decodeBlock(300, b.encode())
	require.True(t, ok)
	require.Equal(t, b, got)
	data := b.encode()
	for i := range data {
		data[i] ^= 0x10
		_, ok := decodeBlock(300, data)
		require.False(t, ok, fmt.Sprint("byte ", i))
		data[i] ^= 0x10
	}
}

func FuzzBlock(f *testing.F) {
	b := block{after: 7, last: 300, commits: []commit{{"a", 8, true, false}, {"a/b", 300, false, true}}}
	sealed := b.encode()
	f.Add(int64(300), sealed[:len(sealed)-4])
	f.Add(int64(0), []byte{})
	f.Add(int64(300), []byte("\a\x01\x01\x01a\xa4\x02\x80\x00\x00d\x00"))
	f.Fuzz(func(t *testing.T, last int64, data []byte) {
		b, ok := decodeBlock(storage.Revision(last), reseal(data))
		if !ok {
			return
		}
		at := b.after
		for i, c := range b.commits { // all records of a commit have the same revision
			require.GreaterOrEqual(t, c.revision, at)
			require.True(t, i > 0 || c.revision > at)
			at = c.revision
		}
		require.Equal(t, storage.Revision(last), at)
	})
}

// reseal replaces the checksum of data by the correct one, so that the decoder examines the rest.
func reseal(data []byte) []byte {
	return binary.BigEndian.AppendUint32(slices.Clone(data), crc32.ChecksumIEEE(data))
}
