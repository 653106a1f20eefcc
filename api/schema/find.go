package schema

// At returns the schema of the value that a path of field names leads to. ok is
// false if there can be no such value; a nil schema with ok true is one that
// says nothing.
func (s *Schema) At(path ...string) (at *Schema, ok bool) {
	for _, name := range path {
		if s == nil {
			return nil, true
		}
		f := s.Struct.Field(name)
		switch {
		case f != nil:
			s = f.Schema
		case name == "metadata" && !s.Struct.Canonical():
			s = nil
		case s.Values != nil:
			s = s.Values
		case s.Preserve || s.Type == Any:
			s = nil
		default:
			return nil, false
		}
	}
	return s, true
}

// Type returns the JSON type of the field, Any for no field.
func (f *Field) Type() Type {
	if f == nil {
		return Any
	}
	return f.Schema.Type
}
