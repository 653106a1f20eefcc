package meta

import (
	"strconv"
	"time"
)

// FormatAge returns the time since t in the format of table cells: at most two units, and the
// second one only for short ages ("5m30s", "3d4h", "2y10d"). It returns "<unknown>" for the
// zero time and "<invalid>" for a time in the future.
func FormatAge(t, now time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	d := now.Sub(t)
	if d < -time.Second {
		return "<invalid>"
	}
	return FormatDuration(max(d, 0))
}

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// FormatDuration returns a duration in the format of table cells.
func FormatDuration(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return units(d, time.Second, "s", 0, "")
	case d < 10*time.Minute:
		return units(d, time.Minute, "m", time.Second, "s")
	case d < 3*time.Hour:
		return units(d, time.Minute, "m", 0, "")
	case d < 8*time.Hour:
		return units(d, time.Hour, "h", time.Minute, "m")
	case d < 2*day:
		return units(d, time.Hour, "h", 0, "")
	case d < 8*day:
		return units(d, day, "d", time.Hour, "h")
	case d < 2*year:
		return units(d, day, "d", 0, "")
	case d < 8*year:
		return units(d, year, "y", day, "d")
	}
	return units(d, year, "y", 0, "")
}

func units(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := strconv.FormatInt(int64(d/big), 10) + bigName
	if small > 0 && d%big/small > 0 {
		s += strconv.FormatInt(int64(d%big/small), 10) + smallName
	}
	return s
}
