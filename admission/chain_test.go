package admission_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
)

// journal returns plugins that record their calls.
type journal struct{ lines []string }

func (j *journal) plugin(name string, rules ...admission.Rule) admission.Plugin {
	note := func(phase string) func(context.Context, *admission.Request) error {
		return func(context.Context, *admission.Request) error {
			j.lines = append(j.lines, phase+" "+name)
			return nil
		}
	}
	return admission.Plugin{Name: name, Rules: rules, Mutate: note("mutate"), Validate: note("validate")}
}

func (j *journal) take() []string {
	lines := j.lines
	j.lines = nil
	return lines
}

func request(group, resource string) *admission.Request {
	return &admission.Request{Operation: admission.Create, Resource: meta.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, Object: meta.NewObject(nil)}
}

func chain(t *testing.T, table []admission.Plugin, o admission.Options) *admission.Chain {
	c, err := admission.New(table, o, admission.PluginContext{Names: names.Kubernetes})
	require.NoError(t, err)
	return c
}

// TestChainOrder checks that the plugins whose rules match run in the order of the table, and that rules name
// groups by their spec names.
func TestChainOrder(t *testing.T) {
	var j journal
	on := func(groups []string, resources ...string) admission.Rule {
		return admission.Rule{Groups: groups, Resources: resources}
	}
	table := []admission.Plugin{
		j.plugin("a"), j.plugin("pods", on([]string{""}, "pods")), j.plugin("b", on(nil, "*")),
		j.plugin("requests", on([]string{wellknown.GroupCertificates}, "certificatesigningrequests")),
		j.plugin("both", on(nil, "pods"), on(nil, "certificatesigningrequests")), j.plugin("c"),
	}
	c := chain(t, table, admission.Options{})
	for _, test := range []struct {
		group, resource string
		want            []string
	}{
		{"", "pods", []string{"a", "pods", "b", "both", "c"}},
		{"other", "pods", []string{"a", "b", "both", "c"}},
		{"certificates.k8s.io", "certificatesigningrequests", []string{"a", "b", "requests", "both", "c"}},
		{"certificates.orch.io", "certificatesigningrequests", []string{"a", "b", "both", "c"}},
		{"", "configmaps", []string{"a", "b", "c"}},
	} {
		r, want := request(test.group, test.resource), []string(nil)
		require.NoError(t, c.Mutate(context.Background(), r))
		require.NoError(t, c.Validate(context.Background(), r))
		for _, phase := range []string{"mutate ", "validate "} {
			for _, name := range test.want {
				want = append(want, phase+name)
			}
		}
		assert.Equal(t, want, j.take(), test)
	}
}

// TestReinvokeRunsPluginsAtMostTwice checks that earlier plugins run again after Reinvoke, and at most twice.
func TestReinvokeRunsPluginsAtMostTwice(t *testing.T) {
	var passes []int
	table := []admission.Plugin{
		{Name: "Label", Mutate: func(_ context.Context, r *admission.Request) error {
			for _, c := range r.Object.List("spec", "containers") {
				c.(map[string]any)["pull"] = "Always"
			}
			return nil
		}},
		{Name: "Inject", Mutate: func(_ context.Context, r *admission.Request) error {
			passes = append(passes, r.Pass)
			if len(r.Object.List("spec", "containers")) == 0 {
				r.Object.Set([]any{map[string]any{"name": "sidecar"}}, "spec", "containers")
			}
			r.Reinvoke() // on every pass: the chain must stop after two
			return nil
		}},
	}
	c := chain(t, table, admission.Options{})
	r := request("", "pods")
	for range 2 {
		require.NoError(t, c.Mutate(context.Background(), r))
		assert.Equal(t, []any{map[string]any{"name": "sidecar", "pull": "Always"}}, r.Object.List("spec", "containers"))
		assert.Equal(t, []int{0, 1}, passes)
		passes = nil
	}
}

// TestOncePerPhase checks that nothing runs again without Reinvoke, and that an error in the second pass ends
// the phase.
func TestOncePerPhase(t *testing.T) {
	var j journal
	c := chain(t, []admission.Plugin{j.plugin("a"), j.plugin("b")}, admission.Options{})
	require.NoError(t, c.Mutate(context.Background(), request("", "pods")))
	assert.Equal(t, []string{"mutate a", "mutate b"}, j.take())

	refuses := admission.Plugin{Name: "refuses", Mutate: func(_ context.Context, r *admission.Request) error {
		r.Reinvoke()
		if r.Pass == 1 {
			return errors.New("not like this")
		}
		return nil
	}}
	c = chain(t, []admission.Plugin{refuses, j.plugin("b")}, admission.Options{})
	r := request("", "pods")
	r.Name = "x"
	assert.EqualError(t, c.Mutate(context.Background(), r), `pods "x" is forbidden: not like this`)
	assert.Equal(t, []string{"mutate b"}, j.take())
}

