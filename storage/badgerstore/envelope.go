package badgerstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/dgraph-io/badger/v4"

	"orch.io/controlplane/storage"
)

// What the value of an entry is, kept beside it. The database answers a value
// that it cannot read with none at all, and values above its threshold it keeps
// in a log whose damages it does not find. So each value has a checksum of its
// own, over key and revision too, and none reaches the threshold: a larger one
// is kept in pieces.
const (
	formPlain  = 0 // the value alone, as older releases wrote it
	formSealed = 1 // the value and its checksum
	formPieces = 2 // length, number of pieces and checksum; the value is in the pieces
	formPiece  = 3 // a part of a value
)

// piecePrefix begins the keys of pieces, before the revision that wrote them and
// their number. They sort behind everything else.
const piecePrefix = "z"

const (
	sumBytes   = 4
	headBytes  = 8 + 4 + sumBytes + sumBytes
	pieceBytes = 256 << 10
	maxPieces  = MaxValueBytes/minPiece + 1
	minPiece   = 1 << 10
)

// pieceSize is the size of the pieces with the given settings.
func pieceSize(o badger.Options) int {
	return int(max(minPiece, min(pieceBytes, o.ValueThreshold/2)))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is over everything that makes out a record.
func checksum(key string, revision storage.Revision, value []byte) uint32 {
	sum := crc32.Checksum(binary.BigEndian.AppendUint64(nil, uint64(revision)), castagnoli)
	sum = crc32.Update(sum, castagnoli, []byte(key))
	return crc32.Update(sum, castagnoli, value)
}

// seal returns the entry of a record and its pieces, if it needs any.
func seal(rec storage.Record, piece int) (head *badger.Entry, pieces []*badger.Entry) {
	sum := checksum(rec.Key, rec.Revision, rec.Value)
	if len(rec.Value) <= piece {
		value := append(make([]byte, 0, len(rec.Value)+sumBytes), rec.Value...)
		value = binary.BigEndian.AppendUint32(value, sum)
		return badger.NewEntry(recordKey(rec.Key), value).WithMeta(formSealed), nil
	}
	for at := 0; at < len(rec.Value); at += piece {
		part := rec.Value[at:min(at+piece, len(rec.Value))]
		pieces = append(pieces, badger.NewEntry(pieceKey(rec.Revision, len(pieces)), part).WithMeta(formPiece))
	}
	value := binary.BigEndian.AppendUint64(make([]byte, 0, headBytes), uint64(len(rec.Value)))
	value = binary.BigEndian.AppendUint32(value, uint32(len(pieces)))
	value = binary.BigEndian.AppendUint32(value, sum)
	value = binary.BigEndian.AppendUint32(value, checksum(rec.Key, rec.Revision, value))
	return badger.NewEntry(recordKey(rec.Key), value).WithMeta(formPieces), pieces
}

func pieceKey(revision storage.Revision, i int) []byte {
	key := binary.BigEndian.AppendUint64([]byte(piecePrefix), uint64(revision))
	return binary.BigEndian.AppendUint32(key, uint32(i))
}

// pieceOf returns the revision that a piece belongs to, and its number.
func pieceOf(key []byte) (storage.Revision, int, bool) {
	if len(key) != len(piecePrefix)+12 || string(key[:len(piecePrefix)]) != piecePrefix {
		return 0, 0, false
	}
	key = key[len(piecePrefix):]
	return storage.Revision(binary.BigEndian.Uint64(key)), int(binary.BigEndian.Uint32(key[8:])), true
}

var (
	errChecksum = errors.New("its checksum does not fit")
	errNoValue  = errors.New("its value is gone")
	errForm     = errors.New("its form is unknown")
)

// unseal returns the value of a record from the value of its entry. piece
// returns the value of a piece.
func unseal(key string, revision storage.Revision, form byte, stored []byte, piece func(i int) ([]byte, error)) ([]byte, error) {
	switch form {
	case formPlain:
		return stored, nil
	case formSealed:
		end := len(stored) - sumBytes
		if end < 0 {
			return nil, errNoValue
		}
		value := stored[:end:end]
		if checksum(key, revision, value) != binary.BigEndian.Uint32(stored[end:]) {
			return nil, errChecksum
		}
		return value, nil
	case formPieces:
		return join(key, revision, stored, piece)
	}
	return nil, errForm
}

// join puts the pieces of a value together.
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
		return nil, errForm
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

// piecesOf returns how many pieces the value of an entry has.
func piecesOf(form byte, head []byte) int {
	if form != formPieces || len(head) != headBytes {
		return 0
	}
	return int(min(binary.BigEndian.Uint32(head[8:]), maxPieces))
}
