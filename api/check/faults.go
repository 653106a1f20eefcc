package check

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// The bounds of what is told of one object: so many faults, each with so many bytes of
// the value and of the reason, which may quote it.
const (
	maxFaults = 100
	maxShown  = 256
	maxReason = 16 << 10
)

// Faults is a growing list of causes, of which the first hundred are kept. The
// zero value is empty and ready.
type Faults []meta.Cause

func (f *Faults) add(r wording.Rule, at *Path, value any, limit string) {
	if len(*f) < maxFaults {
		*f = append(*f, r.Cause(at.String(), show(value), cut(limit, maxReason), true))
	}
}

// Hidden is a value that faults do not tell, such as one with much in it.
type Hidden struct{}

// In reports whether a fault is at a path or below it.
func (f Faults) In(at *Path) bool {
	root := at.String()
	return slices.ContainsFunc(f, func(c meta.Cause) bool {
		rest, ok := strings.CutPrefix(c.Field, root)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Required says that a field must have a value.
func (f *Faults) Required(at *Path, why string) {
	f.add(wording.Required, at, nil, why)
}

// Invalid says that a value breaks a rule.
func (f *Faults) Invalid(at *Path, value any, why string) {
	f.add(wording.Invalid, at, value, why)
}

// WrongType says that a value has another JSON type than its field.
func (f *Faults) WrongType(at *Path, value any, want string) {
	f.add(wording.Shape, at, value, want)
}

// Forbidden says that a field may not be set, or not be changed.
func (f *Faults) Forbidden(at *Path, why string) {
	f.add(wording.Forbidden, at, nil, why)
}

// Duplicate says that a value is there twice.
func (f *Faults) Duplicate(at *Path, value any) {
	f.add(wording.Duplicate, at, value, "")
}

// Unique checks that no word is in a list twice.
func (f *Faults) Unique(at *Path, list []string) {
	seen := make(map[string]bool, len(list))
	for i, word := range list {
		if seen[word] {
			f.Duplicate(at.Index(i), word)
		}
		seen[word] = true
	}
}

// NotFound says that a value names something that is not there.
func (f *Faults) NotFound(at *Path, value any) {
	f.add(wording.NotFound, at, value, "")
}

// NotSupported says that a value is none of the known ones.
func (f *Faults) NotSupported(at *Path, value any, known ...string) {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = show(k)
	}
	f.add(wording.Enum, at, value, strings.Join(words, ", "))
}

// TooLong says that a value has more than limit bytes.
func (f *Faults) TooLong(at *Path, limit int) {
	f.add(wording.MaxLength, at, nil, strconv.Itoa(limit))
}

// TooMany says that a list or map has more than limit items.
func (f *Faults) TooMany(at *Path, count, limit int) {
	f.add(wording.MaxItems, at, count, strconv.Itoa(limit))
}

// Format adds an Invalid fault for each of the reasons that a format check
// returned.
func (f *Faults) Format(at *Path, value any, reasons []string) {
	for _, why := range reasons {
		f.Invalid(at, value, why)
	}
}

// OneOf checks that value is one of the known words.
func (f *Faults) OneOf(at *Path, value string, known ...string) {
	if !slices.Contains(known, value) {
		f.NotSupported(at, value, known...)
	}
}

// RequiredOneOf is OneOf with its own fault for the empty value.
func (f *Faults) RequiredOneOf(at *Path, value string, known ...string) {
	if value == "" {
		f.Required(at, "")
		return
	}
	f.OneOf(at, value, known...)
}

// OptionalOneOf is OneOf for a value that may be unset.
func (f *Faults) OptionalOneOf(at *Path, value *string, known ...string) {
	if value != nil {
		f.OneOf(at, *value, known...)
	}
}

// Needs checks that the text in a field below at is there.
func (f *Faults) Needs(at *Path, field, value string) {
	if value == "" {
		f.Required(at.Field(field), "")
	}
}

// Subdomain checks a DNS subdomain that may be left out.
func (f *Faults) Subdomain(at *Path, name string) {
	if name != "" {
		f.Format(at, name, meta.CheckDNSSubdomain(name))
	}
}

// Port checks the number of a port.
func (f *Faults) Port(at *Path, n int64) { f.Range(at, n, 1, 65535) }

// Range checks that a number lies between two bounds, both included.
func (f *Faults) Range(at *Path, n, low, high int64) {
	if n < low || n > high {
		f.add(wording.Between, at, n, fmt.Sprintf("%d and %d", low, high))
	}
}

// Unchanged checks that two JSON-like values are the same.
func (f *Faults) Unchanged(at *Path, now, before any) {
	if !Same(now, before) {
		f.add(wording.Immutable, at, now, "")
	}
}

// show returns a value as messages quote it, cut to a length that is fit to read. Of a
// long list the items behind that are not looked at.
func show(v any) string {
	if v == any(Hidden{}) {
		return ""
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.Type().Elem().Kind() != reflect.Uint8 && list.Len() > maxShown {
		v = list.Slice(0, maxShown).Interface()
	}
	return cut(string(wording.AppendJSON(nil, v)), maxShown)
}

// cut returns a text of at most so many bytes and the dots that tell of the others.
func cut(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
