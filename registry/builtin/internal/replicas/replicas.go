// Package replicas holds code that the workload kinds with replicas share.
package replicas

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Column returns a column that shows the number at path; an absent number is 0.
func Column(name, doc string, path ...string) registry.Column {
	return registry.Column{Name: name, Type: "integer", Doc: doc, Cell: func(o *meta.Object) any { return o.Int(path...) }}
}

// Scale returns the paths of the fields that the subresource scale reads and writes.
func Scale() *registry.Scale {
	return &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", Selector: ".spec.selector", Body: scales()}
}

// Part is a number of pods in some state, with its field in the status.
type Part struct {
	Field string
	Pods  int32
}

// Within reports a violation for each part that exceeds the whole.
func Within(f *check.Violations, whole Part, parts ...Part) {
	for _, p := range parts {
		if p.Pods > whole.Pods {
			f.Invalid(check.At("status", p.Field), p.Pods, "cannot be greater than status."+whole.Field)
		}
	}
}
