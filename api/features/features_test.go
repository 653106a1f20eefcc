package features

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/internal/release"
)

// TestGateStages takes gates through the stages of the deprecation policy: off by default, on by
// default, always on, removed; or deprecated, for a feature that will be removed.
func TestGateStages(t *testing.T) {
	kept := Gate{Name: "Kept", Alpha: "1.20", Beta: "1.22", Stable: "1.24", Removed: "1.26"}
	gone := Gate{Name: "Gone", Alpha: "1.20", Beta: "1.22", Deprecated: "1.24", Removed: "1.26"}
	tried := Gate{Name: "Tried", Alpha: "1.20", Deprecated: "1.24", Removed: "1.26"}
	for _, c := range []struct {
		gate         Gate
		release      string
		stage        string // "-": the release has no such gate
		on           bool
		setOn, unset string // result of setting the gate: "", a part of the warning, or ! and a part of the error
	}{
		{kept, "1.19", "-", false, "!before release 1.20", "!before release 1.20"},
		{kept, "1.20", "ALPHA", false, "", ""},
		{kept, "1.21", "ALPHA", false, "", ""},
		{kept, "1.22", "BETA", true, "", ""},
		{kept, "1.24", "", true, "deprecated: it has no effect", "!stable since release 1.24"},
		{kept, "1.26", "-", true, "!removed in release 1.26 and its feature is always on", "!removed in release 1.26 and its feature is always on"},
		{kept, "2.0", "-", true, "!removed in release 1.26", "!removed in release 1.26"},
		{gone, "1.23", "BETA", true, "", ""},
		{gone, "1.24", "DEPRECATED", true, "deprecated", "deprecated"},
		{gone, "1.26", "-", false, "!its feature is always off", "!its feature is always off"},
		{tried, "1.25", "DEPRECATED", false, "deprecated", "deprecated"},
	} {
		t.Run(c.gate.Name+" "+c.release, func(t *testing.T) {
			s, err := New(c.release, nil, c.gate)
			require.NoError(t, err)
			assert.Equal(t, c.on, s.Enabled(c.gate.Name))
			assert.True(t, s.Has(c.gate.Name))
			state, found := stateOf(s, c.gate.Name)
			assert.Equal(t, c.stage != "-", found)
			if found {
				assert.Equal(t, State{Gate: c.gate, Stage: c.stage, Default: c.on, On: c.on}, state)
			}
			for value, want := range map[bool]string{true: c.setOn, false: c.unset} {
				s, err := New(c.release, map[string]bool{c.gate.Name: value}, c.gate)
				if fault, ok := strings.CutPrefix(want, "!"); ok {
					assert.ErrorContains(t, err, fault)
					assert.ErrorContains(t, err, `Features["`+c.gate.Name+`"]: `)
					continue
				}
				require.NoError(t, err)
				assert.Equal(t, value, s.Enabled(c.gate.Name))
				state, _ := stateOf(s, c.gate.Name)
				assert.Equal(t, want == "", state.Warning == "")
				assert.Contains(t, state.Warning, want)
			}
		})
	}
}

