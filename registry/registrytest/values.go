package registrytest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// integer makes an integer within the bounds of the schema, by default between -1000 and 1000.
func (g *generator) integer(s *schema.Schema) any {
	low, high := bounds(s, -1000, 1000, 1)
	switch s.Format {
	case "int8":
		low, high = max(low, math.MinInt8), min(high, math.MaxInt8)
	case "uint8":
		low, high = max(low, 0), min(high, math.MaxUint8)
	case "int32":
		low, high = max(low, math.MinInt32), min(high, math.MaxInt32)
	case "uint", "uint16", "uint32", "uint64":
		low = max(low, 0)
	}
	step := 1.0
	if s.MultipleOf != nil {
		step = max(1, math.Ceil(*s.MultipleOf))
	}
	return int64(g.multiple(low, high, step))
}

// number makes a number within the bounds of the schema.
func (g *generator) number(s *schema.Schema) any {
	step := 0.25
	if s.MultipleOf != nil {
		step = *s.MultipleOf
	}
	low, high := bounds(s, 0, 250, step)
	return g.multiple(low, high, step)
}

// bounds returns the bounds of a number. A missing bound is a thousand steps from the other. An
// exclusive bound is moved inwards by a step.
func bounds(s *schema.Schema, low, high, step float64) (float64, float64) {
	if s.Minimum != nil {
		if low = *s.Minimum; s.ExclusiveMin {
			low += step
		}
		high = max(high, low+1000*step)
	}
	if s.Maximum != nil {
		if high = *s.Maximum; s.ExclusiveMax {
			high -= step
		}
		if s.Minimum == nil {
			low = min(low, high-1000*step)
		}
	}
	return low, high
}

// multiple returns a random multiple of step between low and high.
func (g *generator) multiple(low, high, step float64) float64 {
	first, last := math.Ceil(low/step), math.Floor(high/step)
	g.must(first <= last, "multiple of %v from %v to %v", step, low, high)
	return (first + float64(g.Int64N(int64(max(last-first, 0))+1))) * step
}

// text makes a string with the pattern or format and the length of the schema.
func (g *generator) text(s *schema.Schema) string {
	least, most := length(s.MinLength, 0), length(s.MaxLength, math.MaxInt)
	next := func(int) string { return g.formatted(s.Format, least, most) }
	if pattern := cmp.Or(s.Pattern, formatPattern(s.Format)); pattern != "" {
		next = g.matching(pattern)
	}
	for try := range attempts {
		text := next(try)
		if n := utf8.RuneCountInString(text); text != "" && n >= least && n <= most {
			return text
		}
	}
	g.must(most == 0, "text of the required length with the pattern %q and the format %q", s.Pattern, s.Format)
	return ""
}

// length returns *n, or the default if n is nil.
func length(n *int64, byDefault int) int {
	if n == nil {
		return byDefault
	}
	return int(*n)
}

// formatPattern returns a pattern for strings of a format, or "" if any word or the result of
// formatted has the format.
func formatPattern(format string) string {
	switch format {
	case "uuid", "uuid4":
		return "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
	case "uuid3", "uuid5":
		return "[0-9a-f]{8}-[0-9a-f]{4}-" + format[4:] + "[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
	case "hexcolor":
		return "#[0-9a-f]{6}"
	case "rgbcolor":
		return `rgb\(1\d\d,2[0-4]\d,[1-9]\d\)`
	case "ssn":
		return `\d{3}-\d{2}-\d{4}`
	case "bsonobjectid":
		return "[0-9a-f]{24}"
	case "mac":
		return "([0-9a-f]{2}:){5}[0-9a-f]{2}"
	case "uri":
		return "https://[a-z]{1,8}\\.example/[a-z]{1,8}"
	case "email":
		return "[a-z]{1,8}@[a-z]{1,8}\\.example"
	case "signer-name":
		return "[a-z]{1,8}\\.example/[a-z]{1,8}"
	case "ip", "ipv4":
		return `10\.1\d\d\.2[0-4]\d\.[1-9]\d`
	case "ipv6":
		return "fd00::[1-9a-f][0-9a-f]{3}"
	case "cidr":
		return `10\.1\d\d\.0\.0/16`
	case "isbn", "isbn10":
		return "0306406152|080442957X"
	case "isbn13":
		return "9780306406157|9783161484100"
	case "creditcard":
		return "4111111111111111|5500005555555559"
	}
	return ""
}

// formatted makes a string of a format, or by default a word, which is valid in all formats for
// names.
func (g *generator) formatted(format string, least, most int) string {
	switch format {
	case "date":
		return g.time().Format(time.DateOnly)
	case "date-time", "datetime":
		return g.time().Format(time.RFC3339)
	case "duration":
		return g.duration()
	case "byte":
		return base64.StdEncoding.EncodeToString([]byte(g.word()))
	}
	return g.letters(min(max(least, 1)+g.IntN(8), most))
}

// formed makes a value of a schema with a special JSON form, such as a time or a quantity.
func (g *generator) formed(s *schema.Schema) any {
	switch s.Wire {
	case schema.Time:
		return meta.FormatTime(g.time())
	case schema.MicroTime:
		return meta.FormatMicroTime(g.time().Add(time.Duration(g.IntN(1e6)) * time.Microsecond))
	case schema.Quantity:
		return fmt.Sprintf("%d%s", 1+2*g.IntN(400), []string{"", "m", "Ki", "Mi"}[g.IntN(4)])
	case schema.IntOrString, schema.Plain:
		return g.intOrString(s)
	case schema.Bytes:
		return base64.StdEncoding.EncodeToString([]byte(g.word()))
	case schema.Duration:
		return g.duration()
	case schema.OrBoolean, schema.OrList:
		return g.object(&schema.Schema{Type: schema.Object, Struct: s.Struct}, nil)
	case schema.Fields:
		return map[string]any{"f:spec": map[string]any{"f:" + g.word(): g.word()}}
	}
	return map[string]any{"raw": g.word()}
}

// intOrString makes an integer or a string.
func (g *generator) intOrString(s *schema.Schema) any {
	switch {
	case g.IntN(2) == 0 && s.Format == "int-or-percent":
		return fmt.Sprintf("%d%%", g.IntN(101))
	case s.Format == "int-or-percent":
		return g.Int64N(100)
	case g.IntN(2) == 0:
		return g.text(&schema.Schema{Pattern: s.Pattern, MinLength: s.MinLength, MaxLength: s.MaxLength})
	}
	low, high := bounds(s, 1, 60000, 1)
	return int64(g.multiple(low, high, 1))
}

func (g *generator) time() time.Time {
	return time.Date(2000+g.IntN(30), time.Month(1+g.IntN(12)), 1+g.IntN(28), g.IntN(24), g.IntN(60), g.IntN(60), 0, time.UTC)
}

func (g *generator) duration() string { return (time.Duration(g.IntN(1e5)) * time.Second).String() }

// word makes a short DNS label, which is valid in most formats.
func (g *generator) word() string { return g.letters(1 + g.IntN(8)) }

// letters makes a string of n lower-case letters.
func (g *generator) letters(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + g.IntN(26))
	}
	return string(b)
}
