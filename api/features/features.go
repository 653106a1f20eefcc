// Package features says which features of a server are on: each has a gate, whose default
// is a matter of the release and which may be set.
package features

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/internal/suggest"
)

// Gate switches a feature. Its stages begin in releases such as "1.24", in the order of
// the fields; empty is never. A program's own gate that has nothing to do with releases
// says "0.0" for the stage that it is in.
type Gate struct {
	Name string
	Doc  string // what works with it, in a line

	Alpha      string // off, unless it is set
	BetaOff    string // beta, but off, unless it is set
	Beta       string // on, unless it is set
	Stable     string // on for good: whoever sets the gate is warned, to switch it off fails
	Deprecated string // instead of Stable, the feature is to go: as it was before, but whoever sets the gate is warned
	Removed    string // the gate is gone: to set it fails. The feature went with it, unless that is stable
}

// State is a gate in one release, as it is set.
type State struct {
	Gate
	Stage   string // as metrics say it: ALPHA, BETA, DEPRECATED, and nothing for stable
	Default bool   // whether it is on if nobody sets it
	On      bool
	Warning string // for who set it; empty: none
}

// The names that set all gates of a stage, but those that are set themselves.
const (
	allAlpha = "AllAlpha"
	allBeta  = "AllBeta"
)

// The stages, in their order.
const (
	unborn = iota
	alpha
	betaOff
	beta
	stable
	deprecated
	removed
)

var stageNames = [...]string{alpha: "ALPHA", betaOff: "BETA", beta: "BETA", stable: "", deprecated: "DEPRECATED", removed: ""}

// allOf names what sets all gates of a stage.
var allOf = map[int]string{alpha: allAlpha, betaOff: allBeta, beta: allBeta}

// Set are the gates of a server in one release. nil is the newest release with nothing set.
type Set struct {
	on   map[string]bool // what every known gate is, those that are gone included
	list []State
}

// newest is what a nil Set stands for.
var newest = sync.OnceValue(func() *Set {
	s, _ := New("", nil) // a test has it without faults
	return s
})

// New returns the gates of a release, empty for the newest: those of Gates and a program's
// own, with what is set. The error joins what is wrong with each, and names fields as the
// Builder of a server has them.
func New(named string, set map[string]bool, own ...Gate) (*Set, error) {
	at, err := release.Parse(cmp.Or(named, release.Newest.String()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", "Release", err)
	}
	s := &Set{on: map[string]bool{}}
	gates := Gates()
	faults := faultsOf(gates, own)
	gates = append(gates, own...)
	for _, g := range gates {
		stage := g.stage(at)
		state := State{Gate: g, Stage: stageNames[stage], Default: g.starts(stage), On: g.starts(stage)}
		if all, ok := set[allOf[stage]]; ok {
			state.On = all
		}
		if value, ok := set[g.Name]; ok {
			var err error
			if state.On, state.Warning, err = g.set(stage, value); err != nil {
				faults = append(faults, err)
			}
		}
		s.on[g.Name] = state.On
		if stage != unborn && stage != removed {
			s.list = append(s.list, state)
		}
	}
	slices.SortFunc(s.list, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if _, known := s.on[name]; !known && name != allAlpha && name != allBeta {
			near := suggest.Near(name, append(slices.Sorted(maps.Keys(s.on)), allAlpha, allBeta)...)
			faults = append(faults, faultOf(name, "there is no such gate%s", near))
		}
	}
	return s, errors.Join(faults...)
}

// Enabled reports whether a feature is on. One that nobody knows is off.
func (s *Set) Enabled(name string) bool {
	if s == nil {
		s = newest()
	}
	return s.on[name]
}

// Has reports whether a name can be set in some release: that of a gate, AllAlpha or
// AllBeta.
func (s *Set) Has(name string) bool {
	if s == nil {
		s = newest()
	}
	_, ok := s.on[name]
	return ok || name == allAlpha || name == allBeta
}

// All returns the gates that the release has, by name.
func (s *Set) All() []State {
	if s == nil {
		s = newest()
	}
	return slices.Clone(s.list)
}

// Help returns a line for each gate that one may want to set, for who asks which there are.
func (s *Set) Help() []string {
	lines := []string{allAlpha + "=true|false (ALPHA - default=false)", allBeta + "=true|false (BETA - default=false)"}
	for _, g := range s.All() {
		if g.Stage == stageNames[alpha] || g.Stage == stageNames[beta] {
			lines = append(lines, fmt.Sprintf("%s=true|false (%s - default=%t)", g.Name, g.Stage, g.Default))
		}
	}
	slices.Sort(lines)
	return lines
}

// Parse reads what flags say: pairs such as A=true,B=false. Of a name that is given twice
// the last value counts, and spaces do not.
func Parse(text string) (map[string]bool, error) {
	set := map[string]bool{}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		name, value, given := strings.Cut(word, "=")
		name = strings.TrimSpace(name)
		on, err := strconv.ParseBool(strings.TrimSpace(value))
		switch {
		case !given:
			return nil, fmt.Errorf("missing bool value for %s", name)
		case err != nil:
			return nil, fmt.Errorf("invalid value of %s=%s: it is neither true nor false", name, value)
		}
		set[name] = on
	}
	return set, nil
}

