package plugins

import (
	"errors"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
)

// on returns a rule for operations on resources of a group.
func on(group string, resources []string, ops ...admission.Operation) []admission.Rule {
	return []admission.Rule{{Operations: ops, Groups: []string{group}, Resources: resources}}
}

// refusal joins messages into an error, without duplicates. It returns nil if faults is empty.
func refusal(faults []string) error {
	var unique []string
	for _, text := range faults {
		if !slices.Contains(unique, text) {
			unique = append(unique, text)
		}
	}
	switch len(unique) {
	case 0:
		return nil
	case 1:
		return errors.New(unique[0])
	}
	return errors.New("[" + strings.Join(unique, ", ") + "]")
}
