// Package duration reads durations as the format of schemas of that name has them.
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

// unit is a unit of time with its short names; all that begins with its name is one of it.
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

// Parse reads a duration as Go writes it, or the sum of all numbers with a unit that a text
// holds, such as 3 weeks. What is longer than the longest duration is that.
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
