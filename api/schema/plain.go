package schema

import (
	"cmp"
	"reflect"
	"slices"
)

// fieldSchema returns the schema of a field before the words of its tag.
func (b *builder) fieldSchema(sf reflect.StructField, a at, metadata bool) (s *Schema) {
	faults := len(b.faults)
	if metadata && b.shared != nil && indirect(sf.Type).Kind() == reflect.Struct {
		s = b.metadata(sf.Type)
	} else {
		s = b.schemaOf(sf.Type, a)
	}
	if sf.Type.Kind() == reflect.Pointer {
		s.Nullable = false // a null is an unset field
	}
	s.Doc, s.PatchStrategy, s.PatchMergeKey = sf.Tag.Get("doc"), sf.Tag.Get("patchStrategy"), sf.Tag.Get("patchMergeKey")
	if isPlain(sf) && structless(s) && len(b.faults) == faults {
		b.plain[sf.Type] = s
	}
	return s
}

// plainSchema returns the schema that fields of a type share if their tags say nothing of
// it and there is no struct in it, nil if there is none yet. Half of all fields are such.
func (b *builder) plainSchema(sf reflect.StructField) *Schema {
	if !isPlain(sf) {
		return nil
	}
	if s := b.plain[sf.Type]; s != nil || b.shared == nil {
		return s
	}
	s, _ := b.shared.plain.Load(sf.Type)
	plain, _ := s.(*Schema)
	return plain
}

func isPlain(sf reflect.StructField) bool {
	return !slices.ContainsFunc([]string{"schema", "doc", "patchStrategy", "patchMergeKey"}, func(key string) bool { return sf.Tag.Get(key) != "" })
}

// structless reports whether there is no struct in values.
func structless(s *Schema) bool {
	for ; s != nil; s = cmp.Or(s.Items, s.Values) {
		if s.Struct != nil {
			return false
		}
	}
	return true
}

// own gives a field a schema of its own, which may be changed.
func (f *Field) own() {
	for at := &f.Schema; *at != nil; {
		s := **at
		if *at = &s; s.Items != nil {
			at = &(*at).Items
		} else {
			at = &(*at).Values
		}
	}
}
