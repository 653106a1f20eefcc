package apply

import (
	"errors"
	"fmt"
	"strings"
)

// ApplyConfiguration returns obj with the fields of config, merged as Apply merges an
// applied object but without owners. Both are in the version apiVersion. It fails if config
// sets a value that is owned as a whole, such as an atomic list, because the author of
// config might not know the rest of that value.
func (m *FieldManager) ApplyConfiguration(obj, config map[string]any, apiVersion string) (map[string]any, error) {
	v, err := m.version(apiVersion)
	if err != nil {
		return nil, err
	}
	if tooDeep(config, maxDepth) {
		return nil, errors.New("the patch is too large")
	}
	if err := v.Validate(config); err != nil {
		return nil, fmt.Errorf("failed to convert patch object to typed object: %w", err)
	}
	if paths := v.AtomicFields(config); len(paths) > 0 {
		return nil, fmt.Errorf("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: %s", strings.Join(paths, ", "))
	}
	merged, err := v.Merge(obj, config)
	if err != nil {
		return nil, fmt.Errorf("failed to merge patch: %w", err)
	}
	return merged, nil
}
