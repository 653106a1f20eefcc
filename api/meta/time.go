package meta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Time is an instant with whole seconds. Its JSON is RFC 3339 in UTC, or null for the zero
// time.
type Time struct{ time.Time }

// MicroTime is an instant with microseconds. Its JSON is RFC 3339 in UTC with six fractional
// digits, or null for the zero time.
type MicroTime struct{ time.Time }

// MicroLayout is the layout of MicroTime, always with six fractional digits.
const MicroLayout = "2006-01-02T15:04:05.000000Z07:00"

// NewTime returns t in UTC, truncated to seconds.
func NewTime(t time.Time) Time { return Time{t.UTC().Truncate(time.Second)} }

// NewMicroTime returns t in UTC, truncated to microseconds.
func NewMicroTime(t time.Time) MicroTime { return MicroTime{t.UTC().Truncate(time.Microsecond)} }

// APIForm returns the name of the encoding for package schema.
func (Time) APIForm() string { return "time" }

// APIForm returns the name of the encoding for package schema.
func (MicroTime) APIForm() string { return "micro-time" }

// MarshalJSON writes the time as FormatTime does, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(FormatTime(t.Time))
}

// UnmarshalText reads RFC 3339 and truncates the time to seconds.
func (t *Time) UnmarshalText(b []byte) error {
	v, err := parseText(string(b))
	t.Time = v.Truncate(time.Second)
	return err
}

// UnmarshalJSON reads RFC 3339 or null and truncates the time to seconds.
func (t *Time) UnmarshalJSON(b []byte) (err error) {
	t.Time, err = parseTime(b)
	t.Time = t.Truncate(time.Second)
	return err
}

// MarshalJSON writes the time as FormatMicroTime does, or null.
func (t MicroTime) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return json.Marshal(FormatMicroTime(t.Time))
}

// UnmarshalText reads RFC 3339 with any number of fractional digits.
func (t *MicroTime) UnmarshalText(b []byte) error {
	v, err := parseText(string(b))
	t.Time = v.Truncate(time.Microsecond)
	return err
}

// UnmarshalJSON reads RFC 3339 with any number of fractional digits, or null.
func (t *MicroTime) UnmarshalJSON(b []byte) (err error) {
	t.Time, err = parseTime(b)
	t.Time = t.Truncate(time.Microsecond)
	return err
}

// FormatMicroTime returns t as RFC 3339 in UTC with six fractional digits.
func FormatMicroTime(t time.Time) string { return t.UTC().Format(MicroLayout) }

func parseTime(b []byte) (time.Time, error) {
	if bytes.Equal(b, []byte("null")) {
		return time.Time{}, nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return time.Time{}, fmt.Errorf("time must be a string: %w", err)
	}
	return parseText(s)
}

func parseText(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("not an RFC 3339 time: %q", s)
	}
	return t.UTC(), nil
}
