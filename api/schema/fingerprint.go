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

// Fingerprint returns a fingerprint of all properties that Normalize and FillDefaults depend
// on. Schemas with equal fingerprints read every stored object alike. Validation rules and
// documentation are not included.
func (s *Schema) Fingerprint() string {
	if s == nil {
		return "any"
	}
	own, below := flat(nil, s, nil)
	sum := sha256.New()
	sum.Write(own)
	for _, st := range below {
		sum.Write([]byte(st.fingerprint()))
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// fingerprints caches the fingerprint of a Struct. It is computed on first use, which must not
// be before the schema is complete.
type fingerprints struct {
	own, whole sync.Once
	flat       []byte    // hash of the fields without the structs below them
	below      []*Struct // structs directly below, in order
	text       string    // hash of the struct with everything below it
}

func (s *Struct) flat() ([]byte, []*Struct) {
	k := &s.fingerprints
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

// fingerprint returns the hash of the struct with everything below it. Recursive structs are
// numbered in order of their first occurrence.
func (s *Struct) fingerprint() string {
	s.fingerprints.whole.Do(func() {
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
		s.fingerprints.text = hex.EncodeToString(sum.Sum(nil)[:16])
	})
	return s.fingerprints.text
}

// flat appends the properties of s, except those of structs below it, to text, and these
// structs to below.
func flat(text []byte, s *Schema, below []*Struct) ([]byte, []*Struct) {
	if s == nil {
		return append(text, '-'), below
	}
	text = append(text, ' ', byte('0'+s.Type), byte('0'+s.Wire))
	text = strconv.AppendQuote(text, s.Format)
	text = appendBools(text, s.Nullable, s.Preserve, s.IntOrString, s.Embedded)
	if s.Default != nil {
		text = fmt.Appendf(text, "=%#v", s.Default) // %#v sorts maps
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
