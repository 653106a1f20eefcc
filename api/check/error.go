package check

import "strings"

// Error is an error that lists invalid fields.
type Error struct{ Faults Violations }

// Err returns the violations as an *Error, or nil if there are none. The error does not change if
// violations are added later.
func (f *Violations) Err() error {
	if len(*f) == 0 {
		return nil
	}
	return &Error{*f}
}

// Error returns the field and the message of each violation.
func (e *Error) Error() string {
	texts := make([]string, len(e.Faults))
	for i, c := range e.Faults {
		texts[i] = c.Field + ": " + c.Message
	}
	return strings.Join(texts, ", ")
}
