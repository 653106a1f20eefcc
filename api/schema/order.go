package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
)

// InFieldOrder merges the causes of a kind's own checks, byCode, into the causes of Validate,
// found. The result is sorted by the fields of the Go struct. For each field, the causes from
// found for the field and everything below it precede the causes from byCode. Causes in byCode
// keep their relative order. If found reports a list with too many items, causes in byCode for
// its items are dropped. The result may share memory with found.
func (s *Schema) InFieldOrder(found, byCode []meta.StatusCause) []meta.StatusCause {
	if len(found) == 0 || len(byCode) == 0 {
		return append(found, byCode...)
	}
	merged := make([]meta.StatusCause, 0, len(found)+len(byCode))
	var tooMany []pathStep // the last list with too many items
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

// before reports whether place precedes at, equals it, or is above or below it.
func before(place, at []pathStep) bool {
	return slices.CompareFunc(place[:min(len(place), len(at))], at, pathStep.compare) <= 0
}

// pathStep is a step of a field path: the index of a struct field or a list item, or a map
// key. Fields that the schema does not declare have index -1 and come first.
type pathStep struct {
	index int
	key   string
}

func (t pathStep) compare(u pathStep) int {
	return cmp.Or(cmp.Compare(t.index, u.index), strings.Compare(t.key, u.key))
}

// place parses the field path of a cause.
func (s *Schema) place(path string) []pathStep {
	var way []pathStep
	for path != "" {
		t := pathStep{index: -1}
		if rest, ok := strings.CutPrefix(path, "["); ok {
			t.key, path, _ = strings.Cut(rest, "]")
			if n, err := strconv.Atoi(t.key); err == nil && s != nil && s.Items != nil {
				t = pathStep{index: n}
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

// below returns the schema of the named field. Without such a field, it returns the schema of
// list items or of map values.
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
