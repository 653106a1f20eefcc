package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// Encodings of the value of an entry, stored in its user metadata.
//
// If Badger cannot read a value, it returns an empty value, and it does not detect damage in its value log,
// where it stores values above a threshold. Each value therefore has a checksum over key, revision and
// value, and a value that would exceed the threshold is split into pieces.
const (
	encodingPlain  = 0 // the value alone, written by older releases
	encodingSealed = 1 // the value and its checksum
	encodingPieces = 2 // the head of a value in pieces: length, number of pieces, checksum, checksum of the head
	encodingPiece  = 3 // a piece of a value
)

// piecePrefix is the prefix of the keys of pieces. The revision of the value and the number of the piece
// follow. These keys sort after all others.
const piecePrefix = "z"

const (
	sumBytes   = 4
	headBytes  = 8 + 4 + sumBytes + sumBytes
	pieceBytes = 256 << 10
	maxPieces  = MaxValueBytes/minPiece + 1
	minPiece   = 1 << 10
)

// pieceSize returns the maximum size of a piece in a database with the options o.
func pieceSize(o badger.Options) int {
	return int(max(minPiece, min(pieceBytes, o.ValueThreshold/2)))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the checksum of a record.
func checksum(key string, revision storage.Revision, value []byte) uint32 {
	sum := crc32.Checksum(binary.BigEndian.AppendUint64(nil, uint64(revision)), castagnoli)
	sum = crc32.Update(sum, castagnoli, []byte(key))
	return crc32.Update(sum, castagnoli, value)
}

// seal returns the entry of a record. If the value is larger than piece bytes, it also returns the entries of
// its pieces.
func seal(rec storage.Record, piece int) (head *badger.Entry, pieces []*badger.Entry) {
	sum := checksum(rec.Key, rec.Revision, rec.Value)
	if len(rec.Value) <= piece {
		value := append(make([]byte, 0, len(rec.Value)+sumBytes), rec.Value...)
		value = binary.BigEndian.AppendUint32(value, sum)
		return badger.NewEntry(recordKey(rec.Key), value).WithMeta(encodingSealed), nil
	}
	for at := 0; at < len(rec.Value); at += piece {
		part := rec.Value[at:min(at+piece, len(rec.Value))]
		pieces = append(pieces, badger.NewEntry(pieceKey(rec.Revision, len(pieces)), part).WithMeta(encodingPiece))
	}
	value := binary.BigEndian.AppendUint64(make([]byte, 0, headBytes), uint64(len(rec.Value)))
	value = binary.BigEndian.AppendUint32(value, uint32(len(pieces)))
	value = binary.BigEndian.AppendUint32(value, sum)
	value = binary.BigEndian.AppendUint32(value, checksum(rec.Key, rec.Revision, value))
	return badger.NewEntry(recordKey(rec.Key), value).WithMeta(encodingPieces), pieces
}

// pieceKey returns the key of piece i of a value.
func pieceKey(revision storage.Revision, i int) []byte {
	key := binary.BigEndian.AppendUint64([]byte(piecePrefix), uint64(revision))
	return binary.BigEndian.AppendUint32(key, uint32(i))
}

// pieceOf returns the revision and the number of the piece with the given key. It returns false if the key is
// not the key of a piece.
func pieceOf(key []byte) (storage.Revision, int, bool) {
	if len(key) != len(piecePrefix)+12 || string(key[:len(piecePrefix)]) != piecePrefix {
		return 0, 0, false
	}
	key = key[len(piecePrefix):]
	return storage.Revision(binary.BigEndian.Uint64(key)), int(binary.BigEndian.Uint32(key[8:])), true
}

var (
	errChecksum = errors.New("checksum mismatch")
	errNoValue  = errors.New("value is missing")
	errEncoding = errors.New("unknown encoding")
)

// unseal decodes the value of a record from the stored value of its entry. piece returns the content of piece
// i of the value. The result may share memory with stored.
func unseal(key string, revision storage.Revision, encoding byte, stored []byte, piece func(i int) ([]byte, error)) ([]byte, error) {
	switch encoding {
	case encodingPlain:
		return stored, nil
	case encodingSealed:
		end := len(stored) - sumBytes
		if end < 0 {
			return nil, errNoValue
		}
		value := stored[:end:end]
		if checksum(key, revision, value) != binary.BigEndian.Uint32(stored[end:]) {
			return nil, errChecksum
		}
		return value, nil
	case encodingPieces:
		return join(key, revision, stored, piece)
	}
	return nil, errEncoding
}

// join returns a value in pieces, after it verified the checksums of its head and of the value.
func join(key string, revision storage.Revision, head []byte, piece func(i int) ([]byte, error)) ([]byte, error) {
	if len(head) != headBytes {
		return nil, errNoValue
	}
	end := headBytes - sumBytes
	if checksum(key, revision, head[:end]) != binary.BigEndian.Uint32(head[end:]) {
		return nil, errChecksum
	}
	size, n := binary.BigEndian.Uint64(head), binary.BigEndian.Uint32(head[8:])
	if size > MaxValueBytes || n > maxPieces {
		return nil, errEncoding
	}
	value := make([]byte, 0, size)
	for i := range int(n) {
		part, err := piece(i)
		if err != nil {
			return nil, fmt.Errorf("piece %d of %d: %w", i+1, n, err)
		}
		if len(value)+len(part) > int(size) {
			return nil, errChecksum
		}
		value = append(value, part...)
	}
	if len(value) != int(size) || checksum(key, revision, value) != binary.BigEndian.Uint32(head[12:]) {
		return nil, errChecksum
	}
	return value, nil
}

// piecesOf returns the number of pieces of an entry, 0 if its value is not in pieces.
func piecesOf(encoding byte, head []byte) int {
	if encoding != encodingPieces || len(head) != headBytes {
		return 0
	}
	return int(min(binary.BigEndian.Uint32(head[8:]), maxPieces))
}
