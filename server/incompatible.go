package server

import (
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/objects"
)

// IncompatibleError says that a store holds objects of which the kinds cannot show all, since a
// release with other types wrote them.
type IncompatibleError struct{ Problems []Incompatibility }

// Incompatibility is one thing that is wrong with objects of a kind.
type Incompatibility struct {
	Resource meta.GroupResource
	What     string     // that is wrong with each of the objects
	Objects  int        // that have it
	Keys     []meta.Key // of the first ones
}

func newIncompatibleError(found []objects.Problem) *IncompatibleError {
	e := &IncompatibleError{}
	for _, p := range found {
		e.Problems = append(e.Problems, Incompatibility(p))
	}
	return e
}

// Error implements error.
func (e *IncompatibleError) Error() string {
	var text strings.Builder
	text.WriteString("the store holds objects that the kinds cannot show whole:")
	for _, p := range e.Problems {
		fmt.Fprintf(&text, "\n  %s: each of %d %s: ", p.Resource, p.Objects, p.What)
		for i, k := range p.Keys {
			if i > 0 {
				text.WriteString(", ")
			}
			text.WriteString(strings.TrimPrefix(k.Namespace+"/"+k.Name, "/"))
		}
		if p.Objects > len(p.Keys) {
			text.WriteString(", ...")
		}
	}
	text.WriteString("\nThe kind's Behavior.Upgrade may say what becomes of it; a version that is stored may stay, not served; Builder.ServeIncompatible keeps it unseen.")
	return text.String()
}

// tellUnserved tells at the start of the objects that nobody sees, since the store has them of
// types that neither the program nor a definition says.
func (s *Server) tellUnserved() {
	const most = 20 // kinds that are named
	unserved := s.objects.Unknown("")
	if len(unserved) == 0 {
		return
	}
	var kinds []string
	all := 0
	for of, n := range unserved {
		kinds = append(kinds, fmt.Sprintf("%s (%d)", of, n))
		all += n
	}
	slices.Sort(kinds)
	if len(kinds) > most {
		kinds = append(kinds[:most], fmt.Sprintf("and %d more", len(unserved)-most))
	}
	s.log.Warn("the store holds objects of kinds that are neither registered nor defined: they stay, and nobody sees them", "objects", all, "kinds", strings.Join(kinds, ", "))
}
