// Package names maps the product's own names (spec names) to the names on the wire: the same
// names for the profile Orch, and those of Kubernetes for the profile Kubernetes.
//
// The server uses spec names throughout and translates them when it reads or writes them, as in
// p.Wire("orch.io/metadata.name").
package names

import "strings"

// Profile selects the wire names. The zero value is Orch.
type Profile int

const (
	// Orch uses the product's own names: meta.orch.io, orch-system, ...
	Orch Profile = iota
	// Kubernetes uses the names that unmodified kubectl, client-go and helm expect:
	// meta.k8s.io, kube-system, ...
	Kubernetes
)

// String returns the value of the flag that selects the profile.
func (p Profile) String() string {
	if p == Kubernetes {
		return "kubernetes"
	}
	return "orch"
}

// Parse returns the profile with the given String, and false if there is none.
func Parse(s string) (Profile, bool) {
	switch s {
	case "orch":
		return Orch, true
	case "kubernetes":
		return Kubernetes, true
	}
	return 0, false
}

// Same reports whether wire is the wire name of spec in any profile. It is for code that does
// not know the profile, such as table columns.
func Same(wire, spec string) bool {
	return wire == Orch.Wire(spec) || wire == Kubernetes.Wire(spec)
}

// Wire returns the wire name of a spec name. Names without an entry and without a matching
// prefix are returned unchanged.
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

// Group returns the wire name of an API group. Groups without the product's domain (core, apps,
// batch, ...) have the same name in both profiles.
func (p Profile) Group(spec string) string {
	if p == Orch {
		return spec
	}
	if base, ok := strings.CutSuffix(spec, ".orch.io"); ok {
		return base + ".k8s.io"
	}
	return spec
}

// Extension returns the wire name of a schema extension, such as x-orch-list-type for
// "list-type".
func (p Profile) Extension(name string) string {
	if p == Kubernetes {
		return "x-kubernetes-" + name
	}
	return "x-orch-" + name
}

// Reserved reports whether an API group belongs to the product's own domain.
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

// Field returns the wire name of an object's field. Only some volume sources have different
// names in the profiles.
//
// If spec is a name such as "extension:list-type", Field returns the name of the schema
// extension.
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

// ProductName returns the display name of the product.
func (p Profile) ProductName() string {
	if p == Kubernetes {
		return "Kubernetes"
	}
	return "Orch"
}

// ProtobufType returns the media type of the protobuf encoding.
func (p Profile) ProtobufType() string { return "application/vnd." + p.word() + ".protobuf" }

// SystemNamespace returns the system namespace with a purpose: "system", "public" or
// "node-lease".
func (p Profile) SystemNamespace(purpose string) string {
	if p == Kubernetes {
		return "kube-" + purpose
	}
	return "orch-" + purpose
}

// FlowHeaders returns the names of the response headers with the UIDs of the flow schema and
// the priority level of the request.
func (p Profile) FlowHeaders() (schema, level string) {
	prefix := "X-Orch-PF-"
	if p == Kubernetes {
		prefix = "X-Kubernetes-PF-"
	}
	return prefix + "FlowSchema-UID", prefix + "PriorityLevel-UID"
}

// DefinitionName returns the OpenAPI definition name with the given path.
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
