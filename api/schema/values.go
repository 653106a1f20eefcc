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

// text checks a string.
func (v *validator) text(x string, s *Schema, canonical bool) {
	v.spelling(x, s, canonical)
	if s.Format == "" || s.Type != String && s.Type != Any || s.Wire != Plain {
		return
	}
	if s.Format == formatDriver && canonical {
		x = strings.ToLower(x) // as clients know it
	}
	if reasons := fieldFormat(s.Format); canonical && reasons != nil {
		v.written(x, reasons(x))
		return
	}
	if !HasFormat(x, s.Format) {
		v.breaks(wording.Format, x, s.Format, canonical)
	}
}

// spelling tells the first thing that is wrong with the length, in characters,
// and the form of a string.
func (v *validator) spelling(x string, s *Schema, canonical bool) {
	if s.MaxLength != nil && int64(len(x)) > *s.MaxLength && int64(utf8.RuneCountInString(x)) > *s.MaxLength {
		v.breaks(wording.MaxLength, x, decimal(*s.MaxLength), canonical)
		return
	}
	if s.MinLength != nil && int64(utf8.RuneCountInString(x)) < *s.MinLength {
		v.breaks(wording.MinLength, x, decimal(*s.MinLength), canonical)
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
			v.breaksOwn(wording.Pattern, x, s.Pattern, s, canonical)
		}
	}
}

// number checks a number, x, that is about f.
func (v *validator) number(f float64, x any, s *Schema, canonical bool) {
	if want := rangeOf(f, x, s); want != "" {
		v.breaks(wording.Range, x, want, canonical)
	}
	if _, whole := x.(int64); whole && !canonical && s.Type != Integer {
		s = s.wholeBounds()
	}
	switch {
	case s.MultipleOf == nil:
	case *s.MultipleOf <= 0 && !canonical:
		v.breaks(wording.Multiple, x, limitOf(*s.MultipleOf, x), canonical)
	case *s.MultipleOf > 0 && !isMultiple(f, x, *s.MultipleOf):
		v.breaksOwn(wording.MultipleOf, x, limitOf(*s.MultipleOf, x), s, canonical)
	}
	low, high := toBound(x, s.Minimum), toBound(x, s.Maximum)
	if s.Between && canonical {
		if low < 0 || high > 0 {
			v.breaksOwn(wording.Between, x, limitOf(*s.Minimum, x)+" and "+limitOf(*s.Maximum, x), s, canonical)
		}
		return
	}
	switch {
	case s.Minimum == nil || low > 0 || low == 0 && !s.ExclusiveMin:
	case s.ExclusiveMin:
		v.breaksOwn(wording.ExclusiveMinimum, x, limitOf(*s.Minimum, x), s, canonical)
	default:
		v.breaksOwn(wording.Minimum, x, limitOf(*s.Minimum, x), s, canonical)
	}
	switch {
	case s.Maximum == nil || high < 0 || high == 0 && !s.ExclusiveMax:
	case s.ExclusiveMax:
		v.breaksOwn(wording.ExclusiveMaximum, x, limitOf(*s.Maximum, x), s, canonical)
	default:
		v.breaksOwn(wording.Maximum, x, limitOf(*s.Maximum, x), s, canonical)
	}
}

// toBound compares a number, an int64 or a float64, with a bound: an int64 exactly with the
// float64 itself, which is what clients of definitions know. Without a bound it returns 0.
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

// wholeBounds cuts the fractions off what bounds a number. As clients of definitions
// know it, that is how whole numbers are compared.
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

// rangeOf names the type that a number, x, that is about f is too large or too
// fine for, "" if it fits.
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

// isMultiple reports whether a number, x, that is about f is a multiple of step:
// of integers exactly, of fractions as exactly as they can be written.
func isMultiple(f float64, x any, step float64) bool {
	if n, ok := x.(int64); ok && step == math.Trunc(step) && step < 1<<63 {
		return n%int64(step) == 0
	}
	q := f / step
	return math.Abs(q-math.Round(q)) <= math.Min(1e-9*math.Max(1, math.Abs(q)), 1e-3)
}

// limitOf writes a bound of the number x: an integer as such.
func limitOf(limit float64, x any) string {
	if _, ok := x.(int64); ok && limit == math.Trunc(limit) && math.Abs(limit) < 1<<63 {
		return decimal(int64(limit))
	}
	return fmt.Sprint(limit)
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

// isExact reports whether f is an integer that no other has the same float64 as.
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
	v.breaks(wording.Enum, x, words.String(), canonical)
}
