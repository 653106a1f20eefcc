package schema

import "slices"

// Gates returns the names of the gates that fields have, each once, in the order of the
// fields.
func (s *Schema) Gates() (list []string) {
	for _, f := range s.marked().gated {
		if !slices.Contains(list, f.schema.Gate) {
			list = append(list, f.schema.Gate)
		}
	}
	return list
}

// DropGated takes the fields out of an object whose gate is off, but those that the object
// has before, old, which is nil for a new one. Anywhere: where one item of a list has the
// field the others may get it. tree and old may share what they have in common.
func (s *Schema) DropGated(tree, old map[string]any, off func(gate string) bool) {
	for _, f := range s.marked().gated {
		if off(f.schema.Gate) && !isSet(old, f.way) {
			drop(tree, f.way)
		}
	}
}

// isSet reports whether there is anything at the end of a way.
func isSet(x any, way []wayStep) bool {
	switch x := x.(type) {
	case nil:
		return false
	case []any:
		if len(way) > 0 {
			return way[0].list && slices.ContainsFunc(x, func(e any) bool { return isSet(e, way[1:]) })
		}
		return len(x) > 0
	case map[string]any:
		if len(way) == 0 {
			return len(x) > 0
		}
		if way[0].list || way[0].name != "" {
			return !way[0].list && isSet(x[way[0].name], way[1:])
		}
		for _, e := range x {
			if isSet(e, way[1:]) {
				return true
			}
		}
		return false
	}
	return len(way) == 0 && x != ""
}

// drop takes away what is at the end of a way, which is a field.
func drop(x any, way []wayStep) {
	next := way[0]
	switch x := x.(type) {
	case []any:
		if next.list && len(way) > 1 {
			for _, e := range x {
				drop(e, way[1:])
			}
		}
	case map[string]any:
		switch {
		case next.list:
		case next.name == "" && len(way) > 1:
			for _, e := range x {
				drop(e, way[1:])
			}
		case len(way) == 1:
			delete(x, next.name)
		default:
			drop(x[next.name], way[1:])
		}
	}
}