// TestDeprecationPolicy has a row for each rule of the deprecation policy about gates.
func TestDeprecationPolicy(t *testing.T) {
	kept := Gate{Name: "Kept", Alpha: "1.20", Beta: "1.22", Stable: "1.24", Removed: "1.26"}
	gone := Gate{Name: "Gone", Alpha: "1.20", Beta: "1.22", Deprecated: "1.24", Removed: "1.25"}
	tried := Gate{Name: "Tried", Alpha: "1.20", Removed: "1.21"}
	for _, c := range []struct {
		rule, release, set string
		on                 string // the features that are, of all three
		warned, fault      string // gates with a warning, and the error, or empty
	}{
		{"alpha is off", "1.20", "", "", "", ""},
		{"alpha can be switched on", "1.20", "Kept=true,Tried=true", "Kept Tried", "", ""},
		{"beta is on", "1.22", "", "Gone Kept", "", ""},
		{"beta can be switched off", "1.22", "Kept=false", "Gone", "", ""},
		{"stable is on", "1.24", "", "Gone Kept", "", ""},
		{"8: the gate of a stable feature is deprecated; 9: it warns", "1.24", "Kept=true", "Gone Kept", "Kept", ""},
		{"8: it can be set for two releases", "1.25", "Kept=true", "Kept", "Kept", ""},
		{"9: turning off a gate without effect fails", "1.24", "Kept=false", "", "", `Features["Kept"]: the feature is stable since release 1.24 and cannot be turned off`},
		{"8: after two releases the gate is gone", "1.26", "Kept=true", "", "", `Features["Kept"]: the gate was removed in release 1.26 and its feature is always on: remove the setting`},
		{"8: turning it off fails, too", "1.26", "Kept=false", "", "", `Features["Kept"]: the gate was removed in release 1.26`},
		{"8: the feature stays", "1.26", "", "Kept", "", ""},
		{"8: a deprecated beta feature works for one release", "1.24", "Gone=true", "Gone Kept", "Gone", ""},
		{"9: turning it off has an effect and warns", "1.24", "Gone=false", "Kept", "Gone", ""},
		{"8: then it is removed", "1.25", "", "Kept", "", ""},
		{"8: so is its gate", "1.25", "Gone=true", "", "", `Features["Gone"]: the gate was removed in release 1.25 and its feature is always off: remove the setting`},
		{"8: an alpha feature can be removed at once", "1.21", "", "", "", ""},
		{"8: so is its gate", "1.21", "Tried=true", "", "", `Features["Tried"]: the gate was removed in release 1.21`},
		{"setting a stage neither warns nor fails", "1.24", "AllAlpha=false,AllBeta=false", "Gone Kept", "", ""},
		{"also after the gates are removed", "1.26", "AllAlpha=true,AllBeta=false", "Kept", "", ""},
		{"a gate of a later release is unknown", "1.19", "Kept=true", "", "", `Features["Kept"]: the gate does not exist before release 1.20`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			set, err := Parse(c.set)
			require.NoError(t, err)
			s, err := New(c.release, set, kept, gone, tried)
			if c.fault != "" {
				assert.ErrorContains(t, err, c.fault)
				return
			}
			require.NoError(t, err)
			var on, warned []string
			for _, g := range []Gate{gone, kept, tried} {
				if s.Enabled(g.Name) {
					on = append(on, g.Name)
				}
				if state, _ := stateOf(s, g.Name); state.Warning != "" {
					warned = append(warned, g.Name)
				}
			}
			assert.Equal(t, c.on, strings.Join(on, " "))
			assert.Equal(t, c.warned, strings.Join(warned, " "))
		})
	}
}

// TestGateRetention: gates of every server can be set for two releases after the feature
// becomes stable, and for one release after it is deprecated.
func TestGateRetention(t *testing.T) {
	for _, g := range Gates() {
		last := ""
		switch {
		case g.Removed == "":
			continue
		case g.Stable != "":
			r, err := release.Parse(g.Stable)
			require.NoError(t, err)
			last = r.Next().String()
		case g.Beta != "":
			require.NotEmpty(t, g.Deprecated, g.Name)
			last = g.Deprecated
		default:
			last = g.Alpha
		}
		s, err := New(last, map[string]bool{g.Name: true})
		require.NoError(t, err)
		assert.True(t, s.Enabled(g.Name))
		_, there := stateOf(s, g.Name)
		assert.True(t, there, "%s in release %s", g.Name, last)
	}
}

// TestParse: names and values may have spaces around them, pairs may be empty, and the last of
// two equal names is used.
func TestParse(t *testing.T) {
	for text, want := range map[string]map[string]bool{
		"":                       {},
		" ":                      {},
		",":                      {},
		" A = true ,, B=0, ":     {"A": true, "B": false},
		"A=true,A=false":         {"A": false},
		"AllAlpha=T,AllBeta=F\n": {"AllAlpha": true, "AllBeta": false},
	} {
		set, err := Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, set, text)
	}
	for text, want := range map[string]string{"A": "missing bool value for A", "A,": "missing bool value for A", "A=maybe": "invalid value of A=maybe", "A=": "invalid value of A=", "=": "invalid value", "A=true=false": "invalid value of A=true=false"} {
		_, err := Parse(text)
		assert.ErrorContains(t, err, want)
	}
	_, err := New("", map[string]bool{"": true})
	assert.ErrorContains(t, err, `Features[""]: unknown feature gate`)
}

func stateOf(s *Set, name string) (State, bool) {
	for _, g := range s.All() {
		if g.Name == name {
			return g, true
		}
	}
	return State{}, false
}

