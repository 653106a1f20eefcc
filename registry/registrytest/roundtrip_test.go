package registrytest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/registrytest"
)

// Lamp is the hub, v2.
type Lamp struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`
	Spec            LampSpec `json:"spec,omitempty" protobuf:"2"`
}

type LampSpec struct {
	Watts  int32    `json:"watts,omitempty" protobuf:"1" schema:"min=0,default=40"`
	Color  string   `json:"color,omitempty" protobuf:"2"` // not in v1
	Labels []string `json:"labels,omitempty" protobuf:"3"`
}

type LampV1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`
	Power           int32    `json:"power,omitempty" protobuf:"2"`
	Labels          []string `json:"labels,omitempty" protobuf:"3"`
}

func toHub(in *LampV1, out *Lamp) error {
	out.Spec.Watts, out.Spec.Labels = in.Power, in.Labels
	return nil
}

func fromHub(in *Lamp, out *LampV1) error {
	out.Power, out.Labels = in.Spec.Watts, in.Spec.Labels
	return nil
}

func lamps(toHub func(*LampV1, *Lamp) error, fromHub func(*Lamp, *LampV1) error) registry.Definition[Lamp] {
	return registry.Definition[Lamp]{Group: "example.com", Version: "v2", Versions: []registry.VersionOf[Lamp]{
		registry.Spoke[LampV1, Lamp]{Version: "v1", ToHub: toHub, FromHub: fromHub},
	}}
}

// recorder is a testing.TB that records the failures that RoundTrip reports.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func failures(t *testing.T, d registry.Definition[Lamp]) string {
	r := &recorder{TB: t}
	registrytest.RoundTrip(r, registry.Of(d))
	return strings.Join(r.failures, "\n")
}

func TestRoundTripAcceptsGoodConversion(t *testing.T) {
	registrytest.RoundTrip(t, registry.Of(lamps(toHub, fromHub)))
}

// TestRoundTripReportsBadConversions checks the failure that each kind of mistake causes.
func TestRoundTripReportsBadConversions(t *testing.T) {
	for name, c := range map[string]struct {
		kind registry.Definition[Lamp]
		want string
	}{
		"forgets a field": {lamps(func(in *LampV1, out *Lamp) error { out.Spec.Watts = in.Power; return nil }, fromHub),
			"Lamp.example.com, version v1, seed 0: labels is unset, want "},
		"changes a value": {lamps(toHub, func(in *Lamp, out *LampV1) error {
			out.Power, out.Labels = in.Spec.Watts+1, in.Spec.Labels
			return nil
		}), "version v1, seed 0: power is"},
		"changes its input": {lamps(toHub, func(in *Lamp, out *LampV1) error {
			out.Power, out.Labels = in.Spec.Watts, in.Spec.Labels
			in.Spec.Labels = nil
			return nil
		}), ""}, // allowed: the input is a copy
		"rejects everything": {lamps(func(*LampV1, *Lamp) error { return errors.New("no") }, fromHub),
			"version v1: ToHub rejects 100 of 100 objects, see Options.Generators; the last: "},
		"fails from the hub": {lamps(toHub, func(*Lamp, *LampV1) error { return errors.New("not supported") }),
			`version v2, seed 0: lamps.example.com "seed-0" of version example.com/v2 cannot be converted to example.com/v1: not supported`},
		"panics": {lamps(toHub, func(in *Lamp, _ *LampV1) error { _ = in.Spec.Labels[1000]; return nil }), "the conversion panicked: runtime error: index out of range"},
	} {
		got := failures(t, c.kind)
		if c.want == "" {
			assert.Empty(t, got, name)
			continue
		}
		assert.Contains(t, got, c.want, name)
	}
}

type Switch struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Mode            string `json:"mode" schema:"required,enum=on|off"`
}

type SwitchV1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty"`
	Mode            string `json:"mode" schema:"required,enum=on|off|dim"`
}

// TestPanicIsNotRejection checks that an error of ToHub skips an object, whereas a panic is
// reported.
func TestPanicIsNotRejection(t *testing.T) {
	run := func(dim func() error) string {
		r := &recorder{TB: t}
		registrytest.RoundTrip(r, registry.Of(registry.Definition[Switch]{Group: "example.com", Version: "v2", Versions: []registry.VersionOf[Switch]{
			registry.Spoke[SwitchV1, Switch]{Version: "v1",
				ToHub: func(in *SwitchV1, out *Switch) error {
					if out.Mode = in.Mode; in.Mode == "dim" {
						return dim()
					}
					return nil
				},
				FromHub: func(in *Switch, out *SwitchV1) error {
					out.Mode = in.Mode
					return nil
				},
			},
		}}))
		return strings.Join(r.failures, "\n")
	}
	assert.Empty(t, run(func() error { return errors.New("cannot dim") }))
	bad := run(func() error { panic("cannot dim") })
	for _, version := range []string{"v1", "v2"} {
		assert.Regexp(t, "version "+version+", seed .* the conversion panicked: cannot dim", bad)
	}
}

// TestRoundTripReportsUnstableDefaults checks that a Default hook that changes its own result is
// reported.
func TestRoundTripReportsUnstableDefaults(t *testing.T) {
	d := lamps(toHub, fromHub)
	d.Default = func(w *registry.Change[Lamp]) { w.New.Spec.Watts++ }
	assert.Contains(t, failures(t, d), "version v2, seed 0: spec.watts is")
}

// TestSeedRepeatsFailure checks that a single seed causes the same failure as in a run with all
// seeds.
func TestSeedRepeatsFailure(t *testing.T) {
	bad := lamps(func(in *LampV1, out *Lamp) error {
		out.Spec.Watts, out.Spec.Labels = in.Power, in.Labels
		if len(in.Labels) == 2 {
			out.Spec.Labels = in.Labels[:1]
		}
		return nil
	}, fromHub)
	all := failures(t, bad)
	var seed uint64
	_, err := fmt.Sscanf(all[strings.Index(all, "seed "):], "seed %d:", &seed)
	assert.NoError(t, err)
	r := &recorder{TB: t}
	registrytest.Options{Seeds: []uint64{seed}}.RoundTrip(r, registry.Of(bad))
	assert.Contains(t, all, r.failures[0])
}