// TestOptionsSelectPluginsByName checks that options select plugins by name, and that New reports all errors in them.
func TestOptionsSelectPluginsByName(t *testing.T) {
	type config struct{ Seconds int }
	var j journal
	seen := config{}
	table := func() []admission.Plugin {
		on, off, required := j.plugin("On"), j.plugin("Off"), j.plugin("Required")
		off.Default, required.Default = admission.Off, admission.Required
		on.Config = config{300}
		on.Setup = func(_ *admission.Plugin, env admission.PluginContext) error {
			seen = env.Config.(config)
			return nil
		}
		return []admission.Plugin{on, off, required}
	}
	run := func(o admission.Options) []string {
		require.NoError(t, chain(t, table(), o).Validate(context.Background(), request("", "pods")))
		return j.take()
	}
	assert.Equal(t, []string{"validate On", "validate Required"}, run(admission.Options{}))
	assert.Equal(t, config{300}, seen)
	assert.Equal(t, []string{"validate On", "validate Off", "validate Required"}, run(admission.Options{Enable: []string{"Off"}, Config: map[string]any{"On": config{60}}}))
	assert.Equal(t, config{60}, seen)
	assert.Equal(t, []string{"validate Required"}, run(admission.Options{Disable: []string{"On"}}))

	_, err := admission.New(append(table(), j.plugin("On"), j.plugin("")), admission.Options{
		Enable: []string{"On", "NoSuch"}, Disable: []string{"Required", "On", "Neither"},
		Config: map[string]any{"Off": 1, "Nobody": 2, "On": "text"},
	}, admission.PluginContext{})
	assert.EqualError(t, err, `admission plugin 4 of the table has an empty or duplicate name: "On"
admission plugin 5 of the table has an empty or duplicate name: ""
Options.Enable[1]: there is no admission plugin "NoSuch"
Options.Disable[2]: there is no admission plugin "Neither"
Options.Config["Nobody"]: there is no admission plugin "Nobody"
the admission plugin Required cannot be disabled
the admission plugin On is both enabled and disabled
the configuration of the admission plugin Off must be a <nil>, not a int
the admission plugin Off is configured, but does not run
the configuration of the admission plugin On must be a <nil>, not a string
the admission plugin On is configured, but does not run`)
}

// TestRulesAreChecked checks that New reports words that no request can match, and plugins that do nothing.
func TestRulesAreChecked(t *testing.T) {
	var j journal
	_, err := admission.New([]admission.Plugin{
		j.plugin("Good", admission.Rule{Operations: []admission.Operation{"*"}, Groups: []string{"", "*", "rbac.authorization.orch.io"}, Versions: []string{"*", "v1beta1"},
			Resources: []string{"*", "*/*", "pods/*", "*/scale", "pods/status"}, Scope: admission.AllScopes}),
		j.plugin("Words", admission.Rule{}, admission.Rule{Operations: []admission.Operation{"create"}, Scope: "cluster", Groups: []string{"Apps"}, Versions: []string{"1"}}),
		j.plugin("Plurals", admission.Rule{Resources: []string{"Pod", "pods/", "", "pods/a/b"}}),
	}, admission.Options{Disable: []string{"Plurals"}}, admission.PluginContext{})
	require.Error(t, err)
	var texts []string
	for _, line := range strings.Split(err.Error(), "\n") {
		line, _, _ = strings.Cut(line, " must")
		line, _, _ = strings.Cut(line, " a ")
		texts = append(texts, line)
	}
	assert.Equal(t, []string{
		`rule 2 of the admission plugin Words: unknown operation "create": use CREATE, UPDATE, DELETE, CONNECT or *`,
		`rule 2 of the admission plugin Words: unknown scope "cluster": use Cluster, Namespaced or *`,
		`rule 2 of the admission plugin Words: group "Apps"`,
		`rule 2 of the admission plugin Words: version "1"`,
		`rule 1 of the admission plugin Plurals: resource "Pod"`,
		`rule 1 of the admission plugin Plurals: resource "pods/"`,
		`rule 1 of the admission plugin Plurals: resource ""`,
		`rule 1 of the admission plugin Plurals: resource "pods/a/b"`,
	}, texts)

	_, err = admission.New([]admission.Plugin{
		{Name: "Nothing"},
		{Name: "Idle", Setup: func(*admission.Plugin, admission.PluginContext) error { return nil }},
		{Name: "Asleep", Default: admission.Off},
	}, admission.Options{}, admission.PluginContext{})
	assert.EqualError(t, err, "admission plugin Nothing has neither Mutate nor Validate\nadmission plugin Idle has neither Mutate nor Validate")
}

// TestSetupErrorsFailTheChain checks that a chain is not built without a plugin whose Setup failed.
func TestSetupErrorsFailTheChain(t *testing.T) {
	var j journal
	broken := j.plugin("Broken")
	boom := errors.New("boom")
	broken.Setup = func(*admission.Plugin, admission.PluginContext) error { return boom }
	_, err := admission.New([]admission.Plugin{j.plugin("Good"), broken}, admission.Options{}, admission.PluginContext{})
	assert.ErrorIs(t, err, boom)
	assert.ErrorContains(t, err, "admission plugin Broken")
}

// TestEndedCallsAfterOnceInReverseOrder checks also that a second call of Ended does nothing.
func TestEndedCallsAfterOnceInReverseOrder(t *testing.T) {
	var r admission.Request
	var outcomes []string
	r.After(func(written, _ bool) { outcomes = append(outcomes, fmt.Sprint("first ", written)) })
	r.After(func(written, _ bool) { outcomes = append(outcomes, fmt.Sprint("second ", written)) })
	r.Ended(true, true)
	r.Ended(false, true)
	assert.Equal(t, []string{"second true", "first true"}, outcomes)
}
