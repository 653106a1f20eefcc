package plugins

import (
	"errors"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
)

// on is the one rule of a plugin that concerns some operations on some resources of a
// group.
func on(group string, resources []string, ops ...admission.Operation) []admission.Rule {
	return []admission.Rule{{Operations: ops, Groups: []string{group}, Resources: resources}}
}

// refusal is one error for all that is wrong, each said once; nil if nothing is.
func refusal(faults []string) error {
	var once []string
	for _, text := range faults {
		if !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	switch len(once) {
	case 0:
		return nil
	case 1:
		return errors.New(once[0])
	}
	return errors.New("[" + strings.Join(once, ", ") + "]")
}
