package verbs

import (
	"strconv"
	"strings"

	"orch.io/controlplane/server/internal/exchange"
)

// Modes of fieldValidation. Any other mode warns.
const (
	ignoreFields = "Ignore"
	strictFields = "Strict"
)

// fieldFaults are the unknown and duplicate fields of a body, in the order and wording that clients expect.
type fieldFaults struct {
	lines []string // of YAML, such as: line 9: key "a" already set in map
	texts []string // such as: unknown field "spec.a"
}

func (f *fieldFaults) unknown(paths []string)   { f.add("unknown field ", paths) }
func (f *fieldFaults) duplicate(paths []string) { f.add("duplicate field ", paths) }

func (f *fieldFaults) add(what string, paths []string) {
	for _, p := range paths {
		f.texts = append(f.texts, what+strconv.Quote(p))
	}
}

// String returns all violations as one text.
func (f fieldFaults) String() string {
	all := f.texts
	if len(f.lines) > 0 {
		all = append([]string{f.ofYAML()}, all...)
	}
	return strings.Join(all, ", ")
}

func (f fieldFaults) ofYAML() string {
	return "yaml: unmarshal errors:\n  " + strings.Join(f.lines, "\n  ")
}

// enforceFieldValidation warns about unknown and duplicate fields, returns the error of refuse, or
// does nothing, depending on the mode.
func enforceFieldValidation(r *exchange.Request, mode string, f fieldFaults, refuse func(why string) error) error {
	if mode == ignoreFields || len(f.lines)+len(f.texts) == 0 {
		return nil
	}
	if mode == strictFields {
		return refuse(f.String())
	}
	for _, text := range append(f.lines, f.texts...) {
		r.Notes.Warn(text)
	}
	return nil
}
