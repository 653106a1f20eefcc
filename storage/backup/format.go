package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"

	"orch.io/controlplane/storage"
)

// A file consists of the magic and blocks. A block consists of its kind, the length of its content, a checksum over its
// number, kind, length and content, and the content. The first block is the header, the last block the trailer, and the
// blocks between them contain entries. Nothing follows the trailer.
const (
	magic      = "cpbackup"
	blockHead  = 1 + 4 + 4
	blockBytes = 256 << 10         // a block of entries is written when it has this size
	maxBlock   = 65 << 20          // maximum size of a block of entries, which may be one large entry
	maxText    = 1 << 20           // maximum size of header and trailer
	maxKey     = 64 << 10          // maximum length of a key
	maxValue   = 64 << 20          // maximum length of a value
	maxHistory = math.MaxInt64 / 2 // maximum revision
)

const (
	blockHeader  = 'h'
	blockEntries = 'e'
	blockTrailer = 't'
)

// formatVersion is the version of the file format. An incompatible change of the format must increase it.
const formatVersion = 1

// header is the content of the first block.
type header struct {
	Format   int               `json:"format"`
	Oldest   storage.Revision  `json:"oldest"`
	Since    Position          `json:"since"`
	Versions int64             `json:"versions,omitempty"` // approximate number of versions in the store when the file was begun; 0 if not counted
	Stamps   map[string]string `json:"stamps,omitempty"`
}

// trailer is the content of the last block.
type trailer struct {
	Revision storage.Revision `json:"revision"`
	Keys     int64            `json:"keys"`     // number of existing keys
	Contents sum              `json:"contents"` // digest of the existing records
	Records  sum              `json:"records"`
	Entries  int64            `json:"entries"` // number of entries in the file
	ID       string           `json:"id"`      // SHA-256 of the file before this block, in hex
}

func (t trailer) digest() digest { return digest{t.Keys, t.Contents, t.Records} }

// entry is a record, a deletion, or a reference to a record in an earlier file.
type entry struct {
	storage.Record
	earlier bool // the value is in an earlier file
}

const (
	entryValue    = 0
	entryDeletion = 1
	entryEarlier  = 2
)

var (
	// ErrDamaged is returned if a file is not a backup, or is incomplete or damaged.
	ErrDamaged = errors.New("damaged backup")
	// ErrWrongBase is returned if an incremental backup is not based on the previous file.
	ErrWrongBase = errors.New("the backup is not based on the previous backup")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// damaged returns an ErrDamaged.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// blockSum returns the checksum of a block. It includes the number of the block, so that swapped blocks are detected.
func blockSum(number uint32, head, content []byte) uint32 {
	sum := crc32.Checksum(binary.BigEndian.AppendUint32(nil, number), castagnoli)
	sum = crc32.Update(sum, castagnoli, head)
	return crc32.Update(sum, castagnoli, content)
}

// writer writes a file.
type writer struct {
	to      io.Writer
	hash    hash.Hash
	blocks  uint32
	entries int64
	buf     []byte
}

func newWriter(to io.Writer, h header) (*writer, error) {
	w := &writer{to: to, hash: sha256.New()}
	if err := w.write([]byte(magic)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("stamps of the store: %w", storage.ErrTooLarge)
	}
	return w, w.block(blockHeader, text)
}

func (w *writer) write(b []byte) error {
	w.hash.Write(b)
	_, err := w.to.Write(b)
	return err
}

func (w *writer) block(kind byte, content []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(content)))
	head = binary.BigEndian.AppendUint32(head, blockSum(w.blocks, head, content))
	w.blocks++
	if err := w.write(head); err != nil {
		return err
	}
	return w.write(content)
}

func (w *writer) entry(e entry) error {
	if len(e.Key) > maxKey || len(e.Value) > maxValue {
		return fmt.Errorf("record %.80q with %d bytes: %w", e.Key, len(e.Value), storage.ErrTooLarge)
	}
	kind := byte(entryValue)
	switch {
	case e.earlier:
		kind = entryEarlier
	case e.Value == nil:
		kind = entryDeletion
	}
	w.buf = append(w.buf, kind)
	w.buf = binary.AppendUvarint(w.buf, uint64(e.Revision))
	w.buf = binary.AppendUvarint(w.buf, uint64(len(e.Key)))
	w.buf = append(w.buf, e.Key...)
	if kind == entryValue {
		w.buf = binary.AppendUvarint(w.buf, uint64(len(e.Value)))
		w.buf = append(w.buf, e.Value...)
	}
	w.entries++
	if len(w.buf) < blockBytes {
		return nil
	}
	return w.flush()
}

func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.block(blockEntries, w.buf)
	w.buf = w.buf[:0]
	return err
}

// end writes the trailer and returns the hash of the file.
func (w *writer) end(revision storage.Revision, now digest) (id string, err error) {
	if err := w.flush(); err != nil {
		return "", err
	}
	t := trailer{Revision: revision, Keys: now.keys, Contents: now.contents, Records: now.records, Entries: w.entries}
	t.ID = hex.EncodeToString(w.hash.Sum(nil))
	text, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	return t.ID, w.block(blockTrailer, text)
}

// reader reads a file. The content of the file is not trusted.
type reader struct {
	from    *bufio.Reader
	hash    hash.Hash
	blocks  uint32
	entries int64
	newest  storage.Revision // newest revision of the entries
	buf     []byte           // content of the current block
	rest    []byte           // entries in buf that were not read yet

	header  header
	trailer *trailer // set when the end of a valid file was read
}

