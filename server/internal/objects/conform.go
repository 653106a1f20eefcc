package objects

import (
	"regexp"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/internal/suggest"
)

// conform normalizes an object that a component of the server made. A field that the kind does not have is an error,
// because it is a mistake of the component.
func (s *Store) conform(v *resource.Version, obj *meta.Object) error {
	unknown, faults := v.Normalize(obj)
	if len(faults) > 0 {
		return v.DecodeError(faults)
	}
	if len(unknown) == 0 {
		return nil
	}
	const most = 10
	texts := make([]string, 0, most)
	for _, path := range unknown[:min(len(unknown), most)] {
		texts = append(texts, "unknown field "+strconv.Quote(path)+s.near(v, path))
	}
	return v.CannotHandle(strings.Join(texts, ", "))
}

// itemPlace matches the index of a list item in a path.
var itemPlace = regexp.MustCompile(`\[[0-9]+\]`)

// anyItem returns a path without the indexes of list items.
func anyItem(path string) string { return itemPlace.ReplaceAllString(path, "[]") }

// near returns a hint that names the field that may have been meant by an unknown one, or "".
func (s *Store) near(v *resource.Version, path string) string {
	steps := strings.Split(anyItem(path), ".")
	last := len(steps) - 1
	at, ok := v.Schema(), true
	for i, step := range steps[:last] {
		name := strings.TrimRight(step, "[]")
		if i == 0 && name == "metadata" {
			at = schema.Metadata(s.o.Names)
			continue
		}
		if at, ok = at.At(name); !ok || at == nil {
			return ""
		}
		for range strings.Count(step, "[]") {
			if at = at.Items; at == nil {
				return ""
			}
		}
	}
	if at == nil || at.Struct == nil {
		return ""
	}
	var known []string
	if last == 0 {
		known = []string{"metadata"}
	}
	for _, f := range at.Struct.Fields {
		known = append(known, f.Name)
	}
	return suggest.Near(steps[last], known...)
}
