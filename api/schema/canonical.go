package schema

import (
	"encoding/base64"
	"math"
	"time"

	"orch.io/controlplane/api/meta"
)

// wire converts a value to the canonical text of its encoding.
func (c *normalizer) wire(v any, s *Schema) (any, bool) {
	switch s.Wire {
	case Time, MicroTime:
		return c.time(v, s)
	case Quantity:
		return c.quantity(v, s)
	case IntOrString:
		c.intOrString(v, s)
	case Bytes:
		return c.bytes(v, s)
	case Duration:
		return c.duration(v, s)
	case OrBoolean:
		if _, ok := v.(bool); !ok {
			c.object(v, s)
		}
	case OrList:
		if _, ok := v.([]any); ok {
			c.list(v, &Schema{Type: Array, Items: &Schema{Type: Object, Struct: s.Struct}})
			break
		}
		c.object(v, s)
	case Fields:
		switch v.(type) {
		case map[string]any, meta.RawJSON:
		default:
			c.mismatch(v, s)
		}
	}
	return nil, false
}

func (c *normalizer) time(v any, s *Schema) (any, bool) {
	text, ok := v.(string)
	if !ok {
		c.mismatch(v, s)
		return nil, false
	}
	layout, canonical, micro := time.RFC3339, meta.FormatTime, s.Wire == MicroTime
	if micro {
		layout, canonical = meta.MicroLayout, meta.FormatMicroTime
	}
	t, err := time.Parse(layout, text)
	if err != nil {
		_, err = time.Parse(layout, clip(text)) // the same error for a shorter text
		c.fault("%v", err)
		return nil, false
	}
	if !micro && len(text) == len("2006-01-02T15:04:05Z") && text[len(text)-1] == 'Z' {
		return nil, false
	}
	if n := canonical(t); n != text {
		return n, true
	}
	return nil, false
}

func (c *normalizer) intOrString(v any, s *Schema) {
	switch v := v.(type) {
	case string:
	case int64:
		if v < math.MinInt32 || v > math.MaxInt32 {
			c.mismatch(v, s)
		}
	default:
		c.mismatch(v, s)
	}
}

func (c *normalizer) bytes(v any, s *Schema) (any, bool) {
	text, ok := v.(string)
	if !ok {
		c.mismatch(v, s)
		return nil, false
	}
	if canonicalBase64(text) {
		return nil, false
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		c.fault("%v", err)
		return nil, false
	}
	return base64.StdEncoding.EncodeToString(raw), true
}

func (c *normalizer) duration(v any, s *Schema) (any, bool) {
	text, ok := v.(string)
	if !ok {
		c.mismatch(v, s)
		return nil, false
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		c.fault("%q is not a duration", clip(text))
		return nil, false
	}
	if n := d.String(); n != text {
		return n, true
	}
	return nil, false
}

// canonicalBase64 reports whether decoding and encoding s again would return s.
func canonicalBase64(s string) bool {
	if len(s)%4 != 0 {
		return false
	}
	body := s
	for range 2 {
		if n := len(body); n > 0 && body[n-1] == '=' {
			body = body[:n-1]
		}
	}
	var last byte
	for i := range len(body) {
		c := body[i]
		switch {
		case c >= 'A' && c <= 'Z':
			last = c - 'A'
		case c >= 'a' && c <= 'z':
			last = c - 'a' + 26
		case c >= '0' && c <= '9':
			last = c - '0' + 52
		case c == '+':
			last = 62
		case c == '/':
			last = 63
		default:
			return false
		}
	}
	switch len(s) - len(body) {
	case 1:
		return last&3 == 0
	case 2:
		return last&15 == 0 && len(body)%4 == 2
	}
	return true
}

// integerRange returns the smallest and largest value of an integer format. uint64 is limited
// to int64, which trees use.
func integerRange(format string) (lo, hi int64) {
	switch format {
	case "int32":
		return math.MinInt32, math.MaxInt32
	case "int16":
		return math.MinInt16, math.MaxInt16
	case "int8":
		return math.MinInt8, math.MaxInt8
	case "uint8":
		return 0, math.MaxUint8
	case "uint16":
		return 0, math.MaxUint16
	case "uint32":
		return 0, math.MaxUint32
	case "uint64":
		return 0, math.MaxInt64
	}
	return math.MinInt64, math.MaxInt64
}

// clip shortens s for an error message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}
