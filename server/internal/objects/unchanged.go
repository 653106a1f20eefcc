package objects

import "orch.io/controlplane/api/meta"

// unchanged reports whether obj differs from live only in its resourceVersion and the times
// in managedFields. Such a write is not stored.
func unchanged(live, obj *meta.Object) bool {
	if live == nil {
		return false
	}
	a, b := live.Tree(), obj.Tree()
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if k == "metadata" {
			continue
		}
		if w, ok := b[k]; !ok || !meta.Equal(v, w) {
			return false
		}
	}
	return sameMetadata(live.Map("metadata"), obj.Map("metadata"))
}

func sameMetadata(a, b map[string]any) bool {
	for k, v := range a {
		switch k {
		case "resourceVersion":
		case "managedFields":
			x, _ := v.([]any)
			y, _ := b[k].([]any)
			if !sameEntries(x, y) {
				return false
			}
		default:
			if w, ok := b[k]; !ok || !meta.Equal(v, w) {
				return false
			}
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok && k != "resourceVersion" {
			return false
		}
	}
	return true
}

// sameEntries reports whether two managedFields lists are equal except for the times, and the order, which depends on
// the times.
func sameEntries(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	used := make([]bool, len(b))
	for i, x := range a {
		found := false
		for n := range b {
			j := (i + n) % len(b)
			if !used[j] && sameEntry(x, b[j]) {
				used[j], found = true, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return true
}

func sameEntry(x, y any) bool {
	a, _ := x.(map[string]any)
	b, _ := y.(map[string]any)
	for _, k := range []string{"manager", "operation", "apiVersion", "subresource", "fieldsType"} {
		if !meta.Equal(a[k], b[k]) {
			return false
		}
	}
	return meta.Equal(a["fieldsV1"], b["fieldsV1"])
}
