package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/y"
	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/proto"
)

// This file reads tables without Badger, to check them before Badger opens them and to read damaged tables. Badger
// reads its files in its own goroutines, and panics there cannot be recovered. It treats a damaged block as the
// end of its table, and the first damaged entry of a log as the end of the log.

// entry is an entry of a table or of a log. Its slices belong to the reader and are valid only during the call of the
// visitor.
type entry struct {
	key      []byte
	version  uint64
	deleted  bool
	encoding byte
	value    []byte // nil if the value is in the value log
	bits     byte   // metadata of Badger
	stored   []byte // the stored value: the value, or a pointer into the value log
}

// Bits of entry.bits.
const (
	bitDeleted = 1 << 0
	bitPointer = 1 << 1 // the value is in the value log
	bitEnd     = 1 << 7 // marks the end of a transaction; not an entry
)

var errCutOff = errors.New("the file is truncated")

// maxBlock is larger than any block that Badger writes.
const maxBlock = 64 << 20

// badBlock is a damaged block of a table.
type badBlock struct {
	first, next []byte // first keys of this and of the next block; next is nil for the last block
	err         error
}

// readTable reads a table: its index and the blocks that the index names. If visit is not nil, it is called for each
// entry. readTable returns the damaged blocks. It returns an error if the table as a whole cannot be read or
// if visit fails.
func readTable(path string, visit func(entry) error) (bad []badBlock, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the index cannot be read: %v", fault)
		}
	}()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := tableIndex(f, info.Size())
	if err != nil {
		return nil, err
	}
	index := fb.GetRootAsTableIndex(data, 0)
	var packed, plain []byte
	for i := range index.OffsetsLength() {
		block := &fb.BlockOffset{}
		if !index.Offsets(block, i) || int64(block.Offset())+int64(block.Len()) > info.Size() {
			return bad, errCutOff
		}
		packed = slices.Grow(packed[:0], int(block.Len()))[:block.Len()]
		if _, err := f.ReadAt(packed, int64(block.Offset())); err != nil {
			return bad, err
		}
		var fault error
		if plain, fault = unpack(plain, packed); fault != nil {
			b := badBlock{first: userKey(block.KeyBytes()), err: fmt.Errorf("block %d: %w", i, fault)}
			if next := (&fb.BlockOffset{}); i+1 < index.OffsetsLength() && index.Offsets(next, i+1) {
				b.next = userKey(next.KeyBytes())
			}
			bad = append(bad, b)
			continue
		}
		if visit != nil {
			if err := blockEntries(plain, visit); err != nil {
				return bad, err
			}
		}
	}
	return bad, nil
}

// unpack decompresses a block, verifies its checksum and returns its content without the checksum. It uses the
// memory of dst if that is large enough.
func unpack(dst, packed []byte) ([]byte, error) {
	if n, err := s2.DecodedLen(packed); err != nil || n > maxBlock {
		return dst, errors.New("the block cannot be decompressed")
	}
	plain, err := s2.Decode(dst[:cap(dst)], packed)
	if err != nil {
		return dst, fmt.Errorf("the block cannot be decompressed: %w", err)
	}
	if len(plain) < 4 {
		return dst, errCutOff
	}
	body, size := plain[:len(plain)-4], binary.BigEndian.Uint32(plain[len(plain)-4:])
	if int64(size) > int64(len(body)) {
		return dst, errCutOff
	}
	end := len(body) - int(size)
	return body[:end], verify(body[:end], body[end:])
}

var errBlock = errors.New("invalid block")

// blockEntries calls visit for the entries of a block. A block consists of the entries, their offsets, and their
// number. Each entry gives the number of leading bytes that its key shares with the first key of the block.
func blockEntries(b []byte, visit func(entry) error) error {
	if len(b) < 4 {
		return errBlock
	}
	n := int64(binary.BigEndian.Uint32(b[len(b)-4:]))
	end := int64(len(b)) - 4 - 4*n
	if end < 0 {
		return errBlock
	}
	offsets := b[end : len(b)-4]
	var first, key []byte
	for i := range n {
		from, to := int64(binary.NativeEndian.Uint32(offsets[4*i:])), end
		if i+1 < n {
			to = int64(binary.NativeEndian.Uint32(offsets[4*(i+1):]))
		}
		if from+4 > to || to > end {
			return errBlock
		}
		shared, own := int(binary.NativeEndian.Uint16(b[from:])), int64(binary.NativeEndian.Uint16(b[from+2:]))
		if from+4+own > to || shared > len(first) {
			return errBlock
		}
		key = append(append(key[:0], first[:shared]...), b[from+4:from+4+own]...)
		if i == 0 {
			first = slices.Clone(key)
		}
		e, ok := tableEntry(key, b[from+4+own:to])
		if !ok {
			return errBlock
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// tableEntry decodes an entry of a block from its key and the rest of its bytes.
func tableEntry(key, b []byte) (entry, bool) {
	if len(b) < 2 {
		return entry{}, false
	}
	_, n := binary.Uvarint(b[2:])
	if n <= 0 {
		return entry{}, false
	}
	return newEntry(key, b[0], b[1], b[2+n:])
}

// newEntry returns the entry with the given database key; its last 8 bytes are the version.
func newEntry(key []byte, bits, encoding byte, value []byte) (entry, bool) {
	end := len(key) - 8
	if end < 0 {
		return entry{}, false
	}
	e := entry{key: key[:end:end], version: math.MaxUint64 - binary.BigEndian.Uint64(key[end:]), encoding: encoding, bits: bits, stored: value}
	if e.deleted = bits&bitDeleted != 0; !e.deleted && bits&bitPointer == 0 {
		e.value = value
	}
	return e, true
}

// userKey returns a copy of a database key without its version.
func userKey(key []byte) []byte { return slices.Clone(key[:max(0, len(key)-8)]) }

// tableIndex returns the index of a table of end bytes. The table ends with the index, its length, the checksum of
// the index, and the length of the checksum.
func tableIndex(f io.ReaderAt, end int64) ([]byte, error) {
	sized := func() ([]byte, error) {
		size := make([]byte, 4)
		if end < 4 {
			return nil, errCutOff
		}
		if _, err := f.ReadAt(size, end-4); err != nil {
			return nil, err
		}
		end -= 4 + int64(binary.BigEndian.Uint32(size))
		if end < 0 {
			return nil, errCutOff
		}
		b := make([]byte, binary.BigEndian.Uint32(size))
		_, err := f.ReadAt(b, end)
		return b, err
	}
	sum, err := sized()
	if err != nil {
		return nil, err
	}
	index, err := sized()
	if err != nil {
		return nil, err
	}
	if len(index) == 0 {
		return nil, errors.New("the table has no index")
	}
	return index, verify(index, sum)
}

// verify returns an error if sum is not the checksum of data.
func verify(data, sum []byte) error {
	want := &pb.Checksum{}
	if err := proto.Unmarshal(sum, want); err != nil {
		return errors.New("the checksum cannot be read")
	}
	if _, known := pb.Checksum_Algorithm_name[int32(want.Algo)]; !known {
		return fmt.Errorf("unknown checksum algorithm %d", want.Algo)
	}
	return y.VerifyChecksum(data, want)
}
