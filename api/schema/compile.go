package schema

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"orch.io/controlplane/api/internal/wording"
)

// Compile prepares a schema for use: it compiles patterns and normalizes the defaults and enums
// of Go fields. Go and OpenAPI return compiled schemas. Call Compile once on a schema built by
// hand, before other goroutines use it. Errors are joined; an error in a Go struct is a
// *FieldError.
func (s *Schema) Compile() error {
	w := &compiler{known: map[*Struct]below{}}
	w.schema(s, s != nil && s.Struct.Canonical())
	return errors.Join(w.faults...)
}

// compiler compiles one schema.
type compiler struct {
	known  map[*Struct]below // finished structs; all flags set while a struct is in progress
	in     at                // the Go field that is being compiled, if any
	steps  []string          // path of the schema that is being compiled
	faults []error
}

// below summarizes a value and everything below it; see Schema.
type below struct{ fills, fixed, rules, expressions bool }

func (b below) or(c below) below {
	return below{b.fills || c.fills, b.fixed || c.fixed, b.rules || c.rules, b.expressions || c.expressions}
}

func (w *compiler) fault(err error) {
	if w.in.t != nil {
		w.faults = append(w.faults, &FieldError{w.in.t, w.in.field, err})
		return
	}
	w.faults = append(w.faults, fmt.Errorf("%s: %w", cmp.Or(w.path(), "the schema"), err))
}

// path returns the path of the schema that is being compiled.
func (w *compiler) path() (path string) {
	for _, step := range w.steps {
		path = join(path, step)
	}
	return path
}

// below compiles s, a schema one step further down.
func (w *compiler) below(step string, s *Schema, canonical bool) below {
	w.steps = append(w.steps, step)
	b := w.schema(s, canonical)
	w.steps = w.steps[:len(w.steps)-1]
	return b
}

// schema compiles s and everything below it. It does not write to compiled schemas, because
// other goroutines may be reading them.
func (w *compiler) schema(s *Schema, canonical bool) below {
	if s == nil {
		return below{}
	}
	if s.Pattern != "" && s.re == nil {
		re, err := compilePattern(s.Pattern)
		if err != nil {
			w.fault(fmt.Errorf("pattern: %w", err))
		}
		s.re = re
	}
	if s.Struct != nil {
		canonical = s.Struct.Canonical()
	}
	b := w.structure(s.Struct, canonical)
	b = b.or(w.below("[*]", s.Values, canonical))
	b = b.or(w.below("[]", s.Items, canonical))
	for _, list := range [][]*Schema{s.AllOf, s.AnyOf, s.OneOf, {s.Not}} {
		for _, e := range list {
			b.expressions = w.schema(e, canonical).expressions || b.expressions
		}
	}
	b.expressions = b.expressions || len(s.Rules) > 0
	b.rules = (b.rules || s.hasOwnRules()) && !s.Unchecked
	b = b.or(below{fills: s.Default != nil, fixed: s.Immutable, rules: s.Immutable})
	if s.fills != b.fills || s.fixed != b.fixed || s.rules != b.rules || s.expressions != b.expressions {
		s.fills, s.fixed, s.rules, s.expressions = b.fills, b.fixed, b.rules, b.expressions
	}
	if canonical {
		w.normalizeEnum(s)
	}
	if s.Default != nil && canonical {
		w.normalizeDefault(s)
	}
	if s.Default != nil && s.defaultSize == 0 {
		s.defaultSize = sizeOf(s.Default)
	}
	return b
}

// hasOwnRules reports whether a value can violate a rule of s itself.
func (s *Schema) hasOwnRules() bool {
	return len(s.Enum)+len(s.Required)+len(s.AllOf)+len(s.AnyOf)+len(s.OneOf) > 0 || s.Not != nil || s.Embedded || s.UniqueItems ||
		s.Pattern != "" || s.KeyFormat != "" || s.ListType != "" && !s.Repeats || s.Type == String && s.Format != "" || hasWholeFormat(s) ||
		s.MinLength != nil || s.MaxLength != nil || s.Minimum != nil || s.Maximum != nil || s.MultipleOf != nil ||
		s.MinItems != nil || s.MaxItems != nil || s.MinProperties != nil || s.MaxProperties != nil
}

// normalizeEnum normalizes the enum of a Go field, because it is compared with normalized values.
func (w *compiler) normalizeEnum(s *Schema) {
	for i, word := range s.Enum {
		c := normalizer{}
		if v, changed := c.value(word, s, true); changed {
			s.Enum[i] = v
		}
		for _, f := range c.faults {
			w.fault(fmt.Errorf("enum: %s", strings.TrimPrefix(f.Message, ": ")))
		}
	}
}

// normalizeDefault normalizes and validates the default of a Go field.
func (w *compiler) normalizeDefault(s *Schema) {
	c := normalizer{}
	if v, changed := c.value(s.Default, s, true); changed {
		s.Default = v
	}
	faults := c.faults
	if len(faults) == 0 {
		faults = faultsOf(s.Default, s, true)
	}
	for _, f := range faults {
		text := f.Message
		if f.Field != "" && f.Field != wording.WholeField && !strings.HasPrefix(text, f.Field+": ") {
			text = f.Field + ": " + text
		}
		w.fault(fmt.Errorf("default: %s", strings.TrimPrefix(text, ": ")))
	}
}

func (w *compiler) structure(st *Struct, canonical bool) below {
	if st == nil {
		return below{}
	}
	if b, seen := w.known[st]; seen {
		return b
	}
	if st.compiled {
		return st.below
	}
	w.known[st] = below{true, true, true, true}
	var all below
	in := w.in
	for _, f := range st.Fields {
		w.in = at{st.Go, f.GoName}
		all = all.or(w.below(f.Name, f.Schema, canonical)).or(below{rules: f.Required})
		if f.Schema.Default != nil {
			st.filled = append(st.filled, f)
		}
	}
	w.in = in
	w.known[st] = all
	st.below, st.compiled = all, true
	return all
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
