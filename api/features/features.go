// Package features defines feature gates: each feature of a server has a gate, which is on or
// off by default, depending on the release, and may be set.
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

// Gate is a feature gate. A stage begins in the release that its field names, such as "1.24";
// the stages begin in the order of the fields, and an empty field means that the stage is
// skipped. A program's own gate that does not depend on releases uses "0.0" for its current
// stage.
type Gate struct {
	Name string
	Doc  string // the effect of the feature, in a line

	Alpha      string // off by default
	BetaOff    string // beta, but off by default
	Beta       string // on by default
	Stable     string // always on: setting the gate causes a warning, and turning it off fails
	Deprecated string // instead of Stable: the feature will be removed; default as before, and setting the gate causes a warning
	Removed    string // the gate no longer exists, and setting it fails; the feature is removed, too, unless it was stable
}

// State is the state of a gate in a release.
type State struct {
	Gate
	Stage   string // as in metrics: ALPHA, BETA, DEPRECATED, or "" for stable
	Default bool   // whether the feature is on if the gate is not set
	On      bool
	Warning string // to log if the gate was set; empty if there is none
}

// The names that set all gates of a stage, except gates that are set themselves.
const (
	allAlpha = "AllAlpha"
	allBeta  = "AllBeta"
)

// The stages, in order.
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

// allOf maps a stage to the name that sets all of its gates.
var allOf = map[int]string{alpha: allAlpha, betaOff: allBeta, beta: allBeta}

// Set holds the feature gates of a server in a release. It is immutable. A nil Set has the
// defaults of the newest release.
type Set struct {
	on   map[string]bool // state of every known gate, including removed gates
	list []State
}

// newest is the value of a nil Set.
var newest = sync.OnceValue(func() *Set {
	s, _ := New("", nil) // a test checks that there are no errors
	return s
})

// New returns the feature gates of a release, or of the newest release if named is empty:
// Gates() and the program's own gates, with the values in set. The error joins all errors; each
// names the field of server.Builder that is wrong.
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
		state := State{Gate: g, Stage: stageNames[stage], Default: g.onByDefault(stage), On: g.onByDefault(stage)}
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
			faults = append(faults, faultOf(name, "unknown feature gate%s", near))
		}
	}
	return s, errors.Join(faults...)
}

// Enabled reports whether a feature is on. Unknown features are off.
func (s *Set) Enabled(name string) bool {
	if s == nil {
		s = newest()
	}
	return s.on[name]
}

// Has reports whether name is the name of a gate in any release, AllAlpha or AllBeta.
func (s *Set) Has(name string) bool {
	if s == nil {
		s = newest()
	}
	_, ok := s.on[name]
	return ok || name == allAlpha || name == allBeta
}

// All returns the gates of the release, sorted by name.
func (s *Set) All() []State {
	if s == nil {
		s = newest()
	}
	return slices.Clone(s.list)
}

// Help returns a line of help for each gate that can be set, in the format of kube-apiserver.
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

// Parse parses the value of a flag: pairs such as A=true,B=false. Spaces are ignored. If a name
// occurs twice, the last value is used.
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
			return nil, fmt.Errorf("invalid value of %s=%s: must be true or false", name, value)
		}
		set[name] = on
	}
	return set, nil
}

// stageReleases returns the releases in which the stages begin, indexed by stage.
func (g Gate) stageReleases() []string {
	return []string{alpha: g.Alpha, betaOff: g.BetaOff, beta: g.Beta, stable: g.Stable, deprecated: g.Deprecated, removed: g.Removed}
}

// stage returns the stage of the gate in a release.
func (g Gate) stage(at release.Release) (stage int) {
	for s, text := range g.stageReleases() {
		if at.Reached(text) {
			stage = s
		}
	}
	return stage
}

// onByDefault reports whether the feature is on by default.
func (g Gate) onByDefault(stage int) bool {
	switch stage {
	case deprecated:
		return g.Beta != ""
	case removed:
		return g.Stable != ""
	}
	return stage == beta || stage == stable
}

// set returns the state of a gate in a stage after it is set to value, and a warning to log.
func (g Gate) set(stage int, value bool) (on bool, warning string, err error) {
	fixed := g.onByDefault(stage)
	word := map[bool]string{true: "on", false: "off"}[fixed]
	switch {
	case stage == unborn:
		return false, "", faultOf(g.Name, "the gate does not exist before release %s", cmp.Or(g.stageReleases()[1:]...))
	case stage == stable && value != fixed:
		return fixed, "", faultOf(g.Name, "the feature is stable since release %s and cannot be turned off", g.Stable)
	case stage == removed:
		return fixed, "", faultOf(g.Name, "the gate was removed in release %s and its feature is always %s: remove the setting", g.Removed, word)
	case stage == stable:
		return value, "the feature gate is deprecated: it has no effect and will be removed; remove the setting", nil
	case stage == deprecated:
		return value, "the feature gate is deprecated: it will be removed together with its feature", nil
	}
	return value, "", nil
}

// faultOf returns an error about an entry of Builder.Features.
func faultOf(name, format string, args ...any) error {
	return fmt.Errorf("%s[%q]: %s", "Features", name, fmt.Sprintf(format, args...))
}

// faultsOf validates a program's own gates. Their names must differ from each other and from
// those in gates.
func faultsOf(gates, own []Gate) (faults []error) {
	seen := map[string]bool{allAlpha: true, allBeta: true}
	for _, g := range gates {
		seen[g.Name] = true
	}
	for i, g := range own {
		why := g.fault()
		if seen[g.Name] {
			why = "duplicate gate name"
		}
		seen[g.Name] = true
		if why != "" {
			faults = append(faults, fmt.Errorf("%s[%d] (%s): %s", "Gates", i, g.Name, why))
		}
	}
	return faults
}

var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,127}$`)

// fault returns the reason why the gate is invalid, or "".
func (g Gate) fault() string {
	if !nameForm.MatchString(g.Name) {
		return "the name must consist of letters and digits and begin with a letter"
	}
	if g.Stable != "" && g.Deprecated != "" {
		return "Stable and Deprecated exclude each other"
	}
	some, last := false, release.Release{}
	for _, text := range g.stageReleases() {
		if text == "" {
			continue
		}
		r, err := release.Parse(text)
		if err != nil {
			return err.Error()
		}
		if r.Compare(last) < 0 {
			return fmt.Sprintf("the stage that begins in %s follows a stage that begins later", text)
		}
		some, last = true, r
	}
	if !some {
		return "no stage is set"
	}
	return ""
}
