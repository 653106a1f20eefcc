// Package number compares the numbers of JSON trees, int64 and float64, by their decimal values
// as JSON.
//
// The value of a float64 is that of the shortest decimal text that parses to it, because this
// text is stored and sent to clients: 4.611686018427388e18 is 4611686018427388000, although the
// float64 is exactly 4611686018427387904.
package number

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// exact is 2^53. All integers up to it have an exact float64.
const exact = 1 << 53

// Integer returns the value of f as an int64. ok is false if f has a fraction or is out of
// range.
func Integer(f float64) (n int64, ok bool) {
	switch abs := math.Abs(f); {
	case abs < exact:
		n = int64(f)
		return n, float64(n) == f
	case abs < 1<<64:
		n, err := strconv.ParseInt(strconv.FormatFloat(f, 'f', -1, 64), 10, 64)
		return n, err == nil
	}
	return 0, false // out of range, infinite or NaN
}

// Equal reports whether n and f have the same value.
func Equal(n int64, f float64) bool {
	i, ok := Integer(f)
	return ok && i == n
}

// Compare compares two numbers, each an int64 or a float64: -1, 0 or 1. ok is false if a or b
// is of another type.
func Compare(a, b any) (order int, ok bool) {
	switch a := a.(type) {
	case int64:
		switch b := b.(type) {
		case int64:
			return cmp.Compare(a, b), true
		case float64:
			return compare(a, b), true
		}
	case float64:
		switch b := b.(type) {
		case int64:
			return -compare(b, a), true
		case float64:
			return cmp.Compare(a, b), true
		}
	}
	return 0, false
}

func compare(n int64, f float64) int {
	if i, ok := Integer(f); ok {
		return cmp.Compare(n, i)
	}
	if math.Abs(f) < exact {
		return cmp.Compare(float64(n), f) // f has a fraction, and n is rounded to an integer on the same side of it
	}
	return cmp.Compare(0, f)
}

// Text returns v, an int64 or a float64, as JSON. ok is false for other types.
func Text(v any) (text string, ok bool) {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

// SameText reports whether two JSON numbers have the same value, such as 10 and 1e1.
func SameText(a, b string) bool { return decimalOf(a) == decimalOf(b) }

// decimal is the number 0.digits * 10^exponent. digits has no leading or trailing zeros.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// decimalOf returns the value of a JSON number. Exponents are limited to 32 bits.
func decimalOf(text string) decimal {
	text, negative := strings.CutPrefix(text, "-")
	mantissa, e, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent, _ := strconv.ParseInt(e, 10, 32) // 0 without an exponent, the nearest int32 if out of range
	digits := strings.TrimLeft(whole+fraction, "0")
	point := len(whole) - (len(whole) + len(fraction) - len(digits))
	if digits = strings.TrimRight(digits, "0"); digits == "" {
		return decimal{}
	}
	return decimal{negative, digits, int(exponent) + point}
}
