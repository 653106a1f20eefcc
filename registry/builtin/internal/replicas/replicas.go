// Package replicas holds what kinds that keep a number of pods have in common.
package replicas

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Column returns a column with the number at a path, 0 if there is none.
func Column(name, doc string, path ...string) registry.Column {
	return registry.Column{Name: name, Type: "integer", Doc: doc, Cell: func(o *meta.Object) any { return o.Int(path...) }}
}

// Scale returns where these kinds keep what the sub-resource scale shows.
func Scale() *registry.Scale {
	return &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", Selector: ".spec.selector", Body: scales()}
}

// Part is how many of the pods are in some state, as a field of the status says.
type Part struct {
	Field string
	Pods  int32
}

// Within checks that each part has no more pods than the whole.
func Within(f *check.Faults, whole Part, parts ...Part) {
	for _, p := range parts {
		if p.Pods > whole.Pods {
			f.Invalid(check.At("status", p.Field), p.Pods, "cannot be greater than status."+whole.Field)
		}
	}
}
