package resource

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/release"
	"orch.io/controlplane/internal/suggest"
	"orch.io/controlplane/registry"
)

// checkDeclaration reports fields of the kind that exclude or require each other.
func (c *compiler) checkDeclaration(t *Type) {
	k := c.kind
	if k.Act != nil && k.Read != nil {
		c.errorf("Act and Read are mutually exclusive")
	}
	if t.Virtual && (k.Status || k.Scale != nil || len(k.Subresources) > 0 || k.Allocator != nil) {
		c.errorf("a kind with Act or Read is not stored: it cannot have Status, Scale, Subresources or an Allocator")
	}
	if k.Allocator != nil && (k.Allocator.Values == nil || k.Allocator.Allocate == nil) {
		c.errorf("Allocator needs Values and Allocate")
	}
	for _, kv := range k.Versions {
		if kv.Replacement != (meta.GroupVersionKind{}) && kv.Deprecated == "" && kv.Lifetime.Deprecated == "" {
			c.errorf("version %q has a Replacement but is not deprecated: set Deprecated or Lifetime.Deprecated", &kv)
		}
		c.checkLifetime(&kv)
	}
	if c.names == names.Orch && !k.Custom() && names.Kubernetes.Reserved(k.Group) {
		c.errorf("Group %q belongs to the naming profile %s, but the server uses %s", k.Group, names.Kubernetes, c.names)
	}
}

// checkLifetime checks that a version is introduced, deprecated and removed in that order.
func (c *compiler) checkLifetime(kv *registry.KindVersion) {
	var last release.Release
	for _, named := range []string{kv.Lifetime.Introduced, kv.Lifetime.Deprecated, kv.Lifetime.Removed} {
		if named == "" {
			continue
		}
		r, err := release.Parse(named)
		switch {
		case err != nil:
			c.errorf("version %q: Lifetime: %w", kv, err)
		case r.Compare(last) < 0:
			c.errorf("version %q: Lifetime: %s is before %s", kv, r, last)
		default:
			last = r
		}
	}
}

// checkDuplicate reports a word that occurs earlier in its list. Custom kinds are exempt, because
// kube-apiserver accepts duplicates in definitions.
func (c *compiler) checkDuplicate(what string, before []string, word string) {
	if !c.kind.Custom() && slices.Contains(before, word) {
		c.errorf("%s: duplicate %q", what, word)
	}
}

// checkLacks checks that the subresources which versions lack exist.
func (c *compiler) checkLacks(t *Type) {
	if c.kind.Custom() { // the compiler derives the lists of custom kinds from the versions
		return
	}
	var known []string
	for _, s := range t.Subresources {
		known = append(known, s.Name)
	}
	for _, v := range t.Versions {
		for i, name := range v.lacks {
			if !slices.Contains(known, name) {
				c.errorf("version %q: MissingSubresources[%d]: the kind has no subresource %q%s", v.Name, i, name, suggest.Near(name, known...))
			}
		}
	}
}

// writableMetadata returns the metadata fields that a subresource may let callers change.
func writableMetadata() []string {
	return []string{"labels", "annotations", "finalizers", "ownerReferences"}
}

// nearField returns a suggestion for a path that does not exist in the schema: the path up to the
// first unknown name, with that name replaced by a similar field. It returns "" if there is none.
func nearField(s *schema.Schema, path []string) string {
	for i := range path {
		if _, ok := s.At(path[:i+1]...); ok {
			continue
		}
		parent, _ := s.At(path[:i]...)
		if parent == nil || parent.Struct == nil {
			return ""
		}
		var known []string
		for _, f := range parent.Struct.Fields {
			known = append(known, strings.Join(append(slices.Clone(path[:i]), f.Name), "."))
		}
		return suggest.Near(strings.Join(path[:i+1], "."), known...)
	}
	return ""
}
