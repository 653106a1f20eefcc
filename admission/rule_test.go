package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// TestRuleMatches checks the fields of a rule with all their wildcards.
func TestRuleMatches(t *testing.T) {
	type request struct {
		op                       admission.Operation
		group, version, resource string
		sub, namespace           string
	}
	pod := request{op: admission.Create, version: "v1", resource: "pods", namespace: "default"}
	podStatus := request{op: admission.Update, version: "v1", resource: "pods", sub: "status", namespace: "default"}
	exec := request{op: admission.Connect, version: "v1", resource: "pods", sub: "exec", namespace: "default"}
	deployment := request{op: admission.Delete, group: "apps", version: "v1", resource: "deployments", namespace: "default"}
	scale := request{op: admission.Update, group: "apps", version: "v1", resource: "deployments", sub: "scale", namespace: "default"}
	node := request{op: admission.Create, version: "v1", resource: "nodes"}
	all := []request{pod, podStatus, exec, deployment, scale, node}

	resources := func(words ...string) admission.Rule { return admission.Rule{Resources: words} }
	for _, test := range []struct {
		name string
		rule admission.Rule
		want []request
	}{
		{"nothing said", admission.Rule{}, all},
		{"operation", admission.Rule{Operations: []admission.Operation{admission.Create}}, []request{pod, node}},
		{"operations", admission.Rule{Operations: []admission.Operation{admission.Delete, admission.Connect}}, []request{exec, deployment}},
		{"every operation", admission.Rule{Operations: []admission.Operation{"*"}}, all},
		{"core group", admission.Rule{Groups: []string{""}}, []request{pod, podStatus, exec, node}},
		{"group", admission.Rule{Groups: []string{"apps", "batch"}}, []request{deployment, scale}},
		{"every group", admission.Rule{Groups: []string{"*"}}, all},
		{"version", admission.Rule{Versions: []string{"v1beta1"}}, nil},
		{"every version", admission.Rule{Versions: []string{"*"}}, all},
		{"cluster", admission.Rule{Scope: admission.Cluster}, []request{node}},
		{"namespaced", admission.Rule{Scope: admission.Namespaced}, []request{pod, podStatus, exec, deployment, scale}},
		{"every scope", admission.Rule{Scope: admission.AllScopes}, all},
		{"resource", resources("pods"), []request{pod}},
		{"subresource", resources("pods/exec"), []request{exec}},
		{"resource and subresource", resources("pods", "pods/status"), []request{pod, podStatus}},
		{"resource with its own", resources("pods/*"), []request{pod, podStatus, exec}},
		{"every resource", resources("*"), []request{pod, deployment, node}},
		{"one subresource of all", resources("*/scale"), []request{scale}},
		{"everything", resources("*/*"), all},
		{"all of it", admission.Rule{Operations: []admission.Operation{admission.Update}, Groups: []string{"apps"}, Versions: []string{"v1"},
			Resources: []string{"*/*"}, Scope: admission.Namespaced}, []request{scale}},
	} {
		var got []request
		for _, r := range all {
			if test.rule.Matches(&admission.Request{Operation: r.op, Subresource: r.sub, Namespace: r.namespace,
				Resource: meta.GroupVersionResource{Group: r.group, Version: r.version, Resource: r.resource}}) {
				got = append(got, r)
			}
		}
		assert.Equal(t, test.want, got, test.name)
	}
}

// TestRuleMatchesGroupAndVersionTogether checks a type with versions in two groups.
func TestRuleMatchesGroupAndVersionTogether(t *testing.T) {
	r := &admission.Request{Resource: meta.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Type: &registry.Type{
		AllVersions: []meta.GroupVersion{{Group: "apps", Version: "v1"}, {Group: "extensions", Version: "v1beta1"}},
	}}
	for _, test := range []struct {
		group, version string
		want           bool
	}{
		{"apps", "v1", true},
		{"extensions", "v1beta1", true},
		{"extensions", "*", true},
		{"extensions", "v1", false},
		{"apps", "v1beta1", false},
	} {
		rule := admission.Rule{Groups: []string{test.group}, Versions: []string{test.version}}
		assert.Equal(t, test.want, rule.Matches(r), test)
	}
}
