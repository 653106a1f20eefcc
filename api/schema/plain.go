package schema

import (
	"cmp"
	"reflect"
	"slices"
)

// fieldSchema returns the schema of a field before its schema tag is applied. If metadata is
// set and the field is a struct, it refers to the standard metadata.
func (b *builder) fieldSchema(sf reflect.StructField, a at, metadata bool) (s *Schema) {
	faults := len(b.faults)
	if metadata && b.shared != nil && indirect(sf.Type).Kind() == reflect.Struct {
		s = b.metadata(sf.Type)
	} else {
		s = b.schemaOf(sf.Type, a)
	}
	if sf.Type.Kind() == reflect.Pointer {
		s.Nullable = false // a null means unset
	}
	s.Doc, s.PatchStrategy, s.PatchMergeKey = sf.Tag.Get("doc"), sf.Tag.Get("patchStrategy"), sf.Tag.Get("patchMergeKey")
	if isPlain(sf) && structless(s) && len(b.faults) == faults {
		b.plain[sf.Type] = s
	}
	return s
}

// plainSchema returns the shared schema for fields of this type that have no tags about their
// schema and no struct below them, or nil if there is none yet. This covers about half of all
// fields of the built-in kinds. Field.ownSchema copies it before a change.
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

// structless reports whether values of s contain no struct.
func structless(s *Schema) bool {
	for ; s != nil; s = cmp.Or(s.Items, s.Values) {
		if s.Struct != nil {
			return false
		}
	}
	return true
}

// ownSchema replaces the field's schema, and the schemas of its items and values, by copies
// that may be changed.
func (f *Field) ownSchema() {
	for at := &f.Schema; *at != nil; {
		s := **at
		if *at = &s; s.Items != nil {
			at = &(*at).Items
		} else {
			at = &(*at).Values
		}
	}
}
