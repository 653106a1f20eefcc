package apply

import "orch.io/controlplane/api/meta"

// MergePatch returns obj changed by a JSON merge patch (RFC 7386): members of
// the patch are set, null removes, lists are replaced. Neither input is changed.
func MergePatch(obj, patch map[string]any) map[string]any {
	out := make(map[string]any, len(obj)+len(patch))
	for k, v := range obj {
		if _, touched := patch[k]; !touched {
			out[k] = meta.Clone(v)
		}
	}
	for k, p := range patch {
		switch p := p.(type) {
		case nil:
		case map[string]any:
			old, _ := obj[k].(map[string]any)
			out[k] = MergePatch(old, p)
		default:
			out[k] = meta.Clone(p)
		}
	}
	return out
}
