package features

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestLifeOfAGate takes gates through the stages of the deprecation policy: off at first,
// then on and optional, then on for good, then gone; or, for a feature that goes, deprecated.
func TestLifeOfAGate(t *testing.T) {
	kept := Gate{Name: "Kept", Alpha: "1.20", Beta: "1.22", Stable: "1.24", Removed: "1.26"}
	gone := Gate{Name: "Gone", Alpha: "1.20", Beta: "1.22", Deprecated: "1.24", Removed: "1.26"}
	tried := Gate{Name: "Tried", Alpha: "1.20", Deprecated: "1.24", Removed: "1.26"}
	for _, c := range []struct {
		gate         Gate
		release      string
		stage        string // "-": the release has no such gate
		on           bool
		setOn, unset string // what happens to who sets it: "", a warning or !fault
	}{
		{kept, "1.19", "-", false, "!before release 1.20", "!before release 1.20"},
		{kept, "1.20", "ALPHA", false, "", ""},
		{kept, "1.21", "ALPHA", false, "", ""},
		{kept, "1.22", "BETA", true, "", ""},
		{kept, "1.24", "", true, "no effect any more", "!stable since release 1.24"},
		{kept, "1.26", "-", true, "removed in release 1.26", "!gone since release 1.26, and its feature is on"},
		{kept, "2.0", "-", true, "removed in release 1.26", "!gone since release 1.26"},
		{gone, "1.23", "BETA", true, "", ""},
		{gone, "1.24", "DEPRECATED", true, "deprecated", "deprecated"},
		{gone, "1.26", "-", false, "!its feature is off", "removed in release 1.26"},
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

func stateOf(s *Set, name string) (State, bool) {
	for _, g := range s.All() {
		if g.Name == name {
			return g, true
		}
	}
	return State{}, false
}

func TestAllOfAStage(t *testing.T) {
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

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		release, set string
		own          []Gate
		want         string
	}{
		{release: "1.x", want: `Release: "1.x" is no release: it has a form like 1.36`},
		{release: "99999.1", want: `Release: "99999.1" is no release`},
		{set: "WatchLists=true", want: `Features["WatchLists"]: there is no such gate; did you mean "WatchList"?`},
		{set: "AllGamma=true", want: `Features["AllGamma"]: there is no such gate`},
		{own: []Gate{{}}, want: "Gates[0] (): a name has letters and digits"},
		{own: []Gate{{Name: "a b", Beta: "0.0"}}, want: "Gates[0] (a b): a name has letters and digits"},
		{own: []Gate{{Name: "Blink"}}, want: "Gates[0] (Blink): it is in no stage in any release"},
		{own: []Gate{{Name: "Blink", Beta: "soon"}}, want: `Gates[0] (Blink): "soon" is no release`},
		{own: []Gate{{Name: "Blink", Alpha: "1.10", Beta: "1.9"}}, want: "Gates[0] (Blink): the stage that begins in 1.9 comes after one that begins later"},
		{own: []Gate{{Name: "Blink", Stable: "1.1", Deprecated: "1.2"}}, want: "Gates[0] (Blink): it is stable or deprecated, not both"},
		{own: []Gate{{Name: "Blink", Beta: "0.0"}, {Name: "Blink", Beta: "0.0"}}, want: "Gates[1] (Blink): there is a gate of this name"},
		{own: []Gate{{Name: "WatchList", Beta: "0.0"}}, want: "Gates[0] (WatchList): there is a gate of this name"},
		{own: []Gate{{Name: "AllBeta", Beta: "0.0"}}, want: "Gates[0] (AllBeta): there is a gate of this name"},
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
	for text, want := range map[string]string{"A": "missing bool value for A", "A=maybe": "invalid value of A=maybe", "=": "invalid value"} {
		_, err := Parse(text)
		assert.ErrorContains(t, err, want)
	}
}

// TestGates: the library's own are without faults, in their order, and what they say of
// themselves is there.
func TestGates(t *testing.T) {
	last := ""
	for _, g := range Gates() {
		assert.Empty(t, g.fault(), g.Name)
		assert.Less(t, last, g.Name)
		assert.NotEmpty(t, g.Doc, g.Name)
		last = g.Name
	}
	_, err := New("", nil)
	require.NoError(t, err)
	for release := range 40 {
		_, err := New("1."+strconv.Itoa(release), nil)
		require.NoError(t, err)
	}
}

// TestNoSet: nil is a server of the newest release with nothing set.
func TestNoSet(t *testing.T) {
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
