package watch

import (
	"bytes"
	"sync/atomic"

	"orch.io/controlplane/internal/codec"
)

// Lists are written from blocks: JSON texts of neighbouring objects, side by
// side with commas between, each without apiVersion and kind, which lists tell
// once. A block is the only copy of the texts in it, so it costs no memory, and a
// list that finds its objects in blocks copies nothing.
const (
	blockSize = 256 << 10 // of a block, in bytes, about
	longText  = 16 << 10  // what is written as it is rather than gathered
)

// block holds the texts of some entries. One that is replaced takes its text
// out; when half of a block is unused, the others do so too: blocks hold at most
// twice the bytes in use.
//
// There is no lock. The text of a block is never written again; where an entry's text
// is changes by one atomic step, and who took it out of a block by that counts it out,
// once. An entry that is replaced while it moves in is found by one of the two:
// the replacer marks it as not current before he looks whether it is in a block, the
// mover looks whether it is current after it is in.
type block struct {
	head    []byte // what each text begins with elsewhere, in the place of its brace
	text    []byte
	entries []*Entry     // that were put in
	used    atomic.Int64 // bytes
}

// Joined returns the JSON texts of the entries as the items of a list, without
// apiVersion and kind and with commas between, in pieces. all says that the
// entries are all objects of a range: their texts are gathered in blocks then,
// for the lists to come. The results are shared and must not be modified; own is
// how many bytes of them nobody else keeps.
func Joined(entries []*Entry, all bool) (texts [][]byte, own int) {
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
			if !entries[0].current.Load() {
				own += len(text)
			}
		}
		texts = append(texts, text)
		entries = entries[n:]
	}
	return texts, own
}

// adjacent returns the text of those entries, the first and more, that lie side
// by side in a block, its size, about, and their number. No text: the first one
// is in none.
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

// gather joins the texts of the entries and makes a block of them, unless they
// are old states for the most part: then it is not kept. size is how long the
// text gets, about.
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
		if end[i] = len(b.text); e.current.Load() && bytes.Equal(head, b.head) {
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

// take moves the text of an entry into the block, from wherever it was.
func (b *block) take(e *Entry, in *body) {
	e.body.Swap(in).leave()
	if !e.current.Load() {
		e.leaveBlock(b) // it was replaced meanwhile
	}
}

// leaveBlock gives the entry a text of its own if it lies in the block, nil for
// any.
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

// leave counts a text out of its block, if it is in one.
func (b *body) leave() {
	if b.block == nil {
		return
	}
	n, half := int64(len(b.bytes)+1), b.block.half()
	if left := b.block.used.Add(-n); left < half && left+n >= half { // once
		for _, e := range b.block.entries {
			e.leaveBlock(b.block)
		}
	}
}
