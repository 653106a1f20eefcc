// Package duration parses values of the OpenAPI format duration.
package duration

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var part = regexp.MustCompile(`([0-9]+)\s*([A-Za-zµ]+)`)

// unit is a unit of time. A word denotes it if it is one of the short names or begins with the
// name.
type unit struct {
	size  time.Duration
	short []string
	name  string
}

var units = []unit{
	{time.Nanosecond, []string{"ns"}, "nano"},
	{time.Microsecond, []string{"us", "µs"}, "micro"},
	{time.Millisecond, []string{"ms"}, "milli"},
	{time.Second, []string{"s", "sec"}, "second"},
	{time.Minute, []string{"m", "min"}, "minute"},
	{time.Hour, []string{"h", "hr"}, "hour"},
	{24 * time.Hour, []string{"d"}, "day"},
	{7 * 24 * time.Hour, []string{"w", "wk"}, "week"},
}

// Parse parses a duration in Go's format, or adds up all numbers followed by a unit in text,
// such as "3 weeks". A sum that exceeds the range of time.Duration is limited to its maximum.
func Parse(text string) (sum time.Duration, err error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	found := false
	for _, match := range part.FindAllStringSubmatch(text, -1) {
		word := strings.ToLower(match[2])
		at := slices.IndexFunc(units, func(u unit) bool { return slices.Contains(u.short, word) || strings.HasPrefix(word, u.name) })
		if at < 0 {
			continue
		}
		n, err := strconv.ParseInt(match[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is out of range", text)
		}
		if found = true; n > int64((math.MaxInt64-sum)/units[at].size) {
			return math.MaxInt64, nil
		}
		sum += time.Duration(n) * units[at].size
	}
	if !found {
		return 0, fmt.Errorf("%q is not a duration", text)
	}
	return sum, nil
}
