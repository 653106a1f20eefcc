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

// Problem describes stored data that a type cannot show.
type Problem struct {
	Resource meta.GroupResource
	Text     string     // the problem, as a predicate: "has the field ..."
	Objects  int        // number of objects with the problem
	Keys     []meta.Key // of the first objects
}

// Limits of a load report.
const (
	maxProblems    = 50 // for each kind; further problems are counted as one
	maxProblemKeys = 10
)

// problem is a Problem that is still being counted.
type problem struct {
	Problem
	last meta.Key // the object that was counted last
}

// loadReport collects the problems of stored records while the server loads them. It is not safe for concurrent use.
type loadReport map[*kind]*kindReport

// kindReport is the report of one kind.
type kindReport struct {
	fitted   int // records that fitting changes
	problems map[string]*problem
	hard     bool // there are problems other than unknown fields
}

// note adds the problems of a record to the report. stored is the record of the object with that key, without its
// signature; read and err are the result of kind.read.
func (f *loadReport) note(ctx context.Context, k *kind, key meta.Key, stored []byte, read reading, err error) {
	misplaced := k.t.Namespaced != (key.Namespace != "")
	if read.own && err == nil && !misplaced {
		return
	}
	if *f == nil {
		*f = loadReport{}
	}
	of := (*f)[k]
	if of == nil {
		of = &kindReport{problems: map[string]*problem{}}
		(*f)[k] = of
	}
	switch {
	case misplaced && k.t.Namespaced:
		of.addHard(k, key, "has no namespace, but the kind is namespaced")
	case misplaced:
		of.addHard(k, key, "has a namespace, but the kind is cluster-scoped")
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
		of.addHard(k, key, "has a value in "+anyItem(misfit.Field)+" that does not have the type of the field")
	}
}

// reason returns the message of a conversion error without the name of the object.
func reason(err error) string {
	if c, ok := err.(*resource.ConversionError); ok {
		return fmt.Sprintf("from version %s to %s: %v", c.From, c.To, c.Err)
	}
	return err.Error()
}

// addHard is like add, for a problem that is not accepted because a release of the same shape has served the store.
func (of *kindReport) addHard(k *kind, key meta.Key, what string) {
	of.add(k, key, what)
	of.hard = true
}

// add counts a problem of the object with that key. An object counts once, even if it has the problem in several
// fields.
func (of *kindReport) add(k *kind, key meta.Key, what string) {
	p := of.problems[what]
	if p == nil && len(of.problems) >= maxProblems {
		what = "has further problems"
		p = of.problems[what]
	}
	if p == nil {
		p = &problem{Problem: Problem{Resource: k.t.GroupResource(), Text: what}}
		of.problems[what] = p
	}
	if p.Objects > 0 && p.last == key {
		return
	}
	p.last = key
	if p.Objects++; len(p.Keys) < maxProblemKeys {
		p.Keys = append(p.Keys, key)
	}
}

// Accept ends the loading of the store, after the first Scan. It returns the problems of the stored records, if there
// are any that are not accepted. If anyway is true, all problems are accepted. Fields that a type does not have are
// also accepted if a release of the same shape has served the store before: another release has served it since and
// added the fields. If all problems are accepted, Accept records in the store that this release served it, and
// returns nil.
func (r *Records) Accept(ctx context.Context, anyway bool) ([]Problem, error) {
	var problems []Problem
	for k, of := range r.report {
		if of.hard || k.newShape {
			for _, p := range of.problems {
				problems = append(problems, p.Problem)
			}
		}
		if of.fitted > 0 {
			r.log.Info("stored objects have the shape of another release; each is fitted when it is read, until it is written again", "resource", k.t.GroupResource(), "objects", of.fitted)
		}
		for _, p := range of.problems {
			r.log.Warn("stored objects have data that is not shown; it is kept in the store", "resource", p.Resource, "objects", p.Objects, "problem", p.Text)
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Resource.String(), b.Resource.String()), strings.Compare(a.Text, b.Text))
	})
	if len(problems) > 0 && !anyway {
		return problems, nil
	}
	return nil, r.noteServed(ctx)
}
