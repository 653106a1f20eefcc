package schema

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// Limits on the reports of an object. Reports beyond them are dropped.
const (
	maxReported    = 100       // causes
	maxUnknown     = 1000      // unknown fields
	maxUnknownText = 256 << 10 // total bytes of the paths of unknown fields
)

// Normalize brings a decoded object into the normal form of the schema, in place.
//
// It drops fields that the schema does not declare and returns their paths in unknown, sorted.
// For a custom kind, unknown fields of the object's metadata come first and unknown fields of
// the metadata of embedded objects come last.
//
// Below a struct that comes from Go, values get the encoding that marshaling the struct would
// produce: nulls become unset, empty values are omitted or written as the json tags require,
// and times, quantities and base64 become canonical. If a value cannot be converted, Normalize
// leaves it unchanged and returns a cause in faults; the caller answers 400. Elsewhere values
// stay as they are, and Validate reports violations.
//
// Every object may have apiVersion, kind and metadata, whether the schema declares them or not.
// A nil schema declares no other field and drops nothing.
//
// The numbers of returned paths and causes are limited.
func (s *Schema) Normalize(tree map[string]any) (unknown []string, faults []meta.StatusCause) {
	return s.normalize(tree, normalizer{})
}

// Coerce is Normalize for an object that its author cannot correct, such as a stored object. If a
// value cannot be converted, Coerce drops it, or the whole list if the value is an item of a
// list. The object is normalized afterwards, and faults has a cause for each value that could
// not be converted.
func (s *Schema) Coerce(tree map[string]any) (unknown []string, faults []meta.StatusCause) {
	return s.normalize(tree, normalizer{leaveOut: true})
}

func (s *Schema) normalize(tree map[string]any, c normalizer) (unknown []string, faults []meta.StatusCause) {
	var room [16]step
	c.path = room[:0]
	switch {
	case s == nil:
		c.embedded(tree, &Schema{Type: Object}, true)
	case s.Struct.Canonical():
		c.goStruct(tree, s)
	default:
		c.embedded(tree, s, s.Preserve)
	}
	slices.Sort(c.unknown)
	slices.Sort(c.first)
	slices.Sort(c.last)
	if len(c.first)+len(c.last) > 0 {
		c.unknown = slices.Concat(c.first, c.unknown, c.last)
	}
	slices.SortStableFunc(c.faults, func(a, b meta.StatusCause) int { return strings.Compare(a.Field, b.Field) })
	return c.unknown, c.faults
}

// normalizer normalizes an object. It is not safe for concurrent use.
type normalizer struct {
	path    path
	unknown []string
	size    int      // total bytes in unknown
	first   []string // unknown fields in the metadata of a custom object
	last    []string // unknown fields in the metadata of embedded objects
	faults  []meta.StatusCause
	within  *Struct // the innermost Go struct that contains the value at path, or nil
	above   int     // number of steps of path that lead to the outermost Go value

	brackets bool // unknown field paths show map keys in brackets

	part     bool // the value is a default, which is only a part of an object; see defaultsChecker
	leaveOut bool // drop values that cannot be converted; see Coerce
	misfit   bool // a value could not be converted and was not dropped yet
}

// takeMisfit reports whether the caller must drop the value that was normalized last, and
// clears that state.
func (c *normalizer) takeMisfit() bool {
	if !c.leaveOut || !c.misfit {
		return false
	}
	c.misfit = false
	return true
}

func (c *normalizer) dropUnknown(name string) {
	if len(c.unknown) < maxUnknown && c.size < maxUnknownText {
		path := c.path.to(name, c.brackets)
		c.size += len(path)
		c.unknown = append(c.unknown, path)
	}
}

// metadata normalizes the metadata at the path of an object of a custom kind.
func (c *normalizer) metadata(v any) {
	inner := normalizer{path: c.path, size: c.size, above: len(c.path), brackets: len(c.path) > 1}
	inner.object(v, Metadata(names.Orch))
	c.size = inner.size
	if len(c.path) == 1 && !c.part {
		c.first = append(c.first, inner.unknown...)
		c.faults = append(c.faults, inner.faults...)
		return
	}
	c.last = append(c.last, inner.unknown...)
	if len(inner.faults) > 0 {
		first := inner.faults[0]
		c.fault("Invalid value: %s: %s", show(v), strings.TrimPrefix(first.Message, first.Field+": "))
	}
}

