package openapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"maps"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"

	"orch.io/controlplane/internal/codec"
)

// Document is an encoded and compressed document. It is immutable and safe for concurrent use.
type Document struct {
	json     Text
	hash     string
	protobuf func() Text
}

// JSON returns the document as JSON.
func (d *Document) JSON() Text { return d.json }

// Hash returns a hash of the document. It is the same on every server.
func (d *Document) Hash() string { return d.hash }

// Protobuf returns the document as a gnostic Document message. The first call makes the message.
func (d *Document) Protobuf() Text { return d.protobuf() }

// Text is a compressed text. Documents are kept compressed because they are very repetitive.
type Text struct {
	gzip []byte
	size int
}

// Size returns the length of the text in bytes.
func (t Text) Size() int { return t.size }

// Gzip returns the compressed text. The caller must not modify it.
func (t Text) Gzip() []byte { return t.gzip }

// WriteTo implements io.WriterTo. It writes the uncompressed text.
func (t Text) WriteTo(w io.Writer) (int64, error) {
	r, err := gzip.NewReader(bytes.NewReader(t.gzip))
	if err != nil {
		return 0, err
	}
	return r.WriteTo(w)
}

// Bytes returns the uncompressed text in a new slice.
func (t Text) Bytes() []byte {
	b := bytes.NewBuffer(make([]byte, 0, t.size))
	if _, err := t.WriteTo(b); err != nil {
		return nil // cannot happen: newDocument encoded it
	}
	return b.Bytes()
}

// members is a JSON object with values that are encoded separately. A value of type func() map[string]any is called when
// it is encoded, so that only one such value is in memory at a time.
type members map[string]any

// newDocument encodes root as JSON. encodings are the protobuf messages of its version. m may be nil. If it is not,
// the caller holds m.mu.
func newDocument(root members, encodings messages, m *maker) *Document {
	if m == nil {
		m = &maker{}
	}
	w := newWriter(m)
	w.value(root)
	w.buf = append(w.buf, '\n')
	text := w.end(m)
	return &Document{json: text, hash: hex.EncodeToString(w.sum.Sum(nil)), protobuf: sync.OnceValue(func() Text {
		m.mu.Lock()
		defer m.mu.Unlock()
		w := newWriter(m)
		r, err := gzip.NewReader(bytes.NewReader(text.gzip))
		if err != nil {
			return Text{} // cannot happen: the text was encoded above
		}
		w.buf = encodings.document(r)
		return w.end(m)
	})}
}

// writer encodes and compresses a Text, and computes its hash.
type writer struct {
	buf  []byte // not compressed yet
	text []byte // buffer for the encoding of a value
	out  bytes.Buffer
	zip  *gzip.Writer
	sum  hash.Hash
	size int
}

func newWriter(p *maker) *writer {
	w := &writer{sum: sha256.New()}
	w.zip, _ = p.zippers.Get().(*gzip.Writer)
	if w.zip == nil {
		w.zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	}
	w.zip.Reset(&w.out)
	return w
}

func (w *writer) end(p *maker) Text {
	w.flush()
	_ = w.zip.Close() // cannot fail: writes to memory
	w.zip.Reset(nil)
	p.zippers.Put(w.zip)
	return Text{bytes.Clone(w.out.Bytes()), w.size}
}

// flushAt is the number of encoded bytes after which they are compressed.
const flushAt = 64 << 10

func (w *writer) flush() {
	_, _ = w.zip.Write(w.buf) // cannot fail: writes to memory
	w.sum.Write(w.buf)
	w.size += len(w.buf)
	w.buf = w.buf[:0]
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case members:
		w.members(v)
	case func() map[string]any:
		w.encode(v())
	default:
		w.encode(v)
	}
	if len(w.buf) >= flushAt {
		w.flush()
	}
}

func (w *writer) encode(v any) {
	w.text = codec.EncodeValue(w.text[:0], v)
	w.buf = append(w.buf, escapeYAML(w.text)...)
}

func (w *writer) members(m members) {
	w.buf = append(w.buf, '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			w.buf = append(w.buf, ',')
		}
		w.buf = append(codec.EncodeValue(w.buf, name), ':')
		w.value(m[name])
	}
	w.buf = append(w.buf, '}')
}

// escapeYAML escapes the characters in JSON text that YAML does not allow in a string, or treats as a line break,
// because clients read documents, and values in them, as YAML. The result may be text itself.
func escapeYAML(text []byte) []byte {
	var out []byte // the escaped text up to done
	done := 0
	for i := 0; i < len(text); {
		if text[i] < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if needsEscape(r) {
			out = append(out, text[done:i]...)
			out = append(out, `\u`...)
			for shift := 12; shift >= 0; shift -= 4 {
				out = append(out, "0123456789abcdef"[r>>shift&0xf])
			}
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// needsEscape reports whether a character is allowed in a JSON string but not in a YAML string.
func needsEscape(r rune) bool {
	switch r {
	case '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff':
		return true
	}
	return r >= 0x7f && r < 0xa0
}
