package schema

import "strconv"

// quantity brings a quantity into canonical form; a JSON number counts as its text.
func (c *conformer) quantity(v any) (any, bool) {
	var text string
	switch v := v.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		c.mismatch(v, "a quantity")
		return nil, false
	}
	if _, isText := v.(string); isText {
		return nil, false
	}
	return text, true
}
