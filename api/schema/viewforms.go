package schema

import (
	"math"

	"orch.io/controlplane/api/meta"
)

// readKnown fills dst, a pointer to one of package meta's values, as its
// UnmarshalJSON would, without a round through JSON text. It reports false for
// every other value, and for what these do not take.
func readKnown(v, dst any) bool {
	s, isText := v.(string)
	var err error
	switch dst := dst.(type) {
	case *meta.Time:
		err = dst.UnmarshalText([]byte(s))
	case *meta.MicroTime:
		err = dst.UnmarshalText([]byte(s))
	case *meta.Quantity:
		*dst, err = meta.ParseQuantity(s)
	case *meta.IntOrString:
		if n, ok := v.(int64); ok && n >= math.MinInt32 && n <= math.MaxInt32 {
			*dst = meta.FromInt(int32(n))
			return true
		}
		*dst = meta.FromString(s)
	default:
		return false
	}
	return isText && err == nil
}

// writeKnown returns what one of package meta's values, given by its pointer,
// is in a tree; false for every other value.
func writeKnown(src any) (any, bool) {
	switch v := src.(type) {
	case *meta.Time:
		if v.IsZero() {
			return nil, true
		}
		return meta.FormatTime(v.Time), true
	case *meta.MicroTime:
		if v.IsZero() {
			return nil, true
		}
		return meta.FormatMicroTime(v.Time), true
	case *meta.Quantity:
		return v.String(), true
	case *meta.IntOrString:
		if v.IsString {
			return v.Text, true
		}
		return int64(v.Int), true
	}
	return nil, false
}
