// Package podstandards judges pods by the published Pod Security Standards, as each
// release has them.
//
// The standards are a table of controls (controls.go). A control says from which release
// on and up to which one it holds, and what a pod does that it forbids; a new one is a row
// and a function over the tree of a pod.
package podstandards

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/podspec"
)

// Level is one of the standards; a greater one allows less.
type Level int

// The standards.
const (
	Privileged Level = iota // everything is allowed
	Baseline                // what is known to let a pod out
	Restricted              // how pods are hardened
)

var levels = []string{Privileged: "privileged", Baseline: "baseline", Restricted: "restricted"}

// ParseLevel returns the level of a word; ok is false if there is none.
func ParseLevel(word string) (l Level, ok bool) {
	for i, name := range levels {
		if name == word {
			return Level(i), true
		}
	}
	return 0, false
}

// String implements fmt.Stringer.
func (l Level) String() string { return levels[l] }

// Version is the minor number of a release.
type Version int

// Latest is the newest standard.
const Latest Version = math.MaxInt

var release = regexp.MustCompile(`^v1\.(0|[1-9][0-9]{0,8})$`)

// ParseVersion returns the version of a word, latest or such as v1.24; ok is false if
// there is none. One that is yet to come is like the newest.
func ParseVersion(word string) (v Version, ok bool) {
	if word == "latest" {
		return Latest, true
	}
	m := release.FindStringSubmatch(word)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return Version(n), err == nil
}

// String implements fmt.Stringer.
func (v Version) String() string {
	if v == Latest {
		return "latest"
	}
	return "v1." + strconv.Itoa(int(v))
}

// Standard is a level as it is in a release.
type Standard struct {
	Level   Level
	Version Version
}

// String implements fmt.Stringer.
func (s Standard) String() string { return s.Level.String() + ":" + s.Version.String() }

// Pod is what is judged: a pod or the template of one.
type Pod struct {
	Spec        *meta.Object
	Annotations map[string]string
	Names       names.Profile // of the annotations

	containers []*meta.Object
}

// Violation is what a control forbids in a pod: in a word or two, and what would have to
// be different.
type Violation struct{ Reason, Detail string }

// Violations are those of one pod.
type Violations []Violation

// Check returns what a pod violates, in the order of the table.
func (s Standard) Check(p *Pod) (found Violations) {
	if s.Level == Privileged {
		return nil
	}
	var replaced []string
	for _, c := range controls {
		if c.replaces != "" && s.has(c) {
			replaced = append(replaced, c.replaces)
		}
	}
	p.containers = podspec.Of(p.Spec)
	for _, c := range controls {
		if !s.has(c) || slices.Contains(replaced, c.id) {
			continue
		}
		if v := c.check(p); v != nil {
			found = append(found, *v)
		}
	}
	return found
}

func (s Standard) has(c control) bool {
	return c.level <= s.Level && c.since <= s.Version && (c.until == 0 || s.Version <= c.until)
}

// Details returns all violations with their details.
func (l Violations) Details() string {
	texts := make([]string, len(l))
	for i, v := range l {
		texts[i] = v.Reason + " (" + v.Detail + ")"
	}
	return strings.Join(texts, ", ")
}

// Reasons returns all violations without their details.
func (l Violations) Reasons() string {
	texts := make([]string, len(l))
	for i, v := range l {
		texts[i] = v.Reason
	}
	return strings.Join(texts, ", ")
}