// newReader returns a reader after it has read the header.
func newReader(from io.Reader) (*reader, error) {
	r := &reader{from: bufio.NewReaderSize(from, blockBytes), hash: sha256.New()}
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(r.from, begin); err != nil {
		return nil, truncated(err)
	}
	if string(begin) != magic {
		return nil, damaged("the file is not a backup")
	}
	r.hash.Write(begin)
	kind, _, err := r.block()
	if err != nil {
		return nil, err
	}
	if kind != blockHeader {
		return nil, damaged("the first block has the kind %q", kind)
	}
	if err := decodeStrict(r.buf, &r.header); err != nil {
		return nil, damaged("header: %w", err)
	}
	h := r.header
	if h.Format != formatVersion {
		return nil, damaged("unknown format %d: this release reads format %d", h.Format, formatVersion)
	}
	if h.Versions < 0 || h.Oldest < 0 || h.Oldest > maxHistory || h.Since != (Position{}) && !h.Since.valid() {
		return nil, damaged("invalid header: oldest revision %d, base revision %d, %d versions", h.Oldest, h.Since.Revision, h.Versions)
	}
	return r, nil
}

// valid reports whether p can be the position of a backup.
func (p Position) valid() bool {
	id, err := hex.DecodeString(p.ID)
	return err == nil && len(id) == sha256.Size && hex.EncodeToString(id) == p.ID && p.Revision >= 0 && p.Revision <= maxHistory
}

// decodeStrict decodes JSON and rejects unknown fields and trailing data.
func decodeStrict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the JSON value")
	}
	return nil
}

// truncated returns ErrDamaged if err is the end of the file, and err otherwise.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged("the file is truncated")
	}
	return err
}

// block reads the next block into r.buf. before is the hash of the file before the block.
func (r *reader) block() (kind byte, before []byte, err error) {
	var head [blockHead]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return 0, nil, truncated(err)
	}
	kind = head[0]
	length, limit := binary.BigEndian.Uint32(head[1:]), uint32(maxText)
	if kind == blockEntries {
		limit = maxBlock
	}
	if length > limit {
		return 0, nil, damaged("block %d has %d bytes", r.blocks, length)
	}
	size := int(length)
	r.buf = r.buf[:0]
	for len(r.buf) < size { // in steps, because a forged length may be huge
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, min(size-at, blockBytes))...)
		if _, err := io.ReadFull(r.from, r.buf[at:]); err != nil {
			return 0, nil, truncated(err)
		}
	}
	if blockSum(r.blocks, head[:5], r.buf) != binary.BigEndian.Uint32(head[5:]) {
		return 0, nil, damaged("checksum mismatch in block %d", r.blocks)
	}
	r.blocks++
	before = r.hash.Sum(nil)
	r.hash.Write(head[:])
	r.hash.Write(r.buf)
	return kind, before, nil
}

// next returns the next entry, or false at the end of a valid file. The caller owns the value of the entry.
func (r *reader) next() (e entry, ok bool, err error) {
	for len(r.rest) == 0 {
		if r.trailer != nil {
			return entry{}, false, nil
		}
		kind, before, err := r.block()
		switch {
		case err != nil:
			return entry{}, false, err
		case kind == blockTrailer:
			return entry{}, false, r.end(before)
		case kind != blockEntries:
			return entry{}, false, damaged("block %d has the unknown kind %q", r.blocks-1, kind)
		case len(r.buf) == 0:
			return entry{}, false, damaged("block %d is empty", r.blocks-1)
		}
		r.rest = r.buf
	}
	e, n, ok := parseEntry(r.rest)
	if !ok || e.earlier && r.header.Since.Revision < e.Revision {
		return entry{}, false, damaged("block %d has an invalid entry", r.blocks-1)
	}
	r.rest = r.rest[n:]
	r.entries++
	r.newest = max(r.newest, e.Revision)
	return e, true, nil
}

// parseEntry parses the entry at the beginning of b, which must not be empty, and returns its length.
func parseEntry(b []byte) (e entry, n int, ok bool) {
	from := len(b)
	number := func(limit uint64) uint64 {
		v, size := binary.Uvarint(b)
		if size <= 0 || v > limit {
			ok = false
			return 0
		}
		b = b[size:]
		return v
	}
	take := func(n uint64) []byte {
		if !ok || n > uint64(len(b)) {
			ok = false
			return nil
		}
		part := b[:n]
		b = b[n:]
		return part
	}
	kind := b[0]
	b, ok = b[1:], kind <= entryEarlier
	e.Revision = storage.Revision(number(maxHistory))
	e.Key = string(take(number(maxKey)))
	e.earlier = kind == entryEarlier
	if kind == entryValue {
		e.Value = append([]byte{}, take(number(maxValue))...)
	}
	return e, from - len(b), ok && e.Revision > 0
}

// end checks the trailer in r.buf. before is the hash of the file before the trailer.
func (r *reader) end(before []byte) error {
	t := &trailer{}
	if err := decodeStrict(r.buf, t); err != nil {
		return damaged("trailer: %w", err)
	}
	switch id := hex.EncodeToString(before); {
	case t.ID != id:
		return damaged("the hash in the trailer does not match: the blocks are not from one backup")
	case t.Entries != r.entries:
		return damaged("the file has %d entries, the trailer says %d", r.entries, t.Entries)
	case t.Revision != max(r.header.Oldest, r.newest) || t.Revision < r.header.Since.Revision:
		return damaged("inconsistent revisions: trailer %d, newest entry %d, oldest revision %d, base %d",
			t.Revision, r.newest, r.header.Oldest, r.header.Since.Revision)
	}
	if _, err := r.from.ReadByte(); !errors.Is(err, io.EOF) {
		if err != nil {
			return err
		}
		return damaged("unexpected data after the trailer")
	}
	r.trailer = t
	return nil
}
