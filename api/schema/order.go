package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
)

// InFieldOrder merges the causes that code found into those of Validate: each
// stands with the field that it speaks of, in the order of the fields of the Go
// struct, and what the schema says of a field, and of all in it, stands before
// what code says of the field. What code found keeps its own order; of the items
// of a list that has too many it is not told.
func (s *Schema) InFieldOrder(found, byCode []meta.Cause) []meta.Cause {
	if len(found) == 0 || len(byCode) == 0 {
		return append(found, byCode...)
	}
	merged := make([]meta.Cause, 0, len(found)+len(byCode))
	var tooMany []turn // where the schema found so last
	for _, c := range byCode {
		at := s.place(c.Field)
		for len(found) > 0 {
			place := s.place(found[0].Field)
			if !before(place, at) {
				break
			}
			if found[0].Reason == meta.CauseTooMany {
				tooMany = place
			}
			merged, found = append(merged, found[0]), found[1:]
		}
		if tooMany == nil || len(at) <= len(tooMany) || !slices.Equal(at[:len(tooMany)], tooMany) {
			merged = append(merged, c)
		}
	}
	return append(merged, found...)
}

// before reports whether a place comes before another, is the same or lies in it.
func before(place, at []turn) bool {
	return slices.CompareFunc(place[:min(len(place), len(at))], at, turn.compare) <= 0
}

// turn is one step on the way to a field: its number in the struct or the list,
// or the key of a map. A name that the schema does not know comes first.
type turn struct {
	index int
	key   string
}

func (t turn) compare(u turn) int {
	return cmp.Or(cmp.Compare(t.index, u.index), strings.Compare(t.key, u.key))
}

// place returns the way to the field of a cause.
func (s *Schema) place(path string) []turn {
	var way []turn
	for path != "" {
		t := turn{index: -1}
		if rest, ok := strings.CutPrefix(path, "["); ok {
			t.key, path, _ = strings.Cut(rest, "]")
			if n, err := strconv.Atoi(t.key); err == nil && s != nil && s.Items != nil {
				t = turn{index: n}
			}
			s = s.below("")
		} else {
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			name := path[:end]
			path = path[end:]
			if s != nil && s.Struct != nil {
				t.index = slices.IndexFunc(s.Struct.Fields, func(f *Field) bool { return f.Name == name })
			}
			s = s.below(name)
		}
		way = append(way, t)
	}
	return way
}

// below returns the schema of a field, or else of an item or of an entry.
func (s *Schema) below(name string) *Schema {
	switch {
	case s == nil:
		return nil
	case s.Struct.Field(name) != nil:
		return s.Struct.Field(name).Schema
	case s.Items != nil:
		return s.Items
	}
	return s.Values
}
