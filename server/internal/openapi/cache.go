package openapi

import (
	"slices"
	"sync"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
)

// Cache holds the documents of a server. A document is made when it is asked for
// first, and again only after the types in it changed. The zero value is empty.
type Cache struct {
	mu     sync.Mutex // guards the rest
	state  *resource.State
	others *Others
	index  func() *Document
	v2     func() *Document
	groups map[meta.GroupVersion]*groupDocument

	zippers sync.Pool // of *gzip.Writer
}

// groupDocument is the document of a group version and what it is made from.
type groupDocument struct {
	versions []*resource.Version
	document func() *Document
}

// V2 returns the document of version 2 of everything.
func (c *Cache) V2(state *resource.State, info Info) *Document {
	c.mu.Lock()
	c.update(state, info)
	document := c.v2
	c.mu.Unlock()
	return document()
}

// V3 returns the document of one group version, or nil if it is not served.
func (c *Cache) V3(state *resource.State, gv meta.GroupVersion, info Info) *Document {
	c.mu.Lock()
	c.update(state, info)
	g := c.groups[gv]
	c.mu.Unlock()
	if g == nil {
		return nil
	}
	return g.document()
}

// Index returns the list of the documents of version 3, with their hashes.
func (c *Cache) Index(state *resource.State, info Info) *Document {
	c.mu.Lock()
	c.update(state, info)
	document := c.index
	c.mu.Unlock()
	return document()
}

// update forgets what another state changed. An older state, of a request that
// took long, changes nothing back.
func (c *Cache) update(state *resource.State, info Info) {
	if c.state == state && c.others == info.Others || c.state != nil && state.Serial < c.state.Serial {
		return
	}
	c.state, c.others = state, info.Others
	info.Docs, info.zippers = docsOf(state.Types()), &c.zippers
	before := c.groups
	c.groups = map[meta.GroupVersion]*groupDocument{}
	for gv, versions := range served(state.Types()) {
		if g := before[gv]; g != nil && slices.Equal(g.versions, versions) {
			c.groups[gv] = g
			continue
		}
		own := info
		own.Others = nil // it lives longer than they do
		c.groups[gv] = &groupDocument{versions, sync.OnceValue(func() *Document { return V3(gv, versions, own) })}
	}
	groups := c.groups
	c.index = sync.OnceValue(func() *Document { return index(groups, info) })
	c.v2 = sync.OnceValue(func() *Document { return V2(state.Types(), info) })
}

// served sorts the served versions of types by group version.
func served(types []*resource.Type) map[meta.GroupVersion][]*resource.Version {
	groups := map[meta.GroupVersion][]*resource.Version{}
	for _, t := range types {
		for _, v := range t.Versions {
			if v.Served {
				groups[v.GroupVersion()] = append(groups[v.GroupVersion()], v)
			}
		}
	}
	return groups
}

// docsOf joins the documentation of the types, so that each package is read
// once however many kinds it has.
func docsOf(types []*resource.Type) *schema.Docs {
	var docs []*schema.Docs
	for _, t := range types {
		docs = append(docs, t.Docs)
		for _, sub := range t.Subresources {
			if sub.Body != nil {
				docs = append(docs, sub.Body.Docs)
			}
		}
	}
	return schema.JoinDocs(docs...)
}

func index(groups map[meta.GroupVersion]*groupDocument, info Info) *Document {
	paths := map[string]any{}
	for gv, g := range groups {
		paths[Path(gv)] = map[string]any{"serverRelativeURL": URL(gv, g.document().Hash())}
	}
	if info.Others != nil {
		for path, url := range info.Others.Index {
			paths[path] = map[string]any{"serverRelativeURL": url}
		}
	}
	return newDocument(members{"paths": paths}, nil, info.zippers)
}

// Path returns the path of a group version as the index names it: "api/v1".
func Path(gv meta.GroupVersion) string { return basePath(gv)[1:] }

// URL returns where the document of that hash is found.
func URL(gv meta.GroupVersion, hash string) string {
	return "/openapi/v3/" + Path(gv) + "?hash=" + hash
}
