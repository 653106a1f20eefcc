package openapi

import (
	"slices"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
)

// Cache holds the documents of a server. A document is made when it is first requested, and made again only if the
// types in it have changed. The zero value is an empty Cache. It is safe for concurrent use.
type Cache struct {
	maker maker

	mu     sync.Mutex // guards the fields below
	state  *resource.State
	others *Others
	index  *lazy
	v2     *lazy
	groups map[meta.GroupVersion]*groupDocument
}

// maker makes documents one at a time, because making a document takes much memory, and clients request many of them
// while definitions change.
type maker struct {
	mu      sync.Mutex // held while a document is made
	zippers sync.Pool  // of *gzip.Writer
}

// lazy is a document that is made when it is first requested.
type lazy struct {
	build func() *Document // guarded by maker.mu; nil after it was called
	made  atomic.Pointer[Document]
}

// get returns the document. The caller holds maker.mu if the document may not be made yet.
func (l *lazy) get() *Document {
	if d := l.made.Load(); d != nil {
		return d
	}
	l.made.Store(l.build())
	l.build = nil // releases the types that the document was made from
	return l.made.Load()
}

// groupDocument is the document of version 3 of a group version, with its inputs.
type groupDocument struct {
	versions []*resource.Version
	foreign  *Foreign // set if another server serves the version
	lazy
}

// V2 returns the document of version 2 for all types.
func (c *Cache) V2(state *resource.State, info Info) *Document {
	return c.document(state, info, func() *lazy { return c.v2 })
}

// V3 returns the document of version 3 for a group version, or nil if the group version is not served.
func (c *Cache) V3(state *resource.State, gv meta.GroupVersion, info Info) *Document {
	return c.document(state, info, func() *lazy {
		if g := c.groups[gv]; g != nil {
			return &g.lazy
		}
		return nil
	})
}

// Index returns the list of the documents of version 3 with their hashes.
func (c *Cache) Index(state *resource.State, info Info) *Document {
	return c.document(state, info, func() *lazy { return c.index })
}

// document returns the document that find selects, for state or for a newer state. After waiting for maker.mu it
// looks the document up again: if states change faster than documents are made, most states need no document.
func (c *Cache) document(state *resource.State, info Info, find func() *lazy) *Document {
	lookup := func() *lazy {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.update(state, info)
		return find()
	}
	l := lookup()
	if l == nil {
		return nil
	}
	if d := l.made.Load(); d != nil {
		return d
	}
	c.maker.mu.Lock()
	defer c.maker.mu.Unlock()
	if l = lookup(); l == nil {
		return nil
	}
	return l.get()
}

// update replaces the documents that depend on a changed state. It ignores a state that is older than the present
// one, which a long request may have. The caller holds mu.
func (c *Cache) update(state *resource.State, info Info) {
	if c.state == state && c.others == info.Others || c.state != nil && state.Serial < c.state.Serial {
		return
	}
	c.state, c.others = state, info.Others
	info.Docs, info.maker = docsOf(state.Types()), &c.maker
	before := c.groups
	c.groups = map[meta.GroupVersion]*groupDocument{}
	for gv, versions := range servedVersions(state.Types()) {
		if g := before[gv]; g != nil && g.foreign == nil && slices.Equal(g.versions, versions) {
			c.groups[gv] = g
			continue
		}
		own := info
		own.Others = nil // the document outlives them
		c.groups[gv] = &groupDocument{versions: versions, lazy: lazy{build: func() *Document { return V3(gv, versions, own) }}}
	}
	if info.Others != nil {
		c.addForeign(before, info)
	}
	groups := c.groups
	c.index = &lazy{build: func() *Document { return index(groups, info) }}
	c.v2 = &lazy{build: func() *Document { return V2(state.Types(), info) }}
}

// addForeign adds the documents of version 3 that are made from other servers' documents of version 2. The caller
// holds mu.
func (c *Cache) addForeign(before map[meta.GroupVersion]*groupDocument, info Info) {
	own := info
	own.Others = nil
	for gv, f := range info.Others.V3 {
		if g := before[gv]; g != nil && g.foreign == f {
			c.groups[gv] = g
			continue
		}
		c.groups[gv] = &groupDocument{foreign: f, lazy: lazy{build: func() *Document { return foreignV3(f, own) }}}
	}
}

// servedVersions returns the served versions of types by group version.
func servedVersions(types []*resource.Type) map[meta.GroupVersion][]*resource.Version {
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

// docsOf joins the documentation of the types, so that each package is read only once.
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
		paths[Path(gv)] = map[string]any{"serverRelativeURL": URL(gv, g.get().Hash())}
	}
	if info.Others != nil {
		for path, url := range info.Others.Index {
			paths[path] = map[string]any{"serverRelativeURL": url}
		}
	}
	return newDocument(members{"paths": paths}, nil, info.maker)
}

// Path returns the path of a group version in the index, such as "api/v1".
func Path(gv meta.GroupVersion) string { return basePath(gv)[1:] }

// URL returns the URL of the document of a group version with a hash.
func URL(gv meta.GroupVersion, hash string) string {
	return "/openapi/v3/" + Path(gv) + "?hash=" + hash
}
