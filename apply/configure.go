package apply

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Configure returns obj, in a version, with the fields of a patch, merged as those of an
// applied object are; nobody owns them. A patch may not hold what would replace something
// whole, such as an atomic list: who wrote it might not know what else is there.
func (t *Tracker) Configure(obj, patch map[string]any, apiVersion string) (map[string]any, error) {
	v, err := t.typing(apiVersion)
	if err != nil {
		return nil, err
	}
	if _, ok := pathsWithin(patch, 0, maxPaths); !ok || tooDeep(patch, maxDepth) {
		return nil, errors.New("the patch is too large")
	}
	if _, err := v.strict().FromUnstructured(patch); err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if list := v.plan.wholes("", patch); len(list) > 0 {
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s", strings.Join(list, ", "))
	}
	merged, err := v.merge(obj, patch)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	return merged, nil
}

// wholes returns the paths of what is owned whole in a value at a path, as clients know them.
func (p *plan) wholes(path string, v any) (list []string) {
	switch v := v.(type) {
	case map[string]any:
		if p.shape == shapeWhole || p.shape == shapeMap && p.atomic {
			list = append(list, path)
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if f := p.fields[name]; f != nil {
				list = append(list, f.wholes(path+"."+name, v[name])...)
			}
		}
	case []any:
		if p.shape == shapeList || p.shape == shapeWhole || p.shape == shapeAny || p.shape == shapeMixed {
			list = append(list, path)
		}
		if p.items == nil {
			return list
		}
		for i, item := range v {
			list = append(list, p.items.wholes(fmt.Sprintf("%s[%d]", path, i), item)...)
		}
	}
	return list
}
