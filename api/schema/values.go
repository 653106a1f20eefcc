package schema

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/number"
)

// text validates a string.
func (v *validator) text(x string, s *Schema, canonical bool) {
	v.spelling(x, s, canonical)
	if s.Format == "" || s.Type != String && s.Type != Any || s.Wire != Plain {
		return
	}
	if s.Format == formatDriver && canonical {
		x = strings.ToLower(x) // like the reference server
	}
	if reasons := fieldFormat(s.Format); canonical && reasons != nil {
		v.addReasons(x, reasons(x))
		return
	}
	if !HasFormat(x, s.Format) {
		v.violation(wording.Format, x, s.Format, canonical)
	}
}

// spelling reports the first violation of the length in characters or the pattern.
func (v *validator) spelling(x string, s *Schema, canonical bool) {
	if s.MaxLength != nil && int64(len(x)) > *s.MaxLength && int64(utf8.RuneCountInString(x)) > *s.MaxLength {
		v.violation(wording.MaxLength, x, decimal(*s.MaxLength), canonical)
		return
	}
	if s.MinLength != nil && int64(utf8.RuneCountInString(x)) < *s.MinLength {
		v.violation(wording.MinLength, x, decimal(*s.MinLength), canonical)
		return
	}
	if s.Pattern != "" {
		re := s.re
		if re == nil {
			re, _ = compilePattern(s.Pattern)
		}
		if re != nil && !v.spend(len(x)*re.size/matchedAtOnce) {
			return
		}
		if re == nil || !re.MatchString(x) {
			v.fieldViolation(wording.Pattern, x, s.Pattern, s, canonical)
		}
	}
}

// number validates x, an int64 or a float64. f is x as a float64.
func (v *validator) number(f float64, x any, s *Schema, canonical bool) {
	if want := rangeOf(f, x, s); want != "" {
		v.violation(wording.Range, x, want, canonical)
	}
	if _, whole := x.(int64); whole && !canonical && s.Type != Integer {
		s = s.wholeBounds()
	}
	switch {
	case s.MultipleOf == nil:
	case *s.MultipleOf <= 0 && !canonical:
		v.violation(wording.Multiple, x, limitOf(*s.MultipleOf, x), canonical)
	case *s.MultipleOf > 0 && !isMultiple(f, x, *s.MultipleOf):
		v.fieldViolation(wording.MultipleOf, x, limitOf(*s.MultipleOf, x), s, canonical)
	}
	low, high := toBound(x, s.Minimum), toBound(x, s.Maximum)
	if s.Between && canonical {
		if low < 0 || high > 0 {
			v.fieldViolation(wording.Between, x, limitOf(*s.Minimum, x)+" and "+limitOf(*s.Maximum, x), s, canonical)
		}
		return
	}
	switch {
	case s.Minimum == nil || low > 0 || low == 0 && !s.ExclusiveMin:
	case s.ExclusiveMin:
		v.fieldViolation(wording.ExclusiveMinimum, x, limitOf(*s.Minimum, x), s, canonical)
	default:
		v.fieldViolation(wording.Minimum, x, limitOf(*s.Minimum, x), s, canonical)
	}
	switch {
	case s.Maximum == nil || high < 0 || high == 0 && !s.ExclusiveMax:
	case s.ExclusiveMax:
		v.fieldViolation(wording.ExclusiveMaximum, x, limitOf(*s.Maximum, x), s, canonical)
	default:
		v.fieldViolation(wording.Maximum, x, limitOf(*s.Maximum, x), s, canonical)
	}
}

// toBound compares x, an int64 or a float64, with a bound. It compares an int64 with the exact
// value of the bound's float64, like the reference server does for custom kinds. Without a
// bound it returns 0.
func toBound(x any, bound *float64) int {
	if bound == nil {
		return 0
	}
	n, whole := x.(int64)
	switch f, _ := x.(float64); {
	case !whole:
		return cmp.Compare(f, *bound)
	case *bound < -1<<63 || *bound >= 1<<63:
		return cmp.Compare(0, *bound)
	}
	return cmp.Or(cmp.Compare(n, int64(*bound)), cmp.Compare(math.Trunc(*bound), *bound))
}

// wholeBounds returns a copy of s with bounds truncated to integers. The reference server
// compares integers with such bounds for custom kinds.
func (s *Schema) wholeBounds() *Schema {
	cut := *s
	for _, bound := range []**float64{&cut.Minimum, &cut.Maximum, &cut.MultipleOf} {
		if *bound != nil {
			whole := math.Trunc(**bound)
			*bound = &whole
		}
	}
	return &cut
}

// rangeOf returns the type that cannot represent x, or "" if the type of s can. f is x as a
// float64.
func rangeOf(f float64, x any, s *Schema) string {
	_, fits := x.(int64)
	if !fits {
		_, fits = number.Integer(f)
	}
	switch {
	case s.Type == Integer && s.Format == "int32":
		if f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
			return "integer with format int32"
		}
	case s.Type == Integer && !fits:
		if s.Format == "int64" {
			return "integer with format int64"
		}
		return "integer (default format)"
	case s.Type == Number && s.Format == "float" && math.Abs(f) > math.MaxFloat32:
		return "number with format float"
	}
	return ""
}

// isMultiple reports whether x is a multiple of step: exactly for integers, within rounding
// errors for fractions. f is x as a float64.
func isMultiple(f float64, x any, step float64) bool {
	if n, ok := x.(int64); ok && step == math.Trunc(step) && step < 1<<63 {
		return n%int64(step) == 0
	}
	q := f / step
	return math.Abs(q-math.Round(q)) <= math.Min(1e-9*math.Max(1, math.Abs(q)), 1e-3)
}

// limitOf formats a bound for a message about x, as an integer if both are integers.
func limitOf(limit float64, x any) string {
	if _, ok := x.(int64); ok && limit == math.Trunc(limit) && math.Abs(limit) < 1<<63 {
		return decimal(int64(limit))
	}
	return fmt.Sprint(limit)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// isExact reports whether f is an integer that no other integer rounds to.
func isExact(f float64) bool { return f == math.Trunc(f) && math.Abs(f) < 1<<53 }

func isInteger(f float64) bool { return f == math.Trunc(f) && !math.IsInf(f, 0) }

func (v *validator) enum(x any, s *Schema, canonical bool) {
	for _, e := range s.Enum {
		if meta.Equal(e, x) && (x != nil || canonical) {
			return
		}
	}
	if v.full() {
		return
	}
	var words strings.Builder
	for i, e := range s.Enum {
		if i > 0 {
			words.WriteString(", ")
		}
		if words.Len() > 4*maxShown {
			words.WriteString("...")
			break
		}
		word := show(e)
		if _, text := e.(string); !text && !canonical {
			word = strconv.Quote(word)
		}
		words.WriteString(word)
	}
	v.violation(wording.Enum, x, words.String(), canonical)
}
