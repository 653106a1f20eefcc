package codec

import (
	"strings"

	"orch.io/controlplane/api/meta"
)

// Detach returns a deep copy of a tree that does not share memory with the text that the tree
// was decoded from. Use it to keep a small part of a large object: every string of a decoded
// tree keeps the whole text alive.
func Detach(tree map[string]any) map[string]any {
	if tree == nil {
		return nil
	}
	out := make(map[string]any, len(tree))
	for k, v := range tree {
		out[strings.Clone(k)] = detach(v)
	}
	return out
}

func detach(v any) any {
	switch v := v.(type) {
	case string:
		return strings.Clone(v)
	case meta.RawJSON:
		return meta.RawJSON(strings.Clone(string(v)))
	case map[string]any:
		return Detach(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = detach(e)
		}
		return out
	}
	return v
}
