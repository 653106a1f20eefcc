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

// Checks of files that Badger itself makes only after it has created or changed other files.

// checkKeyRegistry checks that the registry of encryption keys can be read. The store uses no encryption, so it is empty.
func (v *survey) checkKeyRegistry() {
	_, err := badger.OpenKeyRegistry(badger.KeyRegistryOptions{Dir: v.dir, ReadOnly: true})
	if err != nil {
		v.fault("%s cannot be read (%w); it holds no data: remove it, and the store creates a new file", badger.KeyRegistryFileName, err)
	}
}

// plainLog reports whether the header of a log names no encryption key. It also returns true if the log is too short
// to have a header or cannot be read.
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

// span is the range of the keys of a table, versions included.
type span struct {
	id          uint64
	first, last []byte
}

// checkLevels reports tables of one level with overlapping keys. In all levels except level 0, Badger searches a key in
// one table only, so it would miss entries.
func (v *survey) checkLevels() {
	levels := make(map[int][]span)
	for _, id := range v.tables {
		if level := v.levels[id]; level > 0 {
			if s, err := tableSpan(v.path(id)); err == nil { // otherwise the survey has a fault already
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
				v.fault("tables %s and %s of level %d overlap at key %q: tables were swapped or are from different times",
					filepath.Base(v.path(a.id)), filepath.Base(v.path(b.id)), level, keyName(b.first))
			}
		}
	}
}

// keyName returns a database key without prefix and version.
func keyName(key []byte) []byte {
	key = userKey(key)
	return key[min(1, len(key)):]
}

// tableSpan returns the first and the last key of a table.
func tableSpan(path string) (s span, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the index cannot be read: %v", fault)
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
