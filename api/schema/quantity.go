package schema

import (
	"strconv"

	"orch.io/controlplane/api/meta"
)

// quantity brings a quantity into canonical form; a JSON number counts as its text.
func (c *conformer) quantity(v any) (any, bool) {
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
	canonical, err := meta.CanonicalQuantity(text)
	if err != nil {
		c.fault("%v", err)
		return nil, false
	}
	if old, ok := v.(string); ok && old == canonical {
		return nil, false
	}
	return canonical, true
}
