package codec

import "orch.io/controlplane/api/meta"

// EstimateSize estimates the encoded size of a JSON value in bytes. It stops counting above
// limit.
func EstimateSize(v any, limit int) int {
	n := 8
	switch v := v.(type) {
	case string:
		n += len(v)
	case meta.RawJSON:
		n += len(v)
	case map[string]any:
		for k, e := range v {
			if n += len(k) + 8; n > limit {
				return n
			}
			n += EstimateSize(e, limit-n)
		}
	case []any:
		for _, e := range v {
			if n > limit {
				return n
			}
			n += EstimateSize(e, limit-n)
		}
	}
	return n
}
