package server

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/objects"
)

// StoredError says that a store holds objects of which the kinds cannot show all, since a
// release with other types wrote them.
type StoredError struct{ Problems []StoredProblem }

// StoredProblem is one thing that is wrong with objects of a kind.
type StoredProblem struct {
	Resource meta.GroupResource
	What     string     // that is wrong with each of the objects
	Objects  int        // that have it
	Keys     []meta.Key // of the first ones
}

func newStoredError(found []objects.Problem) *StoredError {
	e := &StoredError{}
	for _, p := range found {
		e.Problems = append(e.Problems, StoredProblem(p))
	}
	return e
}

// Error implements error.
func (e *StoredError) Error() string {
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
	text.WriteString("\nThe kind's Behavior.Upgrade may say what becomes of it; a version that is stored may stay, not served; Builder.KeepUnfit keeps it unseen.")
	return text.String()
}
