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

// Document is one document, encoded and compressed. It never changes and is safe for
// concurrent use.
type Document struct {
	json     Text
	hash     string
	protobuf func() Text
}

// JSON returns the document as JSON.
func (d *Document) JSON() Text { return d.json }

// Hash returns a word that is the same for the same document, on every server.
func (d *Document) Hash() string { return d.hash }

// Protobuf returns the document as a gnostic Document message, made on the
// first call.
func (d *Document) Protobuf() Text { return d.protobuf() }

// Text is a text that is kept compressed: documents say the same over and over.
type Text struct {
	gzip []byte
	size int
}

// Size returns the length of the text in bytes.
func (t Text) Size() int { return t.size }

// Gzip returns the text as it is kept. The caller must not change it.
func (t Text) Gzip() []byte { return t.gzip }

// WriteTo writes the text. It implements io.WriterTo.
func (t Text) WriteTo(w io.Writer) (int64, error) {
	r, err := gzip.NewReader(bytes.NewReader(t.gzip))
	if err != nil {
		return 0, err
	}
	return r.WriteTo(w)
}

// Bytes returns the text, the caller's own.
func (t Text) Bytes() []byte {
	b := bytes.NewBuffer(make([]byte, 0, t.size))
	if _, err := t.WriteTo(b); err != nil {
		return nil // it is our own encoding, in memory
	}
	return b.Bytes()
}

// members are a part of a document whose values are encoded one by one. One that is a
// func() map[string]any is made for that alone.
type members map[string]any

func newDocument(root members, form messages, made *press) *Document {
	if made == nil {
		made = &press{}
	}
	w := newWriter(made)
	w.value(root)
	w.buf = append(w.buf, '\n')
	text := w.end(made)
	return &Document{json: text, hash: hex.EncodeToString(w.sum.Sum(nil)), protobuf: sync.OnceValue(func() Text {
		made.mu.Lock()
		defer made.mu.Unlock()
		w := newWriter(made)
		r, err := gzip.NewReader(bytes.NewReader(text.gzip))
		if err != nil {
			return Text{} // it is our own encoding, in memory
		}
		w.buf = form.document(r)
		return w.end(made)
	})}
}

// writer writes a Text.
type writer struct {
	buf  []byte // what is to be compressed next
	text []byte // of one value
	out  bytes.Buffer
	zip  *gzip.Writer
	sum  hash.Hash
	size int
}

func newWriter(p *press) *writer {
	w := &writer{sum: sha256.New()}
	w.zip, _ = p.zippers.Get().(*gzip.Writer)
	if w.zip == nil {
		w.zip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is one of its own
	}
	w.zip.Reset(&w.out)
	return w
}

func (w *writer) end(p *press) Text {
	w.flush()
	_ = w.zip.Close() // memory takes all
	w.zip.Reset(nil)
	p.zippers.Put(w.zip)
	return Text{bytes.Clone(w.out.Bytes()), w.size}
}

// flushAt is how much is encoded before it is compressed, in bytes.
const flushAt = 64 << 10

func (w *writer) flush() {
	_, _ = w.zip.Write(w.buf) // memory takes all
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

// escapeYAML escapes in JSON text what YAML does not allow in a string or
// takes for the end of a line: clients read documents, and values in them, as YAML.
func escapeYAML(text []byte) []byte {
	var out []byte // text up to done, escaped
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

// needsEscape reports whether a character in a string of JSON is none in one of YAML.
func needsEscape(r rune) bool {
	switch r {
	case '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff':
		return true
	}
	return r >= 0x7f && r < 0xa0
}
