package batch

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // which zones there are does not depend on where the server runs
)

// field is a field of a schedule: its range, and the names of its numbers.
type field struct {
	low, high int
	names     []string // the name of low, and of the numbers after it
}

func fields() []field {
	return []field{
		{0, 59, nil}, {0, 23, nil}, {1, 31, nil},
		{1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{0, 6, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// checkSchedule returns an error unless text is a schedule of 5 fields or a descriptor such as @daily
// or @every 5m. It accepts a leading time zone, which validation rejects in new schedules.
func checkSchedule(text string) error {
	if rest, ok := strings.CutPrefix(text, "CRON_"); ok || strings.HasPrefix(text, "TZ=") {
		zone, after, _ := strings.Cut(strings.TrimPrefix(rest, "TZ="), " ")
		if _, err := time.LoadLocation(zone); err != nil {
			return fmt.Errorf("provided bad location %s: %w", zone, err)
		}
		text = strings.TrimSpace(after)
	}
	if strings.HasPrefix(text, "@") {
		return checkDescriptor(text)
	}
	parts, known := strings.Fields(text), fields()
	if len(parts) != len(known) {
		return fmt.Errorf("expected exactly %d fields, found %d: %s", len(known), len(parts), parts)
	}
	for i, part := range parts {
		for item := range strings.SplitSeq(part, ",") {
			if err := known[i].check(item); item != "" && err != nil {
				return err
			}
		}
	}
	return nil
}

// checkDescriptor checks a schedule that begins with @.
func checkDescriptor(text string) error {
	if wait, ok := strings.CutPrefix(text, "@every "); ok {
		if _, err := time.ParseDuration(wait); err != nil {
			return fmt.Errorf("failed to parse duration %s: %w", text, err)
		}
		return nil
	}
	if !slices.Contains([]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}, text) {
		return fmt.Errorf("unrecognized descriptor: %s", text)
	}
	return nil
}

// check checks an item of a field: *, a number or a range, optionally followed by a step.
func (f field) check(item string) error {
	span, step, stepped := strings.Cut(item, "/")
	from, to, ranged := strings.Cut(span, "-")
	first, last := f.low, f.high
	var err error
	if from != "*" && from != "?" {
		if first, err = f.number(from); err != nil {
			return err
		}
		switch {
		case strings.Contains(to, "-"):
			return fmt.Errorf("too many hyphens: %s", item)
		case ranged:
			if last, err = f.number(to); err != nil {
				return err
			}
		case !stepped:
			last = first
		}
	}
	if strings.Contains(step, "/") {
		return fmt.Errorf("too many slashes: %s", item)
	}
	n := 1
	if stepped {
		if n, err = number(step); err != nil {
			return err
		}
	}
	switch {
	case first < f.low:
		return fmt.Errorf("beginning of range (%d) below minimum (%d): %s", first, f.low, item)
	case last > f.high:
		return fmt.Errorf("end of range (%d) above maximum (%d): %s", last, f.high, item)
	case first > last:
		return fmt.Errorf("beginning of range (%d) beyond end of range (%d): %s", first, last, item)
	case n == 0:
		return fmt.Errorf("step of range should be a positive number: %s", item)
	}
	return nil
}

// number parses a number or a name of the field.
func (f field) number(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.low + i, nil
	}
	return number(text)
}

func number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("failed to parse int from %s: %w", text, err)
	case n < 0:
		return 0, fmt.Errorf("negative number (%d) not allowed: %s", n, text)
	}
	return n, nil
}

// checkZone returns the violations in the name of a time zone.
func checkZone(name string) (faults []error) {
	if name == "" {
		return []error{errors.New("timeZone must be nil or non-empty string")}
	}
	if strings.EqualFold(name, "Local") {
		faults = append(faults, errors.New("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if !fs.ValidPath(name) { // some systems load time zones from files, and several paths may lead to the same file
		return append(faults, fmt.Errorf("unknown time zone %s", name))
	}
	if _, err := time.LoadLocation(name); err != nil {
		faults = append(faults, err)
	}
	return faults
}
