package registrytest

import (
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
)

// difference returns the path of the first value in which two trees differ, and both values as
// text.
func difference(path string, a, b any) (at, want, got string, differ bool) {
	if meta.Equal(a, b) {
		return "", "", "", false
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			return fieldDifference(path, x, y)
		}
	case []any:
		y, ok := b.([]any)
		for i := 0; ok && i < min(len(x), len(y)); i++ {
			if at, want, got, differ = difference(fmt.Sprintf("%s[%d]", path, i), x[i], y[i]); differ {
				return at, want, got, true
			}
		}
	}
	return path, text(a), text(b), true
}

// fieldDifference is difference for two objects.
func fieldDifference(path string, a, b map[string]any) (at, want, got string, differ bool) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		below := name
		if path != "" {
			below = path + "." + name
		}
		x, inA := a[name]
		y, inB := b[name]
		switch {
		case !inA:
			return below, "unset", text(y), true
		case !inB:
			return below, text(x), "unset", true
		}
		if at, want, got, differ = difference(below, x, y); differ {
			return at, want, got, true
		}
	}
	return "", "", "", false
}

// text returns a value as JSON, truncated.
func text(v any) string {
	const most = 200
	s := string(codec.EncodeValue(nil, v))
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