// fault adds a cause for the value at the path.
func (c *normalizer) fault(format string, args ...any) {
	c.misfit = true
	if len(c.faults) < maxReported {
		at := c.path.String()
		if c.within == nil { // an object embedded in a custom kind
			at = c.path.keyed()
		}
		c.faults = append(c.faults, meta.StatusCause{Reason: meta.CauseTypeInvalid, Field: at, Message: at + ": " + fmt.Sprintf(format, args...)})
	}
}

// value normalizes a value. If changed is true, the caller must store result in place of v.
func (c *normalizer) value(v any, s *Schema, canonical bool) (result any, changed bool) {
	if s.Struct != nil {
		canonical = s.Struct.Canonical()
	}
	if !canonical {
		c.loose(v, s, false)
		return nil, false
	}
	if s.Wire != Plain {
		return c.wire(v, s)
	}
	switch s.Type {
	case String:
		if _, ok := v.(string); !ok {
			c.mismatch(v, s)
		}
	case Boolean:
		if _, ok := v.(bool); !ok {
			c.mismatch(v, s)
		}
	case Integer:
		c.integer(v, s)
	case Number:
		switch v.(type) {
		case int64, float64:
		default:
			c.mismatch(v, s)
		}
	case Array:
		c.list(v, s)
	case Object:
		c.object(v, s)
	}
	return nil, false
}

func (c *normalizer) integer(v any, s *Schema) {
	n, ok := v.(int64)
	if lo, hi := integerRange(s.Format); !ok || n < lo || n > hi {
		c.mismatch(v, s)
	}
}

func (c *normalizer) list(v any, s *Schema) {
	l, ok := v.([]any)
	if !ok {
		c.mismatch(v, s)
		return
	}
	unfit := false
	for i, e := range l {
		if e == nil {
			if !s.Items.Nullable {
				l[i] = s.Items.zero()
			}
			continue
		}
		c.path.item(i)
		if n, changed := c.value(e, s.Items, true); changed {
			l[i] = n
		}
		c.path.pop()
		unfit = c.takeMisfit() || unfit // or the next item would be dropped, too
	}
	if unfit {
		c.misfit = true
	}
}

func (c *normalizer) object(v any, s *Schema) {
	m, ok := v.(map[string]any)
	switch {
	case !ok:
		c.mismatch(v, s)
	case s.Struct != nil:
		c.goStruct(m, s)
	case s.Values != nil:
		c.goMap(m, s.Values)
	}
}

func (c *normalizer) goMap(m map[string]any, values *Schema) {
	for k, v := range m {
		if v == nil {
			if !values.Nullable || values.Wire == Bytes {
				m[k] = values.zero()
			}
			continue
		}
		c.path.key(k)
		n, changed := c.value(v, values, true)
		c.path.pop()
		if c.takeMisfit() {
			delete(m, k)
		} else if changed {
			m[k] = n
		}
	}
}

func (c *normalizer) goStruct(m map[string]any, s *Schema) {
	outer := c.within
	c.within = s.Struct
	defer func() { c.within = outer }()
	for k, v := range m {
		f := s.Struct.byName[k]
		if f == nil {
			if !s.Preserve {
				c.dropUnknown(k)
				delete(m, k)
			}
			continue
		}
		if v == nil {
			delete(m, k)
			continue
		}
		c.path.field(k)
		n, changed := c.value(v, f.Schema, true)
		c.path.pop()
		if changed {
			v = n
		}
		if c.takeMisfit() || f.omits(v) {
			delete(m, k)
		} else if changed {
			m[k] = v
		}
	}
	for _, f := range s.Struct.always {
		if _, ok := m[f.Name]; !ok {
			m[f.Name] = f.zero()
		}
	}
}

