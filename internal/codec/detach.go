package codec

import (
	"strings"

	"orch.io/controlplane/api/meta"
)

// Detach returns a copy of a tree that holds on to nothing of the text that it was decoded
// from: the strings of a decoded object are parts of one, which each of them keeps. It is for
// those who keep a little of a large object.
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
