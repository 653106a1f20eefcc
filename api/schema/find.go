package schema

// At returns the schema of the value at a path of field names. ok is false if the schema does
// not allow such a value. at is nil and ok true if the value is allowed but not described.
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

// Type returns the JSON type of the field. It returns Any for a nil field.
func (f *Field) Type() Type {
	if f == nil {
		return Any
	}
	return f.Schema.Type
}
