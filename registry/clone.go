package registry

import (
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
)

// Clone returns a copy of a kind that shares no mutable data with k. Several servers in a program
// may use the same Kind, and each may modify its copy.
func (k *Kind) Clone() *Kind {
	c := *k
	c.ShortNames, c.Categories = slices.Clone(k.ShortNames), slices.Clone(k.Categories)
	c.Versions = slices.Clone(k.Versions)
	for i := range c.Versions {
		v := &c.Versions[i]
		v.MissingSubresources, v.Columns = slices.Clone(v.MissingSubresources), slices.Clone(v.Columns)
		v.Fields, v.OwnFields, v.Scale = maps.Clone(v.Fields), cloneFields(v.OwnFields), v.Scale.clone()
	}
	c.Subresources = slices.Clone(k.Subresources)
	for i := range c.Subresources {
		s := &c.Subresources[i]
		s.Metadata = slices.Clone(s.Metadata)
		if s.Body != nil {
			s.Body = s.Body.Clone()
		}
		if s.Connect != nil {
			connection := *s.Connect
			s.Connect = &connection
		}
	}
	if k.webhook != nil {
		c.webhook, _ = meta.Clone(k.webhook).(map[string]any)
	}
	c.Fields = cloneFields(k.Fields)
	c.Scale, c.Allocator, c.Reference = k.Scale.clone(), shallow(k.Allocator), shallow(k.Reference)
	if r := c.Reference; r != nil {
		r.StatusMetadata, r.Unowned = slices.Clone(r.StatusMetadata), slices.Clone(r.Unowned)
		r.OptionalVersions, r.OnlySubresources = slices.Clone(r.OptionalVersions), maps.Clone(r.OnlySubresources)
	}
	return &c
}

func cloneFields(list []SelectableField) []SelectableField {
	list = slices.Clone(list)
	for i := range list {
		f := &list[i]
		f.Path, f.Fallback = slices.Clone(f.Path), slices.Clone(f.Fallback)
	}
	return list
}

func (s *Scale) clone() *Scale {
	c := shallow(s)
	if c != nil && c.Body != nil {
		c.Body = c.Body.Clone()
	}
	return c
}

// shallow returns a pointer to a copy of *p, or nil.
func shallow[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
