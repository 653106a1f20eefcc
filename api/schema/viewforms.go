package schema

import (
	"math"

	"orch.io/controlplane/api/meta"
)

// readKnown sets dst, a pointer to a type of package meta, like its UnmarshalJSON does but
// without JSON text. It returns false if it does not know the type or if v is invalid; the
// caller then uses UnmarshalJSON.
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

// writeKnown returns the tree value of src, a pointer to a type of package meta. It returns
// false for other types.
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
