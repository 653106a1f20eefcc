package schema

import "slices"

// Gates returns the names of the feature gates of fields, without duplicates, in field order.
func (s *Schema) Gates() (list []string) {
	for _, f := range s.marked().gated {
		if !slices.Contains(list, f.schema.Gate) {
			list = append(list, f.schema.Gate)
		}
	}
	return list
}

// DropGated removes fields from an object if their gate is off, except fields that its previous
// state, old, uses. old is nil for a new object. A field of a struct is in use if it is set
// anywhere in old: if one item of a list, or one of several lists, has the field, all may have
// it. tree and old may share memory.
func (s *Schema) DropGated(tree, old map[string]any, off func(gate string) bool) {
	gated := s.marked().gated
	for _, f := range gated {
		if !off(f.schema.Gate) || !reaches(tree, f.way, anything) {
			continue
		}
		used := slices.ContainsFunc(gated, func(same markedField) bool { return same.schema == f.schema && isSet(old, same.way) })
		if !used {
			dropField(tree, f.way)
		}
	}
}

// HasGated reports whether an object has a field with a gate that is off.
func (s *Schema) HasGated(tree map[string]any, off func(gate string) bool) bool {
	return slices.ContainsFunc(s.marked().gated, func(f markedField) bool { return off(f.schema.Gate) && reaches(tree, f.way, anything) })
}

// isSet reports whether the field path leads to a value that is not empty.
func isSet(x any, way []wayStep) bool { return reaches(x, way, notEmpty) }

func notEmpty(x any) bool {
	switch x := x.(type) {
	case nil:
		return false
	case []any:
		return len(x) > 0
	case map[string]any:
		return len(x) > 0
	}
	return x != ""
}

func anything(any) bool { return true }

// reaches reports whether the field path leads to a value for which like returns true.
func reaches(x any, way []wayStep, like func(any) bool) bool {
	if len(way) == 0 {
		return like(x)
	}
	next, rest := way[0], way[1:]
	switch x := x.(type) {
	case []any:
		return next.list && slices.ContainsFunc(x, func(e any) bool { return reaches(e, rest, like) })
	case map[string]any:
		if next.list {
			return false
		}
		if next.name != "" {
			value, ok := x[next.name]
			return ok && reaches(value, rest, like)
		}
		for _, e := range x {
			if reaches(e, rest, like) {
				return true
			}
		}
	}
	return false
}

// dropField removes the field at the end of the field path. If this empties an optional struct, it
// removes the struct, too. The result reports whether drop removed the only field of x.
func dropField(x any, way []wayStep) (emptied bool) {
	next := way[0]
	switch x := x.(type) {
	case []any:
		if next.list && len(way) > 1 {
			for _, e := range x {
				dropField(e, way[1:])
			}
		}
	case map[string]any:
		switch {
		case next.list:
		case next.name == "" && len(way) > 1:
			for _, e := range x {
				dropField(e, way[1:])
			}
		case len(way) == 1:
			before := len(x)
			delete(x, next.name)
			return before > 0 && len(x) == 0
		case dropField(x[next.name], way[1:]) && next.optional:
			delete(x, next.name)
			return len(x) == 0
		}
	}
	return false
}