// loose drops the unknown fields of a value of a custom kind. If preserve is set, the value is
// an item of a list that preserves unknown fields, so its own unknown fields are kept; its
// declared fields follow their own schemas.
func (c *normalizer) loose(v any, s *Schema, preserve bool) {
	preserve = preserve || s.Preserve
	switch v := v.(type) {
	case map[string]any:
		if s.Embedded {
			c.embedded(v, s, preserve)
			return
		}
		for k, e := range v {
			c.looseField(v, k, e, s, preserve)
		}
	case []any:
		items := s.Items
		switch {
		case items != nil:
		case preserve:
			return
		default:
			items = &Schema{}
		}
		for i, e := range v {
			c.path.item(i)
			c.loose(e, items, preserve)
			c.path.pop()
		}
	}
}

func (c *normalizer) looseField(m map[string]any, k string, e any, s *Schema, preserve bool) {
	next, kind := s.Values, aKey
	if f := s.Struct.Field(k); f != nil {
		next, kind = f.Schema, aField
	}
	if next == nil {
		if !preserve {
			c.dropUnknown(k)
			delete(m, k)
		}
		return
	}
	c.path = append(c.path, step{k, kind})
	if n, changed := c.value(e, next, false); changed {
		m[k] = n
	}
	c.path.pop()
}

// embedded normalizes an object that has apiVersion, kind and metadata of its own.
func (c *normalizer) embedded(m map[string]any, s *Schema, preserve bool) {
	for k, e := range m {
		switch k {
		case "apiVersion", "kind":
			if f := s.Struct.Field(k); e == nil && f != nil && !f.Schema.Nullable && f.Schema.Default == nil && len(c.path) > 0 {
				delete(m, k)
			} else if _, ok := e.(string); !ok {
				c.path.field(k)
				c.fault("Invalid value: %s: must be a string", show(e))
				c.path.pop()
			}
		case "metadata":
			switch {
			case e != nil:
			case len(c.path) == 0 && !c.part || s.Struct.Field(k) != nil:
				delete(m, k)
				continue
			default:
				e = map[string]any{}
				m[k] = e
			}
			c.path.field(k)
			c.metadata(e)
			c.path.pop()
		default:
			c.looseField(m, k, e, s, preserve)
		}
	}
}

// omits reports whether encoding/json omits the field if it has the value v.
func (f *Field) omits(v any) bool {
	if f.Pointer || !f.OmitEmpty && !f.OmitZero {
		return false
	}
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		if f.Schema.Struct != nil {
			return f.OmitZero && f.Schema.isZero(v)
		}
		return f.OmitEmpty && len(v) == 0 && f.Schema.Type == Object
	case []any:
		return f.OmitEmpty && len(v) == 0 && f.Schema.Type == Array
	}
	return f.Schema.isZero(v)
}

// zero returns the JSON value that Go writes for the field if it is unset.
func (f *Field) zero() any {
	if f.Pointer {
		return nil
	}
	return f.Schema.zero()
}

// zero returns the JSON value that Go writes for the zero value.
func (s *Schema) zero() any {
	switch s.Wire {
	case Quantity:
		return "0"
	case IntOrString:
		return int64(0)
	case Duration:
		return "0s"
	case Bytes:
		return ""
	case Plain:
	default:
		return nil
	}
	switch {
	case s.Type == String:
		return ""
	case s.Type == Boolean:
		return false
	case s.Type == Integer, s.Type == Number:
		return int64(0)
	case s.Struct != nil:
		m := make(map[string]any, len(s.Struct.always))
		for _, f := range s.Struct.always {
			m[f.Name] = f.zero()
		}
		return m
	}
	return nil
}

// isZero reports whether v equals the result of zero, or is empty.
func (s *Schema) isZero(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == "" || s.Wire == Quantity && v == "0" || s.Wire == Duration && v == "0s"
	case int64:
		return v == 0
	case float64:
		return v == 0
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		for k, e := range v {
			f := s.Struct.Field(k)
			if f == nil || f.Pointer && e != nil || !f.Schema.isZero(e) {
				return false
			}
		}
		return true
	}
	return false
}
