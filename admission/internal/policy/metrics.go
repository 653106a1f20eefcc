package policy

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/internal/metrics"
)

// counts are the metrics of validating or mutating policies, under the names of kube-apiserver. Only existing
// policies and bindings have series.
type counts struct {
	checks     *prometheus.CounterVec
	took       *prometheus.HistogramVec
	conditions *matcher.Figures
	policies   metrics.NameFilter
	bindings   metrics.NameFilter // by policy/binding
}

// The values of the label error_type.
const (
	noError      = "no_error"
	compileError = "compile_error"
	invalidError = "invalid_error"
)

// errorType returns the label for the error of an expression. fault is its compilation error.
func errorType(fault, err error) string {
	switch {
	case fault != nil:
		return compileError
	case err != nil:
		return invalidError
	}
	return noError
}

// newCounts registers the metrics of a type of policies, validating or mutating. labels are added after the labels
// of the policy, the binding and the error.
func newCounts(to prometheus.Registerer, sort, phase string, class metrics.Stability, labels ...string) (*counts, error) {
	s, prefix := metrics.For(to), "apiserver_"+sort+"_admission_policy_"
	labels = append([]string{"policy", "policy_binding", "error_type"}, labels...)
	c := &counts{
		checks: s.Counters(metrics.Family{
			Name: prefix + "check_total", Help: "Evaluations of an expression of a policy, by binding and result.", Stability: class, Labels: labels,
		}),
		took: s.Histograms(metrics.Family{
			Name: prefix + "check_duration_seconds", Help: "Time to evaluate an expression of a policy, in seconds, by binding and result.",
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

// matched counts the evaluation of the match conditions of a policy, if it has any.
func (c *counts) matched(p *policy, op admission.Operation, took time.Duration, ok bool, err error) {
	if !p.conditions.Empty() {
		c.policies.Count(p.name, func() { c.conditions.Observe(p.name, op, took, ok, err) })
	}
}

// show creates the series of the policies and bindings in the list, and deletes other series.
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

// bindingName returns a unique name of a binding of a policy. Object names contain no slash.
func bindingName(policy, binding string) string { return policy + "/" + binding }
