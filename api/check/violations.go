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

// Limits on the violations of an object: their number, and the bytes of the value and of the
// reason in each. A reason may quote the value.
const (
	maxViolations = 100
	maxShown      = 256
	maxReason     = 16 << 10
)

// Violations is a list of causes for the fields of an object that are invalid. Methods append to
// it, up to 100 causes; further causes are dropped. The zero value is an empty list. Violations is
// not safe for concurrent use.
type Violations []meta.StatusCause

func (f *Violations) add(r wording.Rule, at *Path, value any, limit string) {
	if len(*f) < maxViolations {
		*f = append(*f, r.Cause(at.String(), show(value), cut(limit, maxReason), true))
	}
}

// Hidden is a value that messages do not show. Use it for the value of a large field.
type Hidden struct{}

// In reports whether a violation is at the path or below it.
func (f Violations) In(at *Path) bool {
	root := at.String()
	return slices.ContainsFunc(f, func(c meta.StatusCause) bool {
		rest, ok := strings.CutPrefix(c.Field, root)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Required adds a violation for a missing value.
func (f *Violations) Required(at *Path, why string) {
	f.add(wording.Required, at, nil, why)
}

// Invalid adds a violation for a value that violates a rule; why describes the rule.
func (f *Violations) Invalid(at *Path, value any, why string) {
	f.add(wording.Invalid, at, value, why)
}

// WrongType adds a violation for a value with another JSON type than its field.
func (f *Violations) WrongType(at *Path, value any, want string) {
	f.add(wording.Shape, at, value, want)
}

// Forbidden adds a violation for a field that must not be set or changed.
func (f *Violations) Forbidden(at *Path, why string) {
	f.add(wording.Forbidden, at, nil, why)
}

// Duplicate adds a violation for a value that repeats an earlier one.
func (f *Violations) Duplicate(at *Path, value any) {
	f.add(wording.Duplicate, at, value, "")
}

// Unique adds a violation for each repeated string in list.
func (f *Violations) Unique(at *Path, list []string) {
	seen := make(map[string]bool, len(list))
	for i, word := range list {
		if seen[word] {
			f.Duplicate(at.Index(i), word)
		}
		seen[word] = true
	}
}

// NotFound adds a violation for a reference to something that does not exist.
func (f *Violations) NotFound(at *Path, value any) {
	f.add(wording.NotFound, at, value, "")
}

// NotSupported adds a violation for a value that is not a known value.
func (f *Violations) NotSupported(at *Path, value any, known ...string) {
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = show(k)
	}
	f.add(wording.Enum, at, value, strings.Join(words, ", "))
}

// TooLong adds a violation for a value of more than limit bytes.
func (f *Violations) TooLong(at *Path, limit int) {
	f.add(wording.MaxLength, at, nil, strconv.Itoa(limit))
}

// TooMany adds a violation for a list or map of count items, more than limit.
func (f *Violations) TooMany(at *Path, count, limit int) {
	f.add(wording.MaxItems, at, count, strconv.Itoa(limit))
}

// Format adds an Invalid violation for each of the reasons that a format check returned. Without
// reasons, the value is valid.
func (f *Violations) Format(at *Path, value any, reasons []string) {
	for _, why := range reasons {
		f.Invalid(at, value, why)
	}
}

// OneOf adds a violation unless value is a known value.
func (f *Violations) OneOf(at *Path, value string, known ...string) {
	if !slices.Contains(known, value) {
		f.NotSupported(at, value, known...)
	}
}

// RequiredOneOf is OneOf, but reports an empty value as missing.
func (f *Violations) RequiredOneOf(at *Path, value string, known ...string) {
	if value == "" {
		f.Required(at, "")
		return
	}
	f.OneOf(at, value, known...)
}

// OptionalOneOf is OneOf for a value that may be nil.
func (f *Violations) OptionalOneOf(at *Path, value *string, known ...string) {
	if value != nil {
		f.OneOf(at, *value, known...)
	}
}

// RequiredField adds a violation if value, the named field below at, is empty.
func (f *Violations) RequiredField(at *Path, field, value string) {
	if value == "" {
		f.Required(at.Field(field), "")
	}
}

// Subdomain adds violations unless name is empty or a DNS subdomain.
func (f *Violations) Subdomain(at *Path, name string) {
	if name != "" {
		f.Format(at, name, meta.CheckDNSSubdomain(name))
	}
}

// Port adds a violation unless n is a port number.
func (f *Violations) Port(at *Path, n int64) { f.Range(at, n, 1, 65535) }

// Range adds a violation unless low <= n <= high.
func (f *Violations) Range(at *Path, n, low, high int64) {
	if n < low || n > high {
		f.add(wording.Between, at, n, fmt.Sprintf("%d and %d", low, high))
	}
}

// Unchanged adds a violation unless now and before are equal in the sense of Same.
func (f *Violations) Unchanged(at *Path, now, before any) {
	if !SemanticEqual(now, before) {
		f.add(wording.Immutable, at, now, "")
	}
}

// show returns a value as messages quote it, cut to maxShown bytes. It formats at most maxShown
// items of a list.
func show(v any) string {
	if v == any(Hidden{}) {
		return ""
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.Type().Elem().Kind() != reflect.Uint8 && list.Len() > maxShown {
		v = list.Slice(0, maxShown).Interface()
	}
	return cut(string(wording.AppendJSON(nil, v)), maxShown)
}

// cut returns text, cut to most bytes and followed by dots if it is longer.
func cut(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
