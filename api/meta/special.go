package meta

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// IntOrString is an integer or a string, such as a port number or name, or a count or
// percentage. The zero value is the integer 0.
type IntOrString struct {
	IsString bool
	Int      int32
	Text     string
}

// FromInt returns n as an IntOrString.
func FromInt(n int32) IntOrString { return IntOrString{Int: n} }

// FromString returns s as an IntOrString.
func FromString(s string) IntOrString { return IntOrString{IsString: true, Text: s} }

// String returns the string, or the decimal digits of the integer.
func (v IntOrString) String() string {
	if v.IsString {
		return v.Text
	}
	return strconv.Itoa(int(v.Int))
}

// Percent returns the number in a string such as "25%", and whether v is such a string.
func (v IntOrString) Percent() (int, bool) {
	digits, ok := strings.CutSuffix(v.Text, "%")
	if !v.IsString || !ok || digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// APIForm returns the name of the encoding for package schema.
func (IntOrString) APIForm() string { return "int-or-string" }

// MarshalJSON writes a number or a string.
func (v IntOrString) MarshalJSON() ([]byte, error) {
	if v.IsString {
		return json.Marshal(v.Text)
	}
	return json.Marshal(v.Int)
}

// UnmarshalJSON reads a number, a string or null.
func (v *IntOrString) UnmarshalJSON(b []byte) error {
	*v = IntOrString{}
	if len(b) > 0 && b[0] == '"' {
		v.IsString = true
		return json.Unmarshal(b, &v.Text)
	}
	return json.Unmarshal(b, &v.Int)
}

// RawExtension is an arbitrary JSON object, kept as text.
type RawExtension struct{ Raw json.RawMessage }

// APIForm returns the name of the encoding for package schema.
func (RawExtension) APIForm() string { return "raw" }

// MarshalJSON writes the text unchanged.
func (r RawExtension) MarshalJSON() ([]byte, error) {
	if r.Raw == nil {
		return []byte("null"), nil
	}
	return r.Raw, nil
}

// UnmarshalJSON copies the text.
func (r *RawExtension) UnmarshalJSON(b []byte) error {
	r.Raw = nil
	if string(b) != "null" {
		r.Raw = append(r.Raw, b...)
	}
	return nil
}

// Duration is a length of time, written as "1h2m3s".
type Duration struct{ time.Duration }

// APIForm returns the name of the encoding for package schema.
func (Duration) APIForm() string { return "duration" }

// MarshalJSON writes a string such as "1h2m3s".
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads a string or null.
func (d *Duration) UnmarshalJSON(b []byte) (err error) {
	d.Duration = 0
	if string(b) == "null" {
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration must be a string: %w", err)
	}
	d.Duration, err = time.ParseDuration(s)
	return err
}