func TestAllAlphaAndAllBeta(t *testing.T) {
	a, b, c := Gate{Name: "A", Alpha: "0.0"}, Gate{Name: "B", Beta: "0.0"}, Gate{Name: "C", Stable: "0.0"}
	for text, want := range map[string]string{
		"":                            "BC",
		"AllAlpha=true":               "ABC",
		"AllBeta=false":               "C",
		"AllAlpha=true,A=false":       "BC",
		"AllBeta=false,B=true,A=true": "ABC",
		"AllAlpha=true,AllBeta=false": "AC",
	} {
		set, err := Parse(text)
		require.NoError(t, err)
		s, err := New("", set, a, b, c)
		require.NoError(t, err)
		got := ""
		for _, name := range []string{"A", "B", "C"} {
			if s.Enabled(name) {
				got += name
			}
		}
		assert.Equal(t, want, got, text)
	}
}

func TestNewReportsInvalidGates(t *testing.T) {
	for _, c := range []struct {
		release, set string
		own          []Gate
		want         string
	}{
		{release: "1.x", want: `Release: invalid release "1.x": must have a form like 1.37`},
		{release: "99999.1", want: `Release: invalid release "99999.1"`},
		{set: "WatchLists=true", want: `Features["WatchLists"]: unknown feature gate; did you mean "WatchList"?`},
		{set: "AllGamma=true", want: `Features["AllGamma"]: unknown feature gate`},
		{own: []Gate{{}}, want: "Gates[0] (): the name must consist of letters and digits"},
		{own: []Gate{{Name: "a b", Beta: "0.0"}}, want: "Gates[0] (a b): the name must consist of letters and digits"},
		{own: []Gate{{Name: "Blink"}}, want: "Gates[0] (Blink): no stage is set"},
		{own: []Gate{{Name: "Blink", Beta: "soon"}}, want: `Gates[0] (Blink): invalid release "soon"`},
		{own: []Gate{{Name: "Blink", Alpha: "1.10", Beta: "1.9"}}, want: "Gates[0] (Blink): the stage that begins in 1.9 follows a stage that begins later"},
		{own: []Gate{{Name: "Blink", Stable: "1.1", Deprecated: "1.2"}}, want: "Gates[0] (Blink): Stable and Deprecated exclude each other"},
		{own: []Gate{{Name: "Blink", Beta: "0.0"}, {Name: "Blink", Beta: "0.0"}}, want: "Gates[1] (Blink): duplicate gate name"},
		{own: []Gate{{Name: "WatchList", Beta: "0.0"}}, want: "Gates[0] (WatchList): duplicate gate name"},
		{own: []Gate{{Name: "AllBeta", Beta: "0.0"}}, want: "Gates[0] (AllBeta): duplicate gate name"},
	} {
		set, err := Parse(c.set)
		require.NoError(t, err)
		_, err = New(c.release, set, c.own...)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := New("1.36", map[string]bool{"X": true, "APIListChunking": false}, Gate{Name: "AllAlpha", Beta: "0.0"})
	for _, part := range []string{`"X"`, `"APIListChunking"`, "Gates[0]"} {
		assert.ErrorContains(t, err, part, "all are told")
	}
}

// TestGatesAreValidAndSorted: the library's gates are valid, sorted, and documented.
func TestGatesAreValidAndSorted(t *testing.T) {
	last := ""
	for _, g := range Gates() {
		assert.Empty(t, g.fault(), g.Name)
		assert.Less(t, last, g.Name)
		assert.NotEmpty(t, g.Doc, g.Name)
		last = g.Name
	}
	_, err := New("", nil)
	require.NoError(t, err)
	for minor := range 40 {
		_, err := New("1."+strconv.Itoa(minor), nil)
		require.NoError(t, err)
	}
}

// TestNilSetHasDefaults: a nil Set has the defaults of the newest release.
func TestNilSetHasDefaults(t *testing.T) {
	var none *Set
	s, err := New("", nil)
	require.NoError(t, err)
	assert.Equal(t, s.All(), none.All())
	assert.Equal(t, s.Help(), none.Help())
	for _, g := range Gates() {
		assert.Equal(t, s.Enabled(g.Name), none.Enabled(g.Name), g.Name)
		assert.True(t, none.Has(g.Name))
	}
	assert.False(t, none.Enabled("Nothing"))
	assert.False(t, none.Has("Nothing"))
	assert.True(t, none.Has("AllAlpha") && none.Has("AllBeta"))
}
