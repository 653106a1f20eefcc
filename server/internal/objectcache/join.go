package objectcache

import (
	"bytes"
	"sync/atomic"

	"orch.io/controlplane/internal/codec"
)

// Lists are written from blocks. A block has the JSON texts of neighbouring objects, joined by commas and without
// apiVersion and kind, which a list has only once. The block is the only copy of these texts, so it needs no
// additional memory, and a list of objects in blocks is written without copying.
const (
	blockSize = 256 << 10 // approximate bytes of a block
	longText  = 16 << 10  // texts of this length are not copied into blocks
)

// block holds the texts of several entries. When an entry is replaced, it moves its text out of the block. When half
// of a block is unused, the other entries do so, too, so a block has at most twice the bytes that are in use.
//
// There is no lock. The text of a block is immutable. An entry's body is changed by an atomic swap, and the goroutine
// whose swap moves it out of a block subtracts its size from used, once. If an entry is replaced while it moves into
// a block, one of the two goroutines notices: the first marks the entry as not current and then checks whether it is
// in a block; the second puts it into the block and then checks whether it is current.
type block struct {
	head    []byte // beginning of the whole text of each entry; replaces the brace of its text in the block
	text    []byte
	entries []*Entry     // entries that were put in
	used    atomic.Int64 // bytes of the texts that are still in use
}

// JoinJSON returns the JSON texts of the entries as the items of a list, in pieces: without apiVersion and kind, and
// joined by commas. all reports that the entries are all objects of a range; JoinJSON then puts their texts into
// blocks for later lists. The pieces are shared and must not be modified. own is the number of their bytes that are
// not kept elsewhere.
func JoinJSON(entries []*Entry, all bool) (texts [][]byte, own int) {
	comma, brace := []byte(","), []byte("{")
	for len(entries) > 0 {
		if len(texts) > 0 {
			texts = append(texts, comma)
		}
		text, size, n := adjacent(entries)
		switch {
		case all && size < longText:
			for n < len(entries) && size < blockSize {
				_, next, more := adjacent(entries[n:])
				if next >= longText {
					break
				}
				size += 1 + next
				n += more
			}
			var kept bool
			if text, kept = gather(entries[:n], size); !kept {
				own += len(text)
			}
		case text == nil:
			_, text = codec.CutHead(entries[0].JSON())
			texts = append(texts, brace)
			if entries[0].current.Load() == 0 {
				own += len(text)
			}
		}
		texts = append(texts, text)
		entries = entries[n:]
	}
	return texts, own
}

// adjacent returns the joined text of the longest run of first entries that are adjacent in a block, its approximate
// size, and the number of entries. The text is nil if the first entry is in no block.
func adjacent(entries []*Entry) (text []byte, size, n int) {
	first := entries[0].body.Load()
	size = len(first.bytes)
	switch {
	case !first.spliced:
		return nil, size + spliceRoom, 1
	case first.block == nil:
		return nil, size, 1
	}
	for n = 1; n < len(entries); n++ {
		next := entries[n].body.Load()
		if next.block != first.block || next.at != first.at+size+1 {
			break
		}
		size += 1 + len(next.bytes)
	}
	return first.block.text[first.at : first.at+size : first.at+size], size, n
}

// gather joins the texts of the entries into a block. The block is not kept if most of the
// entries are not current. size is the approximate size of the text.
func gather(entries []*Entry, size int) (text []byte, kept bool) {
	b := &block{text: make([]byte, 0, size)}
	end := make([]int, len(entries))
	for i, e := range entries {
		if i > 0 {
			b.text = append(b.text, ',')
		}
		from := len(b.text)
		var head []byte
		b.text, head = e.body.Load().appendItem(b.text, e.revision)
		if i == 0 {
			b.head = bytes.Clone(head)
		}
		if end[i] = len(b.text); e.current.Load() == 1 && bytes.Equal(head, b.head) {
			b.entries = append(b.entries, e)
			b.used.Add(int64(end[i] - from + 1))
		}
	}
	if b.used.Load() < b.half() {
		return b.text, false
	}
	at, left := 0, b.entries
	for i, e := range entries {
		if len(left) > 0 && left[0] == e {
			left = left[1:]
			b.take(e, &body{bytes: b.text[at:end[i]:end[i]], spliced: true, block: b, at: at})
		}
		at = end[i] + 1
	}
	return b.text, true
}

func (b *block) half() int64 { return int64(len(b.text) / 2) }

// take moves the text of an entry into the block.
func (b *block) take(e *Entry, in *body) {
	e.body.Swap(in).leave()
	if e.current.Load() == 0 {
		e.leaveBlock(b) // it was replaced meanwhile
	}
}

// leaveBlock moves the text of the entry out of the block from, or out of any block if from is nil.
func (e *Entry) leaveBlock(from *block) {
	for {
		b := e.body.Load()
		if b.block == nil || from != nil && b.block != from {
			return
		}
		if e.body.CompareAndSwap(b, &body{bytes: b.text(), spliced: true}) {
			b.leave()
			return
		}
	}
}

// leave subtracts a text from the used bytes of its block, if it is in one.
func (b *body) leave() {
	if b.block == nil {
		return
	}
	n, half := int64(len(b.bytes)+1), b.block.half()
	if left := b.block.used.Add(-n); left < half && left+n >= half { // true only once for a block
		for _, e := range b.block.entries {
			e.leaveBlock(b.block)
		}
	}
}
