package apiextensions

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// columns returns the printer columns of definitions.
func columns() []registry.Column {
	wide := func(name, doc string, cell func(o *meta.Object) any) registry.Column {
		return registry.Column{Name: name, Type: "string", Priority: 1, Doc: doc, Cell: cell}
	}
	return []registry.Column{
		registry.TextColumn("Scope", "Namespaced or Cluster.", "spec", "scope"),
		{Name: "Versions", Type: "string", Doc: "The served versions.", Cell: func(o *meta.Object) any {
			var served []string
			for _, v := range o.Objects("spec", "versions") {
				switch name := v.String("name"); {
				case v.Bool("served") && v.Bool("storage"):
					served = append(served, name+"(storage)")
				case v.Bool("served"):
					served = append(served, name)
				}
			}
			slices.Sort(served)
			return strings.Join(served, ",")
		}},
		{Name: "Created At", Type: "date", Doc: "The time of creation.", Cell: func(o *meta.Object) any {
			return o.String("metadata", "creationTimestamp")
		}},
		wide("Group", "The API group of the kind.", func(o *meta.Object) any { return o.String("spec", "group") }),
		wide("Kind", "The kind of the objects.", func(o *meta.Object) any { return o.String("spec", "names", "kind") }),
		wide("ShortNames", "Short names of the resource.", func(o *meta.Object) any { return strings.Join(o.Strings("spec", "names", "shortNames"), ",") }),
		{Name: "Established", Type: "boolean", Priority: 1, Doc: "True if the kind is served.", Cell: func(o *meta.Object) any {
			return slices.ContainsFunc(o.Objects("status", "conditions"), func(c *meta.Object) bool {
				return c.String("type") == "Established" && c.String("status") == "True"
			})
		}},
	}
}
