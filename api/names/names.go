// Package names is the naming table: every name that goes on the wire, under
// the product's own names and under those that Kubernetes clients know.
//
// Code says what it means with the constants here, which are the product's own
// (spec) names, and asks the Profile for the word to send: p.Wire(names.CreatedBy).
// No such word stands anywhere else.
package names

import "strings"

// Profile chooses one column of the naming table. The zero value is Orch.
type Profile int

const (
	// Orch uses the product's own names: meta.orch.io, orch-system, ...
	Orch Profile = iota
	// Kubernetes uses the names that unmodified kubectl, client-go and helm
	// know: meta.k8s.io, kube-system, ...
	Kubernetes
)

// String returns the name of the profile as flags spell it.
func (p Profile) String() string {
	if p == Kubernetes {
		return "kubernetes"
	}
	return "orch"
}

// Parse returns the profile that String names, and false for any other word.
func Parse(s string) (Profile, bool) {
	switch s {
	case "orch":
		return Orch, true
	case "kubernetes":
		return Kubernetes, true
	}
	return 0, false
}

// Same reports whether a word on the wire is a spec name in the words of any profile. It
// is for readers who do not know the profile, such as columns.
func Same(wire, spec string) bool {
	return wire == Orch.Wire(spec) || wire == Kubernetes.Wire(spec)
}

// Wire returns the word to send for a spec name: whole names by the table, then
// the prefix rules; a name that neither knows is returned as it is.
func (p Profile) Wire(spec string) string {
	if p == Orch {
		return spec
	}
	if w, ok := whole[spec]; ok {
		return w
	}
	for _, r := range prefixes {
		if rest, ok := strings.CutPrefix(spec, r.spec); ok {
			return r.wire + rest
		}
	}
	return spec
}

// Group returns the wire name of an API group given by its spec name. Groups
// without the product's suffix (core, apps, batch, ...) are the same in both.
func (p Profile) Group(spec string) string {
	if p == Orch {
		return spec
	}
	if base, ok := strings.CutSuffix(spec, ".orch.io"); ok {
		return base + ".k8s.io"
	}
	return spec
}

// Extension returns the wire name of a schema extension, such as
// "list-type" for x-orch-list-type.
func (p Profile) Extension(name string) string {
	if p == Kubernetes {
		return "x-kubernetes-" + name
	}
	return "x-orch-" + name
}

// Reserved reports whether an API group belongs to the product itself.
func (p Profile) Reserved(group string) bool {
	own := []string{"orch.io"}
	if p == Kubernetes {
		own = []string{"k8s.io", "kubernetes.io"}
	}
	for _, domain := range own {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// Field returns the wire name of an object's field given by its spec name;
// only some volume sources differ.
//
// A name such as "extension:list-type" is that of a schema extension.
func (p Profile) Field(spec string) string {
	if name, ok := strings.CutPrefix(spec, "extension:"); ok {
		return p.Extension(name)
	}
	if p == Kubernetes {
		if w, ok := fields[spec]; ok {
			return w
		}
	}
	return spec
}

// ProductName is the name of the product for people.
func (p Profile) ProductName() string {
	if p == Kubernetes {
		return "Kubernetes"
	}
	return "Orch"
}

// ProtobufType is the media type of the protobuf representation.
func (p Profile) ProtobufType() string { return "application/vnd." + p.word() + ".protobuf" }

// SystemNamespace returns the namespace of a given purpose: "system", "public"
// or "node-lease".
func (p Profile) SystemNamespace(purpose string) string {
	if p == Kubernetes {
		return "kube-" + purpose
	}
	return "orch-" + purpose
}

// FlowHeaders returns the names of the headers that tell by which flow schema
// and priority level a request was served.
func (p Profile) FlowHeaders() (schema, level string) {
	prefix := "X-Orch-PF-"
	if p == Kubernetes {
		prefix = "X-Kubernetes-PF-"
	}
	return prefix + "FlowSchema-UID", prefix + "PriorityLevel-UID"
}

// DefinitionName returns the OpenAPI definition name of a built-in Go type.
func (p Profile) DefinitionName(path ...string) string {
	root := "io.orch."
	if p == Kubernetes {
		root = "io.k8s."
	}
	return root + strings.Join(path, ".")
}

func (p Profile) word() string {
	if p == Kubernetes {
		return "kubernetes"
	}
	return "orch"
}
