package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/server/internal/objects"
	"orch.io/controlplane/storage"
)

// stamp records the names profile in the store. It returns an error if the store was filled with
// another profile, or if a copy into it was interrupted.
func (s *Server) stamp(ctx context.Context) error {
	if _, err := s.backend.Get(ctx, storage.IncompleteKey, 0); !errors.Is(err, storage.ErrNotFound) {
		if err == nil {
			err = errors.New("a copy into it was interrupted, so that data is missing; run the copy again")
		}
		return fmt.Errorf("checking whether the store is complete: %w", err)
	}
	st, ok := s.backend.(storage.Stamper)
	if !ok {
		return nil
	}
	found, err := st.Stamp(ctx, "names", s.names.String())
	if err != nil {
		return fmt.Errorf("recording the names profile in the store: %w", err)
	}
	if found != s.names.String() {
		return &NamesError{Store: found, Server: s.names.String()}
	}
	return nil
}

// NamesError is returned by Build if the store was filled with a names profile other than
// Builder.Names. Its objects cannot be served under different names.
type NamesError struct{ Store, Server string }

// Error implements error.
func (e *NamesError) Error() string {
	return fmt.Sprintf("the store was filled with %q names, but this server uses %q", e.Store, e.Server)
}

// IncompatibleError is returned by Build if the store holds objects that do not fit the registered kinds,
// for example because a release with other types wrote them.
type IncompatibleError struct{ Problems []Incompatibility }

// Incompatibility is a problem that a number of objects of a kind have in common.
type Incompatibility struct {
	Resource meta.GroupResource
	Text     string     // the problem, as a predicate, such as "cannot be read"
	Objects  int        // number of objects with the problem
	Keys     []meta.Key // keys of the first of these objects
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
	text.WriteString("the store holds objects that do not fit their kinds:")
	for _, p := range e.Problems {
		fmt.Fprintf(&text, "\n  %s: each of %d %s: ", p.Resource, p.Objects, p.Text)
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
	text.WriteString("\nConvert the objects in the kind's Behavior.Upgrade, keep the stored version as a version that is not served, or set Builder.ServeIncompatible to start anyway: data that does not fit stays in the store, hidden.")
	return text.String()
}

// logUnserved logs the number of stored objects of kinds that are neither registered nor defined,
// because clients cannot see them.
func (s *Server) logUnserved() {
	const most = 20 // number of kinds in the message
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
	s.log.Warn("the store holds objects of kinds that are neither registered nor defined; they are kept but not served", "objects", all, "kinds", strings.Join(kinds, ", "))
}
