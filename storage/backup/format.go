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

// A file is the magic and blocks. A block has a kind, the length of what is in it, a
// checksum over its number, kind, length and content, and the content. The first one is
// the header, the last one the trailer, those between hold entries; nothing follows.
const (
	magic      = "cpbackup"
	blockHead  = 1 + 4 + 4
	blockBytes = 256 << 10         // a block of entries is written when it has so much
	maxBlock   = 65 << 20          // of entries: of one that is large
	maxText    = 1 << 20           // of header and trailer
	maxKey     = 64 << 10          // of an entry
	maxValue   = 64 << 20          // of an entry
	maxHistory = math.MaxInt64 / 2 // revisions stay below
)

const (
	blockHeader  = 'h'
	blockEntries = 'e'
	blockTrailer = 't'
)

// formatVersion is that of files. A later one that is read differently has another.
const formatVersion = 1

// header is the first record of a file.
type header struct {
	Format   int               `json:"format"`
	Oldest   storage.Revision  `json:"oldest"`
	Since    Position          `json:"since"`
	Versions int64             `json:"versions,omitempty"` // approximate number of versions in the store when the file was begun; 0 if not counted
	Stamps   map[string]string `json:"stamps,omitempty"`
}

// trailer is what is known at the end.
type trailer struct {
	Revision storage.Revision `json:"revision"`
	Keys     int64            `json:"keys"`     // that exist
	Contents sum              `json:"contents"` // of the records that exist, see digest
	Records  sum              `json:"records"`
	Entries  int64            `json:"entries"` // of the file
	ID       string           `json:"id"`      // SHA-256 of all before this block, in hex
}

func (t trailer) digest() digest { return digest{t.Keys, t.Contents, t.Records} }

// entry is a record, a deletion, or the name of a record that an earlier file has.
type entry struct {
	storage.Record
	earlier bool // Value is in an earlier file
}

const (
	entryValue    = 0
	entryDeletion = 1
	entryEarlier  = 2
)

var (
	// ErrDamaged says that a file is no backup, or not whole.
	ErrDamaged = errors.New("the backup cannot be used")
	// ErrNotOnTop says that a backup does not stand on the file before it.
	ErrNotOnTop = errors.New("the backup does not stand on the one before")

	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func unusable(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// blockSum covers the number of the block, so that none can change places.
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
		return nil, fmt.Errorf("the stamps of the store: %w", storage.ErrTooLarge)
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
		return fmt.Errorf("a backup of %.80q with %d bytes: %w", e.Key, len(e.Value), storage.ErrTooLarge)
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

// reader reads a file and trusts nothing in it.
type reader struct {
	from    *bufio.Reader
	hash    hash.Hash
	blocks  uint32
	entries int64
	newest  storage.Revision // of the entries
	buf     []byte           // the content of the block
	rest    []byte           // the entries in it that were not read

	header  header
	trailer *trailer // once it was read, and all is right
}

// newReader reads the header.
func newReader(from io.Reader) (*reader, error) {
	r := &reader{from: bufio.NewReaderSize(from, blockBytes), hash: sha256.New()}
	begin := make([]byte, len(magic))
	if _, err := io.ReadFull(r.from, begin); err != nil {
		return nil, cut(err)
	}
	if string(begin) != magic {
		return nil, unusable("it is no backup")
	}
	r.hash.Write(begin)
	kind, _, err := r.block()
	if err != nil {
		return nil, err
	}
	if kind != blockHeader {
		return nil, unusable("it begins with a block %q", kind)
	}
	if err := strictly(r.buf, &r.header); err != nil {
		return nil, unusable("its header: %w", err)
	}
	h := r.header
	if h.Format != formatVersion {
		return nil, unusable("its format is %d, this release reads %d", h.Format, formatVersion)
	}
	if h.Versions < 0 || h.Oldest < 0 || h.Oldest > maxHistory || h.Since != (Position{}) && !h.Since.valid() {
		return nil, unusable("its header has the revisions %d and %d and %d versions", h.Oldest, h.Since.Revision, h.Versions)
	}
	return r, nil
}

// valid reports whether a file can end there.
func (p Position) valid() bool {
	id, err := hex.DecodeString(p.ID)
	return err == nil && len(id) == sha256.Size && hex.EncodeToString(id) == p.ID && p.Revision >= 0 && p.Revision <= maxHistory
}

func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows")
	}
	return nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return unusable("it is cut off")
	}
	return err
}

// block reads the next block into buf. before is the hash of all before it.
func (r *reader) block() (kind byte, before []byte, err error) {
	var head [blockHead]byte
	if _, err := io.ReadFull(r.from, head[:]); err != nil {
		return 0, nil, cut(err)
	}
	kind = head[0]
	length, limit := binary.BigEndian.Uint32(head[1:]), uint32(maxText)
	if kind == blockEntries {
		limit = maxBlock
	}
	if length > limit {
		return 0, nil, unusable("block %d has %d bytes", r.blocks, length)
	}
	size := int(length)
	r.buf = r.buf[:0]
	for len(r.buf) < size { // in steps, because the length may be made up
		at := len(r.buf)
		r.buf = append(r.buf, make([]byte, min(size-at, blockBytes))...)
		if _, err := io.ReadFull(r.from, r.buf[at:]); err != nil {
			return 0, nil, cut(err)
		}
	}
	if blockSum(r.blocks, head[:5], r.buf) != binary.BigEndian.Uint32(head[5:]) {
		return 0, nil, unusable("the checksum of block %d does not fit", r.blocks)
	}
	r.blocks++
	before = r.hash.Sum(nil)
	r.hash.Write(head[:])
	r.hash.Write(r.buf)
	return kind, before, nil
}

// next returns the next entry, or false at the end of a file that is whole. Its value is
// a copy.
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
			return entry{}, false, unusable("block %d is of the kind %q", r.blocks-1, kind)
		case len(r.buf) == 0:
			return entry{}, false, unusable("block %d is empty", r.blocks-1)
		}
		r.rest = r.buf
	}
	e, n, ok := parseEntry(r.rest)
	if !ok || e.earlier && r.header.Since.Revision < e.Revision {
		return entry{}, false, unusable("block %d has an entry that makes no sense", r.blocks-1)
	}
	r.rest = r.rest[n:]
	r.entries++
	r.newest = max(r.newest, e.Revision)
	return e, true, nil
}

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

// end checks the trailer, before which all has a hash.
func (r *reader) end(before []byte) error {
	t := &trailer{}
	if err := strictly(r.buf, t); err != nil {
		return unusable("its trailer: %w", err)
	}
	switch id := hex.EncodeToString(before); {
	case t.ID != id:
		return unusable("its blocks are not those of one backup")
	case t.Entries != r.entries:
		return unusable("it has %d entries, of which its trailer says %d", r.entries, t.Entries)
	case t.Revision != max(r.header.Oldest, r.newest) || t.Revision < r.header.Since.Revision:
		return unusable("its trailer has the revision %d, its entries end at %d, its history begins at %d, on top of %d",
			t.Revision, r.newest, r.header.Oldest, r.header.Since.Revision)
	}
	if _, err := r.from.ReadByte(); !errors.Is(err, io.EOF) {
		if err != nil {
			return err
		}
		return unusable("something follows its end")
	}
	r.trailer = t
	return nil
}
