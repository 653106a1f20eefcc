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

// The database reads its files in goroutines whose panics nobody can catch, it
// takes a block of a table that it cannot read for the end of the table, and the
// first entry of a log that it cannot read for the end of the log. So the files
// are read here, before it and beside it.

// entry is one entry of a table or of a log. Its slices are the reader's.
type entry struct {
	key     []byte
	version uint64
	deleted bool
	form    byte
	value   []byte // nil if it is kept in the log of values
	bits    byte   // as the database has them
	stored  []byte // as the database has it
}

// Bits that the database keeps with an entry.
const (
	bitDeleted = 1 << 0
	bitPointer = 1 << 1
	bitEnd     = 1 << 7 // of a transaction, no entry
)

var errCutOff = errors.New("it is cut off")

// maxBlock is far beyond what the database makes of the largest inline value.
const maxBlock = 64 << 20

// badBlock is a block of a table that cannot be read.
type badBlock struct {
	first, next []byte // keys that it begins with, and the block after it; nil: the table's end
	err         error
}

// readTable checks the index at the end of a table and the blocks that the index
// names. visit, if there is one, gets their entries. It returns the blocks that
// cannot be read; an error says that the table as a whole cannot be.
func readTable(path string, visit func(entry) error) (bad []badBlock, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("its index cannot be read: %v", fault)
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

// unpack returns what is in a block, in dst if there is room, without its checksum.
func unpack(dst, packed []byte) ([]byte, error) {
	if n, err := s2.DecodedLen(packed); err != nil || n > maxBlock {
		return dst, errors.New("it cannot be unpacked")
	}
	plain, err := s2.Decode(dst[:cap(dst)], packed)
	if err != nil {
		return dst, fmt.Errorf("it cannot be unpacked: %w", err)
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

var errBlock = errors.New("a block is not what its checksum says")

// blockEntries visits the entries of a block: entries, where each begins, how
// many there are. A key begins with as many bytes of the first one as it says.
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

// newEntry takes the version off the end of a key.
func newEntry(key []byte, bits, form byte, value []byte) (entry, bool) {
	end := len(key) - 8
	if end < 0 {
		return entry{}, false
	}
	e := entry{key: key[:end:end], version: math.MaxUint64 - binary.BigEndian.Uint64(key[end:]), form: form, bits: bits, stored: value}
	if e.deleted = bits&bitDeleted != 0; !e.deleted && bits&bitPointer == 0 {
		e.value = value
	}
	return e, true
}

func userKey(key []byte) []byte { return slices.Clone(key[:max(0, len(key)-8)]) }

// tableIndex returns the index at the end of a table, in front of its length,
// its checksum and the length of that.
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
		return nil, errors.New("it has no index")
	}
	return index, verify(index, sum)
}

func verify(data, sum []byte) error {
	want := &pb.Checksum{}
	if err := proto.Unmarshal(sum, want); err != nil {
		return errors.New("its checksum cannot be read")
	}
	if _, known := pb.Checksum_Algorithm_name[int32(want.Algo)]; !known {
		return fmt.Errorf("its checksum is of an unknown kind %d", want.Algo)
	}
	return y.VerifyChecksum(data, want)
}
