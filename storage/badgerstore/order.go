package badgerstore

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/y"
)

// What the database finds out about its files only after it has made others.

// lookAtKeys reads the list of the keys that files are encrypted with, of which there are none.
func (v *survey) lookAtKeys() {
	_, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{Dir: v.dir, ReadOnly: true})
	if err != nil {
		v.fault("%s cannot be read (%w); it has nothing of this store in it: remove it, and the store makes a new one", badger.KeyRegistryFileName, err)
	}
}

// plainLog reports whether a log says that it is not encrypted, with the number of no key. One that
// is too short for that is none at all.
func plainLog(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return true
	}
	defer f.Close()
	var key [8]byte
	if info, err := f.Stat(); err != nil || info.Size() < logHeader {
		return true
	}
	_, err = io.ReadFull(f, key[:])
	return err != nil || key == [8]byte{}
}

// span is the keys of a table, each with its version.
type span struct {
	id          uint64
	first, last []byte
}

// lookAtLevels finds tables whose keys overlap within a level but the first, where each key is
// looked for in one table alone.
func (v *survey) lookAtLevels() {
	levels := make(map[int][]span)
	for _, id := range v.tables {
		if level := v.levels[id]; level > 0 {
			if s, err := tableSpan(v.path(id)); err == nil { // else there is a fault
				s.id = id
				levels[level] = append(levels[level], s)
			}
		}
	}
	for level, spans := range levels {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Or(y.CompareKeys(a.first, b.first), cmp.Compare(a.id, b.id)) })
		for i := 1; i < len(spans); i++ {
			a, b := spans[i-1], spans[i]
			if y.CompareKeys(a.last, b.first) >= 0 {
				v.fault("tables %s and %s of level %d both have the keys from %q on: one of them is not the file that was written by this name; tables were swapped or are of different times",
					filepath.Base(v.path(a.id)), filepath.Base(v.path(b.id)), level, keyName(b.first))
			}
		}
	}
}

// keyName returns what a key of the database is of, without its kind and version.
func keyName(key []byte) []byte {
	key = userKey(key)
	return key[min(1, len(key)):]
}

// tableSpan returns the first and the last key of a table.
func tableSpan(path string) (s span, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("its index cannot be read: %v", fault)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	data, err := tableIndex(f, info.Size())
	if err != nil {
		return s, err
	}
	index, first, last := fb.GetRootAsTableIndex(data, 0), &fb.BlockOffset{}, &fb.BlockOffset{}
	n := index.OffsetsLength()
	if !index.Offsets(first, 0) || !index.Offsets(last, n-1) || int64(last.Offset())+int64(last.Len()) > info.Size() {
		return s, errCutOff
	}
	s.first = bytes.Clone(first.KeyBytes())
	packed := make([]byte, last.Len())
	if _, err := f.ReadAt(packed, int64(last.Offset())); err != nil {
		return s, err
	}
	plain, err := unpack(nil, packed)
	if err != nil {
		return s, err
	}
	err = blockEntries(plain, func(e entry) error {
		s.last = y.KeyWithTs(e.key, e.version)
		return nil
	})
	return s, err
}
