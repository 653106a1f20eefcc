package schema

import (
	"strings"

	"orch.io/controlplane/api/internal/wording"
	"orch.io/controlplane/api/meta"
)

// embedded checks apiVersion, kind and metadata of an embedded object.
func (v *validator) embedded(m map[string]any) {
	for _, name := range []string{"apiVersion", "kind"} {
		if _, ok := m[name]; !ok {
			v.inObject(wording.Required.Cause(name, "", "", false))
		}
	}
	for _, name := range []string{"apiVersion", "kind"} {
		if text, ok := m[name].(string); ok {
			for _, why := range checkTypeField(name, text) {
				v.inObject(wording.Invalid.Cause(name, show(text), why, false))
			}
		}
	}
	given, ok := m["metadata"].(map[string]any)
	if !ok {
		return
	}
	obj := meta.NewObject(map[string]any{"metadata": given})
	rules := meta.MetadataRules{Namespaced: obj.Namespace() != "", AnyFinalizer: true, Embedded: true}
	for _, c := range meta.ValidateMetadata(obj, nil, rules) {
		v.inObject(c)
	}
}

// inObject adds a cause for a field of the embedded object at the path.
func (v *validator) inObject(c meta.StatusCause) {
	if !v.full() {
		if at := v.path.keyed(); at != "" {
			c.Field = at + "." + c.Field
		}
		v.objects = append(v.objects, c)
	}
}

// checkTypeField returns the reasons why text is not a valid value of field, apiVersion or
// kind.
func checkTypeField(field, text string) []string {
	switch {
	case text == "":
		return []string{"must not be empty"}
	case field == "apiVersion" && strings.Count(text, "/") > 1:
		return []string{"unexpected GroupVersion string: " + text}
	case field == "apiVersion":
		return nil
	}
	return meta.CheckKind(text)
}
