package schema

import (
	"reflect"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// ValidateValue returns what its schema says is wrong with v, a struct that Go
// accepts or a pointer to one, at a path, in the order of InFieldOrder with what
// code found. It is for code that must know whether a part of an object has
// faults; the schema of the whole does not check it again if the field is
// unchecked.
func ValidateValue(v any, p names.Profile, at string, byCode []meta.Cause) []meta.Cause {
	s, err := Go(reflect.TypeOf(v), p)
	if err != nil {
		return []meta.Cause{{Reason: meta.CauseInvalid, Field: at, Message: err.Error()}}
	}
	view, err := NewView(reflect.TypeOf(v), p)
	if err != nil {
		return []meta.Cause{{Reason: meta.CauseInvalid, Field: at, Message: err.Error()}}
	}
	tree, err := view.From(v)
	if err != nil {
		return []meta.Cause{{Reason: meta.CauseTypeInvalid, Field: at, Message: err.Error()}}
	}
	causes := s.Validate(tree, nil)
	for i := range causes {
		causes[i].Field = meta.CutPath([]byte(join(at, causes[i].Field)))
	}
	return s.inFieldOrder(causes, byCode, at)
}
