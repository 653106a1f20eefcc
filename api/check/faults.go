package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
)

// maxFaults bounds what is told of one object.
const maxFaults = 100

// Faults is a growing list of causes, of which the first hundred are kept. The
// zero value is empty and ready.
type Faults []meta.Cause

func (f *Faults) add(reason meta.CauseReason, at *Path, text string) {
	if len(*f) >= maxFaults {
		return
	}
	*f = append(*f, meta.Cause{Reason: reason, Message: text, Field: at.String()})
}

// Required says that a field must have a value.
func (f *Faults) Required(at *Path, why string) {
	f.add(meta.CauseRequired, at, because("Required value", why))
}

// Invalid says that a value breaks a rule.
func (f *Faults) Invalid(at *Path, value any, why string) {
	f.add(meta.CauseInvalid, at, because("Invalid value: "+show(value), why))
}

// WrongType says that a value has another JSON type than its field.
func (f *Faults) WrongType(at *Path, value any, want string) {
	f.add(meta.CauseTypeInvalid, at, because("Invalid value: "+show(value), "must be "+want))
}

// Forbidden says that a field may not be set, or not be changed.
func (f *Faults) Forbidden(at *Path, why string) {
	f.add(meta.CauseForbidden, at, because("Forbidden", why))
}

// Duplicate says that a value is there twice.
func (f *Faults) Duplicate(at *Path, value any) {
	f.add(meta.CauseDuplicate, at, "Duplicate value: "+show(value))
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
	f.add(meta.CauseNotFound, at, "Not found: "+show(value))
}

// NotSupported says that a value is none of the known ones.
func (f *Faults) NotSupported(at *Path, value any, known ...string) {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = show(k)
	}
	f.add(meta.CauseNotSupported, at, because("Unsupported value: "+show(value), "supported values: "+strings.Join(words, ", ")))
}

// TooLong says that a value has more than limit bytes.
func (f *Faults) TooLong(at *Path, limit int) {
	f.add(meta.CauseTooLong, at, fmt.Sprintf("Too long: may not be more than %d bytes", limit))
}

// TooMany says that a list or map has more than limit items.
func (f *Faults) TooMany(at *Path, count, limit int) {
	f.add(meta.CauseTooMany, at, fmt.Sprintf("Too many: %d: must have at most %d items", count, limit))
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

// Label checks a required DNS label.
func (f *Faults) Label(at *Path, name string) {
	if name == "" {
		f.Required(at, "")
		return
	}
	f.Format(at, name, meta.CheckDNSLabel(name))
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
		f.Invalid(at, n, fmt.Sprintf("must be between %d and %d, inclusive", low, high))
	}
}

// Unchanged checks that two JSON-like values are the same.
func (f *Faults) Unchanged(at *Path, now, before any) {
	if !Same(now, before) {
		f.Invalid(at, now, "field is immutable")
	}
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// show returns a value as messages quote it, cut to a length that is fit to
// read.
func show(v any) string {
	const most = 256
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return "?"
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
