package schema

import (
	"encoding/json"
	"math"
	"unicode/utf8"

	"orch.io/controlplane/registry/meta"
)

// text checks a string.
func (v *validator) text(x string, s *Schema) {
	v.spelling(x, s)
	if s.Format != "" && !s.IntOrString && s.Wire == Plain && !hasFormat(x, s.Format) {
		v.cause(meta.CauseTypeInvalid, "Invalid value: %s: must have the format %s", show(x), s.Format)
	}
}

// spelling tells the first thing that is wrong with the length, in characters,
// and the form of a string.
func (v *validator) spelling(x string, s *Schema) {
	if s.MaxLength != nil && int64(len(x)) > *s.MaxLength && int64(utf8.RuneCountInString(x)) > *s.MaxLength {
		v.cause(meta.CauseTooLong, "Too long: may not be more than %d characters", *s.MaxLength)
		return
	}
	if s.MinLength != nil && int64(utf8.RuneCountInString(x)) < *s.MinLength {
		v.cause(meta.CauseInvalid, "Invalid value: %s: must be at least %d characters long", show(x), *s.MinLength)
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
			v.cause(meta.CauseInvalid, "Invalid value: %s: must match the pattern %s", show(x), s.Pattern)
		}
	}
}

func (v *validator) number(f float64, x any, s *Schema) {
	if s.Minimum != nil && (f < *s.Minimum || s.ExclusiveMin && f == *s.Minimum) {
		v.cause(meta.CauseInvalid, "Invalid value: %s: must be greater than%s %v", show(x), orEqual(s.ExclusiveMin), *s.Minimum)
	}
	if s.Maximum != nil && (f > *s.Maximum || s.ExclusiveMax && f == *s.Maximum) {
		v.cause(meta.CauseInvalid, "Invalid value: %s: must be less than%s %v", show(x), orEqual(s.ExclusiveMax), *s.Maximum)
	}
	if s.MultipleOf != nil && *s.MultipleOf > 0 {
		if q := f / *s.MultipleOf; math.Abs(q-math.Round(q)) > 1e-9*math.Max(1, math.Abs(q)) {
			v.cause(meta.CauseInvalid, "Invalid value: %s: must be a multiple of %v", show(x), *s.MultipleOf)
		}
	}
	if s.Type == Integer {
		if lo, hi := integerRange(s.Format); f < float64(lo) || f > float64(hi) {
			v.whole("Invalid value: %s: must fit %s", show(x), s.Format)
		}
	}
}

func orEqual(exclusive bool) string {
	if exclusive {
		return ""
	}
	return " or equal to"
}

func isInteger(f float64) bool { return f == math.Trunc(f) && !math.IsInf(f, 0) }

// show returns a value for a message, short.
func show(x any) string {
	switch x.(type) {
	case map[string]any, []any:
		return typeOf(x)
	}
	b, err := json.Marshal(x)
	if err != nil {
		return "?"
	}
	return clip(string(b))
}
