// Package podstandards checks pods against the Pod Security Standards of each release.
//
// The standards are a table of controls (controls.go). A control has a range of releases and a function
// that checks the tree of a pod; a new control is a row of the table and a function.
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

// Level is the name of a standard. A higher level allows less.
type Level int

// The levels.
const (
	Privileged Level = iota // no restrictions
	Baseline                // prevents known privilege escalations
	Restricted              // enforces hardening practices
)

var levels = []string{Privileged: "privileged", Baseline: "baseline", Restricted: "restricted"}

// ParseLevel returns the level with the given name, and whether it exists.
func ParseLevel(text string) (l Level, ok bool) {
	for i, name := range levels {
		if name == text {
			return Level(i), true
		}
	}
	return 0, false
}

// String implements fmt.Stringer.
func (l Level) String() string { return levels[l] }

// Version is the minor number of a release.
type Version int

// Latest is the newest version.
const Latest Version = math.MaxInt

var release = regexp.MustCompile(`^v1\.(0|[1-9][0-9]{0,8})$`)

// ParseVersion parses "latest" or a version such as "v1.24", and reports whether it is valid. Versions
// beyond the newest release are valid and mean the newest.
func ParseVersion(text string) (v Version, ok bool) {
	if text == "latest" {
		return Latest, true
	}
	m := release.FindStringSubmatch(text)
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

// Standard is a level in the version of a release.
type Standard struct {
	Level   Level
	Version Version
}

// String implements fmt.Stringer.
func (s Standard) String() string { return s.Level.String() + ":" + s.Version.String() }

// Pod is a pod or a pod template to check.
type Pod struct {
	Spec        *meta.Object
	Annotations map[string]string
	Names       names.Profile // naming of the annotations

	containers []*meta.Object
}

// Violation is a failed control: a short reason, and a detail that names fields and containers.
type Violation struct{ Reason, Detail string }

// Violations are the failed controls of a pod.
type Violations []Violation

// Check returns the controls that a pod fails, in the order of the table. It is not safe for concurrent
// use with the same p.
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

// Details joins the violations with their details.
func (l Violations) Details() string {
	texts := make([]string, len(l))
	for i, v := range l {
		texts[i] = v.Reason + " (" + v.Detail + ")"
	}
	return strings.Join(texts, ", ")
}

// Reasons joins the reasons of the violations.
func (l Violations) Reasons() string {
	texts := make([]string, len(l))
	for i, v := range l {
		texts[i] = v.Reason
	}
	return strings.Join(texts, ", ")
}
