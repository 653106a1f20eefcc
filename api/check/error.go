package check

import "strings"

// Error is an error that names the fields that are wrong.
type Error struct{ Faults Faults }

// Err returns the faults as an error, an *Error, for functions that return errors; nil
// if there are none.
func (f *Faults) Err() error {
	if len(*f) == 0 {
		return nil
	}
	return &Error{*f}
}

// Error tells all of the faults.
func (e *Error) Error() string {
	texts := make([]string, len(e.Faults))
	for i, c := range e.Faults {
		texts[i] = c.Field + ": " + c.Message
	}
	return strings.Join(texts, ", ")
}
