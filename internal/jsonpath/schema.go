package jsonpath

import (
	"slices"

	"orch.io/controlplane/api/schema"
)

// LeadsInto reports whether values of the schema can have a value at the path. It returns true
// for a nil schema, which allows any value.
func (p *Path) LeadsInto(s *schema.Schema) bool { return leads(p.steps, s) }

func leads(steps []step, s *schema.Schema) bool {
	if len(steps) == 0 || s == nil || s.Preserve || s.Type == schema.Any {
		return true
	}
	rest := steps[1:]
	switch next := steps[0]; next.kind {
	case stepDescend:
		return true // schemas may be recursive
	case stepUnion:
		return slices.ContainsFunc(next.union, func(part step) bool { return leads(append([]step{part}, rest...), s) })
	case stepField:
		below, ok := s.At(next.name)
		return ok && leads(rest, below)
	case stepAll:
		if s.Type == schema.Object && s.Struct != nil {
			return leadsThroughField(rest, s.Struct)
		}
		return s.Type == schema.Object && leads(rest, s.Values) || s.Type == schema.Array && leads(rest, s.Items)
	case stepFilter:
		return s.Type == schema.Array && leads(next.test.left, s.Items) && leads(rest, s.Items)
	}
	return s.Type == schema.Array && leads(rest, s.Items)
}

func leadsThroughField(steps []step, s *schema.Struct) bool {
	for _, f := range s.Fields {
		if leads(steps, f.Schema) {
			return true
		}
	}
	return false
}
