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

// declared checks what a kind says of itself that is of no use together, or without
// something else.
func (c *compiler) declared(t *Type) {
	k := c.kind
	if k.Act != nil && k.Read != nil {
		c.fault("Act and Read: nothing is stored of either, and a kind has one of them")
	}
	if t.Virtual && (k.Status || k.Scale != nil || len(k.Subresources) > 0 || k.Allocator != nil) {
		c.fault("objects of a kind with Act or Read are not stored: it has no Status, Scale, Subresources or Pool")
	}
	if k.Allocator != nil && (k.Allocator.Values == nil || k.Allocator.Allocate == nil) {
		c.fault("Pool needs Held and Allot")
	}
	for _, kv := range k.Versions {
		if kv.Replacement != (meta.GroupVersionKind{}) && kv.Deprecated == "" && kv.Lifetime.Deprecated == "" {
			c.fault("version %q has a Replacement and is not Deprecated: the text for callers is missing", &kv)
		}
		c.lifetime(&kv)
	}
	if c.names == names.Orch && !k.Custom() && names.Kubernetes.Reserved(k.Group) {
		c.fault("Group %q is of the names %s, this server has those of %s", k.Group, names.Kubernetes, c.names)
	}
}

// lifetime checks that a version is introduced, deprecated and removed in that order.
func (c *compiler) lifetime(kv *registry.KindVersion) {
	var last release.Release
	for _, named := range []string{kv.Lifetime.Introduced, kv.Lifetime.Deprecated, kv.Lifetime.Removed} {
		if named == "" {
			continue
		}
		r, err := release.Parse(named)
		switch {
		case err != nil:
			c.fault("version %q: Lifetime: %w", kv, err)
		case r.Compare(last) < 0:
			c.fault("version %q: Lifetime: %s is before %s", kv, r, last)
		default:
			last = r
		}
	}
}

// once reports a word that stands before in its list. Clients may write definitions with
// such words.
func (c *compiler) once(what string, before []string, word string) {
	if !c.kind.Custom() && slices.Contains(before, word) {
		c.fault("%s %q is given twice", what, word)
	}
}

// lacks checks that versions lack sub-resources that there are.
func (c *compiler) lacks(t *Type) {
	if c.kind.Custom() { // its versions tell which they have
		return
	}
	var known []string
	for _, s := range t.Subresources {
		known = append(known, s.Name)
	}
	for _, v := range t.Versions {
		for i, name := range v.lacks {
			if !slices.Contains(known, name) {
				c.fault("version %q: Lacks[%d]: the kind has no sub-resource %q%s", v.Name, i, name, suggest.Near(name, known...))
			}
		}
	}
}

// writableMetadata are the fields of the metadata that callers can change.
func writableMetadata() []string {
	return []string{"labels", "annotations", "finalizers", "ownerReferences"}
}

// nearField is a hint at the path that was meant by one that leads nowhere: with another
// word at the first place that is not there.
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
