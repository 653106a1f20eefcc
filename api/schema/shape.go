package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"sync"
)

// Shape returns a fingerprint of what Conform and FillDefaults make of an object: two
// schemas of one shape read every stored object alike. What an object must satisfy to be
// written, and what people read of the schema, is no part of it.
func (s *Schema) Shape() string {
	if s == nil {
		return "any"
	}
	own, below := flat(nil, s, nil)
	sum := sha256.New()
	sum.Write(own)
	for _, st := range below {
		sum.Write([]byte(st.shape()))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// shapes are those of a Struct, found when they are first asked for: a schema that is
// asked is built.
type shapes struct {
	own, whole sync.Once
	flat       []byte    // of the fields themselves
	below      []*Struct // that the fields lead to, in order
	text       string    // of the struct with all that it leads to
}

func (s *Struct) flat() ([]byte, []*Struct) {
	k := &s.shapes
	k.own.Do(func() {
		text := append(strconv.AppendBool(make([]byte, 0, 64*len(s.Fields)), s.Canonical()), '{')
		fields := slices.Clone(s.Fields)
		slices.SortFunc(fields, func(a, b *Field) int { return cmp.Compare(a.Name, b.Name) })
		for _, f := range fields {
			text = strconv.AppendQuote(text, f.Name)
			text = appendBools(text, f.OmitEmpty, f.OmitZero, f.Pointer)
			text, k.below = flat(text, f.Schema, k.below)
		}
		sum := sha256.Sum256(text)
		k.flat = sum[:]
	})
	return k.flat, k.below
}

// shape is that of the struct with all that it leads to, which may be itself.
func (s *Struct) shape() string {
	s.shapes.whole.Do(func() {
		place := map[*Struct]int{s: 0}
		sum, room := sha256.New(), make([]byte, 0, 8)
		for todo := []*Struct{s}; len(todo) > 0; todo = todo[1:] {
			own, below := todo[0].flat()
			sum.Write(own)
			for _, st := range below {
				at, seen := place[st]
				if !seen {
					at = len(place)
					place[st] = at
					todo = append(todo, st)
				}
				sum.Write(append(strconv.AppendInt(room, int64(at), 10), ' '))
			}
		}
		s.shapes.text = hex.EncodeToString(sum.Sum(nil)[:16])
	})
	return s.shapes.text
}

// flat appends what a schema itself says, down to the structs below it, which it
// appends to below.
func flat(text []byte, s *Schema, below []*Struct) ([]byte, []*Struct) {
	if s == nil {
		return append(text, '-'), below
	}
	text = append(text, ' ', byte('0'+s.Type), byte('0'+s.Wire))
	text = strconv.AppendQuote(text, s.Format)
	text = appendBools(text, s.Nullable, s.Preserve, s.IntOrString, s.Embedded)
	if s.Default != nil {
		text = fmt.Appendf(text, "=%#v", s.Default) // maps in order
	}
	if s.Struct != nil {
		text, below = append(text, '>'), append(below, s.Struct)
	}
	if s.Values != nil {
		text, below = flat(append(text, ':'), s.Values, below)
	}
	if s.Items != nil {
		text, below = flat(append(text, '['), s.Items, below)
	}
	return append(text, ';'), below
}

func appendBools(text []byte, list ...bool) []byte {
	for _, b := range list {
		if b {
			text = append(text, '1')
		} else {
			text = append(text, '0')
		}
	}
	return text
}
