package plugins

import (
	"errors"
	"strings"

	"orch.io/controlplane/admission"
)

// on is the one rule of a plugin that concerns some operations on some resources of a
// group.
func on(group string, resources []string, ops ...admission.Operation) []admission.Rule {
	return []admission.Rule{{Operations: ops, Groups: []string{group}, Resources: resources}}
}

// refusal is one error for all that is wrong, nil if nothing is.
func refusal(faults []string) error {
	switch len(faults) {
	case 0:
		return nil
	case 1:
		return errors.New(faults[0])
	}
	return errors.New("[" + strings.Join(faults, ", ") + "]")
}
