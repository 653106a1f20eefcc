package objects

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/resource"
)

// Problem is what a type cannot show of objects that are stored.
type Problem struct {
	Resource meta.GroupResource
	What     string     // that is wrong with each of the objects
	Objects  int        // that have it
	Keys     []meta.Key // of the first ones
}

// Bounds of what is told of a store.
const (
	maxProblems    = 50 // of one kind; what is found after them is counted together
	maxProblemKeys = 10
)

// problem is a Problem while it is counted.
type problem struct {
	Problem
	last meta.Key // of the object that was counted last
}

// findings are what was found in records while they were loaded, by one goroutine.
type findings map[*kind]*found

type found struct {
	fitted   int // records that would be shown otherwise as they are
	problems map[string]*problem
	hard     bool // there are some beyond unknown fields
}

// note notes what is found in a record, which holds that object.
func (f *findings) note(ctx context.Context, k *kind, key meta.Key, stored []byte, read reading, err error) {
	misplaced := k.t.Namespaced != (key.Namespace != "")
	if read.own && err == nil && !misplaced {
		return
	}
	if *f == nil {
		*f = findings{}
	}
	of := (*f)[k]
	if of == nil {
		of = &found{problems: map[string]*problem{}}
		(*f)[k] = of
	}
	switch {
	case misplaced && k.t.Namespaced:
		of.addHard(k, key, "is in no namespace, which objects of the kind are")
	case misplaced:
		of.addHard(k, key, "is in a namespace, which objects of the kind are not")
	}
	if err != nil {
		of.fitted++
		of.addHard(k, key, "cannot be read: "+reason(err))
		return
	}
	if plain, err := k.read(ctx, stored, true); err != nil || !bytes.Equal(read.object, plain.object) {
		of.fitted++
	}
	for _, path := range read.unshown.Unknown {
		of.add(k, key, "has the field "+anyItem(path)+", which the kind does not have")
	}
	for _, misfit := range read.unshown.Misfits {
		of.addHard(k, key, "has a value in "+anyItem(misfit.Field)+" that is not of its type")
	}
}

// reason is what a conversion says, without the name of the object.
func reason(err error) string {
	if c, ok := err.(*resource.ConversionError); ok {
		return fmt.Sprintf("from version %s to %s: %v", c.From, c.To, c.Err)
	}
	return err.Error()
}

// addHard is add for what no release of the same shape has accepted.
func (of *found) addHard(k *kind, key meta.Key, what string) {
	of.add(k, key, what)
	of.hard = true
}

func (of *found) add(k *kind, key meta.Key, what string) {
	p := of.problems[what]
	if p == nil && len(of.problems) >= maxProblems {
		what = "has further problems"
		p = of.problems[what]
	}
	if p == nil {
		p = &problem{Problem: Problem{Resource: k.t.GroupResource(), What: what}}
		of.problems[what] = p
	}
	if p.Objects > 0 && p.last == key {
		return // it has that in several places
	}
	p.last = key
	if p.Objects++; len(p.Keys) < maxProblemKeys {
		p.Keys = append(p.Keys, key)
	}
}

// Accept ends the loading. What the store holds that a type cannot show is returned, unless
// it is accepted: by the caller, with anyway; or, of fields that a type does not have, since
// a release of the same shape served the store before the one that wrote them. When all is
// accepted the store is told who serves it.
func (r *Records) Accept(ctx context.Context, anyway bool) ([]Problem, error) {
	var problems []Problem
	for k, of := range r.found {
		if of.hard || k.first {
			for _, p := range of.problems {
				problems = append(problems, p.Problem)
			}
		}
		if of.fitted > 0 {
			r.log.Info("objects of an older or a newer shape are stored; they are fitted whenever they are read, until they are written again", "resource", k.t.GroupResource(), "objects", of.fitted)
		}
		for _, p := range of.problems {
			r.log.Warn("objects are stored of which not all is shown; it stays in the store", "resource", p.Resource, "objects", p.Objects, "each", p.What)
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Resource.String(), b.Resource.String()), strings.Compare(a.What, b.What))
	})
	if len(problems) > 0 && !anyway {
		return problems, nil
	}
	return nil, r.noteServed(ctx)
}