// begins are the releases in which stages begin, by stage.
func (g Gate) begins() []string {
	return []string{alpha: g.Alpha, betaOff: g.BetaOff, beta: g.Beta, stable: g.Stable, deprecated: g.Deprecated, removed: g.Removed}
}

// stage returns the stage that a gate is in.
func (g Gate) stage(at release.Release) (stage int) {
	for s, text := range g.begins() {
		if at.Reached(text) {
			stage = s
		}
	}
	return stage
}

// starts reports whether the feature is on if nobody sets the gate.
func (g Gate) starts(stage int) bool {
	switch stage {
	case deprecated:
		return g.Beta != ""
	case removed:
		return g.Stable != ""
	}
	return stage == beta || stage == stable
}

// set returns what a gate is that somebody sets in a stage, and what he should know.
func (g Gate) set(stage int, value bool) (on bool, warning string, err error) {
	fixed := g.starts(stage)
	word := map[bool]string{true: "on", false: "off"}[fixed]
	switch {
	case stage == unborn:
		return false, "", faultOf(g.Name, "there is no such gate before release %s", cmp.Or(g.begins()[1:]...))
	case stage == stable && value != fixed:
		return fixed, "", faultOf(g.Name, "it is stable since release %s and cannot be switched off", g.Stable)
	case stage == removed:
		return fixed, "", faultOf(g.Name, "the gate is gone since release %s, and its feature is %s for good: leave it out", g.Removed, word)
	case stage == stable:
		return value, "the feature gate is deprecated: it has no effect any more and will be removed, leave it out", nil
	case stage == deprecated:
		return value, "the feature gate is deprecated and will be removed, and its feature with it", nil
	}
	return value, "", nil
}

// faultOf is what is wrong with setting a gate.
func faultOf(name, format string, args ...any) error {
	return fmt.Errorf("%s[%q]: %s", "Features", name, fmt.Sprintf(format, args...))
}

// faultsOf returns what is wrong with a program's own gates, beside the others.
func faultsOf(gates, own []Gate) (faults []error) {
	seen := map[string]bool{allAlpha: true, allBeta: true}
	for _, g := range gates {
		seen[g.Name] = true
	}
	for i, g := range own {
		why := g.fault()
		if seen[g.Name] {
			why = "there is a gate of this name"
		}
		seen[g.Name] = true
		if why != "" {
			faults = append(faults, fmt.Errorf("%s[%d] (%s): %s", "Gates", i, g.Name, why))
		}
	}
	return faults
}

var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,127}$`)

// fault returns what is wrong with a gate by itself.
func (g Gate) fault() string {
	if !nameForm.MatchString(g.Name) {
		return "a name has letters and digits, a letter first"
	}
	if g.Stable != "" && g.Deprecated != "" {
		return "it is stable or deprecated, not both"
	}
	some, last := false, release.Release{}
	for _, text := range g.begins() {
		if text == "" {
			continue
		}
		r, err := release.Parse(text)
		if err != nil {
			return err.Error()
		}
		if r.Compare(last) < 0 {
			return fmt.Sprintf("the stage that begins in %s comes after one that begins later", text)
		}
		some, last = true, r
	}
	if !some {
		return "it is in no stage in any release"
	}
	return ""
}
