package policy

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/internal/metrics"
)

// counts are what operators watch of the policies of a sort, under the names that dashboards
// know. Series are those of policies and bindings that there are.
type counts struct {
	checks     *prometheus.CounterVec
	took       *prometheus.HistogramVec
	conditions *matcher.Figures
	policies   metrics.Named
	bindings   metrics.Named // by policy/binding
}

// How a check ended, in metrics.
const (
	noError      = "no_error"
	compileError = "compile_error"
	invalidError = "invalid_error"
)

// errorType is how metrics know the error of an expression; fault is why it could not be
// compiled.
func errorType(fault, err error) string {
	switch {
	case fault != nil:
		return compileError
	case err != nil:
		return invalidError
	}
	return noError
}

// newCounts makes those of a sort, validating or mutating. Labels come after those of the
// policy, the binding and the error.
func newCounts(to prometheus.Registerer, sort, phase string, class metrics.Stability, labels ...string) (*counts, error) {
	s, prefix := metrics.For(to), "apiserver_"+sort+"_admission_policy_"
	labels = append([]string{"policy", "policy_binding", "error_type"}, labels...)
	c := &counts{
		checks: s.Counters(metrics.Family{
			Name: prefix + "check_total", Help: "Evaluations of an expression of a policy, by the binding that asked for it and what came of it.", Stability: class, Labels: labels,
		}),
		took: s.Histograms(metrics.Family{
			Name: prefix + "check_duration_seconds", Help: "Time to evaluate an expression of a policy, in seconds, by the binding that asked for it and what came of it.",
			Stability: class, Labels: labels, Buckets: []float64{5e-7, .001, .01, .1, 1},
		}),
		conditions: matcher.NewFigures(s, "policy", phase),
	}
	return c, s.Err()
}

// check counts the evaluation of an expression for a binding.
func (c *counts) check(of call, took time.Duration, about ...string) {
	labels := append([]string{of.policy.name, of.binding.name}, about...)
	c.bindings.Count(bindingName(of.policy.name, of.binding.name), func() {
		c.checks.WithLabelValues(labels...).Inc()
		c.took.WithLabelValues(labels...).Observe(took.Seconds())
	})
}

// matched counts the evaluation of the conditions of a policy, if it has some.
func (c *counts) matched(p *policy, op admission.Operation, took time.Duration, ok bool, err error) {
	if !p.conditions.Empty() {
		c.policies.Count(p.name, func() { c.conditions.Observe(p.name, op, took, ok, err) })
	}
}

// show makes the policies in effect those that are told of.
func (c *counts) show(list []bound) {
	policies, bindings := map[string]bool{}, map[string]bool{}
	for _, b := range list {
		policies[b.name] = true
		for _, by := range b.by {
			bindings[bindingName(b.name, by.name)] = true
		}
	}
	c.policies.Set(policies, c.conditions.Forget)
	c.bindings.Set(bindings, func(name string) {
		policy, binding, _ := strings.Cut(name, "/")
		gone := prometheus.Labels{"policy": policy, "policy_binding": binding}
		c.checks.DeletePartialMatch(gone)
		c.took.DeletePartialMatch(gone)
	})
}

// bindingName names a binding of a policy; names of objects have no slash.
func bindingName(policy, binding string) string { return policy + "/" + binding }
