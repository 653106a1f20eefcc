package schema

import (
	"errors"
	"fmt"
	"regexp"
)

// Seal prepares a schema for use: patterns are compiled, defaults brought into
// canonical form. Go and OpenAPI return sealed schemas; whoever builds one by
// hand calls Seal once, before anything else sees it. The error joins every
// fault.
func (s *Schema) Seal() error {
	w := &sealer{deep: map[*Struct]bool{}}
	w.schema(s, "", s != nil && s.Struct.Canonical())
	return errors.Join(w.faults...)
}

type sealer struct {
	deep   map[*Struct]bool // whether defaults stand below; true while not known
	faults []error
}

func (w *sealer) fault(path string, err error) {
	if path == "" {
		path = "the schema"
	}
	w.faults = append(w.faults, fmt.Errorf("%s: %w", path, err))
}

// schema seals s and what is below it, and reports whether it fills anything in.
func (w *sealer) schema(s *Schema, path string, canonical bool) bool {
	if s == nil {
		return false
	}
	if s.Pattern != "" && s.re == nil {
		re, err := regexp.Compile(s.Pattern)
		if err != nil {
			w.fault(path, fmt.Errorf("pattern: %w", err))
		}
		s.re = re
	}
	if s.Struct != nil {
		canonical = s.Struct.Canonical()
	}
	deep := w.structure(s.Struct, path, canonical)
	deep = w.schema(s.Values, path+"[*]", canonical) || deep
	deep = w.schema(s.Items, path+"[]", canonical) || deep
	for _, list := range [][]*Schema{s.AllOf, s.AnyOf, s.OneOf, {s.Not}} {
		for _, e := range list {
			w.schema(e, path, canonical)
		}
	}
	if s.Default != nil && canonical {
		c := conformer{}
		if v, changed := c.value(s.Default, s, true); changed {
			s.Default = v
		}
		for _, f := range append(c.faults, (&validator{}).check(s.Default, s)...) {
			w.fault(join(path, f.Field), fmt.Errorf("default: %s", f.Message))
		}
	}
	if !s.fills {
		s.fills = deep || s.Default != nil
	}
	return s.fills
}

func (w *sealer) structure(st *Struct, path string, canonical bool) bool {
	if st == nil {
		return false
	}
	if deep, seen := w.deep[st]; seen {
		return deep
	}
	if st.sealed {
		return st.deep
	}
	w.deep[st] = true
	deep := false
	for _, f := range st.Fields {
		if w.schema(f.Schema, join(path, f.Name), canonical) {
			deep = true
			if f.Schema.Default != nil {
				st.filled = append(st.filled, f)
			}
		}
	}
	w.deep[st] = deep
	st.deep, st.sealed = deep, true
	return deep
}

func join(path, name string) string {
	switch {
	case path == "":
		return name
	case name == "" || name[0] == '[':
		return path + name
	}
	return path + "." + name
}
