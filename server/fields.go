package server

import (
	"strconv"
	"strings"

	"orch.io/controlplane/server/internal/exchange"
)

// ignoreFields and strictFields are modes of fieldValidation; any other warns.
const (
	ignoreFields = "Ignore"
	strictFields = "Strict"
)

// fieldFaults are the unknown and the duplicate fields of a body, in the order
// and in the words that clients know.
type fieldFaults struct {
	lines []string // of YAML: line 9: key "a" already set in map
	texts []string // unknown field "spec.a"
}

func (f *fieldFaults) unknown(paths []string)   { f.add("unknown field ", paths) }
func (f *fieldFaults) duplicate(paths []string) { f.add("duplicate field ", paths) }

func (f *fieldFaults) add(what string, paths []string) {
	for _, p := range paths {
		f.texts = append(f.texts, what+strconv.Quote(p))
	}
}

// String returns the faults as one text.
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

// enforceFieldValidation does with unknown and duplicate fields what the mode says.
func (s *Server) enforceFieldValidation(r *exchange.Request, mode string, f fieldFaults, refuse func(why string) error) error {
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
