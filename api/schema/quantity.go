package schema

import (
	"math/big"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
)

// quantity converts a quantity to its canonical text. JSON numbers are accepted, and white
// space around a string is ignored.
func (c *normalizer) quantity(v any, s *Schema) (any, bool) {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		c.fault("%s", meta.QuantityForm)
		return nil, false
	}
	canonical, err := meta.CanonicalQuantity(strings.TrimSpace(text))
	if err != nil {
		c.fault("%v", err)
		return nil, false
	}
	if s.milli {
		canonical = ceilMilli(canonical)
	}
	if old, ok := v.(string); ok && old == canonical {
		return nil, false
	}
	return canonical, true
}

// ceilMilli rounds a canonical quantity away from zero to thousandths. A finer quantity has one
// of the suffixes n, u, e-6 and e-9 in canonical form.
func ceilMilli(canonical string) string {
	suffix := "m"
	switch {
	case strings.HasSuffix(canonical, "e-6"), strings.HasSuffix(canonical, "e-9"):
		suffix = "e-3"
	case !strings.HasSuffix(canonical, "n") && !strings.HasSuffix(canonical, "u"):
		return canonical
	}
	q, err := meta.ParseQuantity(canonical)
	if err != nil {
		return canonical
	}
	r := q.Rat()
	whole, rest := new(big.Int).QuoRem(new(big.Int).Mul(r.Num(), big.NewInt(1000)), r.Denom(), new(big.Int))
	whole.Add(whole, big.NewInt(int64(rest.Sign())))
	rounded, err := meta.CanonicalQuantity(whole.String() + suffix)
	if err != nil {
		return canonical
	}
	return rounded
}
