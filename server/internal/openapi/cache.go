package openapi

import (
	"slices"
	"sync"
	"sync/atomic"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/resource"
)

// Cache holds the documents of a server. A document is made when it is asked for
// first, and again only after the types in it changed. The zero value is empty.
type Cache struct {
	press press

	mu     sync.Mutex // guards the rest
	state  *resource.State
	others *Others
	index  *lazy
	v2     *lazy
	groups map[meta.GroupVersion]*groupDocument
}

// press makes documents, one at a time: each takes memory for as long as that takes, and
// clients ask for many while definitions change.
type press struct {
	mu      sync.Mutex // held while a document is made
	zippers sync.Pool  // of *gzip.Writer
}

// lazy is a document that is made when it is asked for first.
type lazy struct {
	from func() *Document
	made atomic.Pointer[Document]
}

// get returns the document; who may have to make it holds the press.
func (l *lazy) get() *Document {
	if d := l.made.Load(); d != nil {
		return d
	}
	l.made.Store(l.from())
	l.from = nil // it holds what the document is made from
	return l.made.Load()
}

// groupDocument is the document of a group version and what it is made from.
type groupDocument struct {
	versions []*resource.Version
	foreign  *Foreign // of another server, if that serves the version
	lazy
}

// V2 returns the document of version 2 of everything.
func (c *Cache) V2(state *resource.State, info Info) *Document {
	return c.document(state, info, func() *lazy { return c.v2 })
}

// V3 returns the document of one group version, or nil if it is not served.
func (c *Cache) V3(state *resource.State, gv meta.GroupVersion, info Info) *Document {
	return c.document(state, info, func() *lazy {
		if g := c.groups[gv]; g != nil {
			return &g.lazy
		}
		return nil
	})
}

// Index returns the list of the documents of version 3, with their hashes.
func (c *Cache) Index(state *resource.State, info Info) *Document {
	return c.document(state, info, func() *lazy { return c.index })
}

// document returns what find finds for the state, or for a newer one. Who has to wait for
// the press looks again: of states that come faster than documents are made, most are
// never written.
func (c *Cache) document(state *resource.State, info Info, find func() *lazy) *Document {
	look := func() *lazy {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.update(state, info)
		return find()
	}
	l := look()
	if l == nil {
		return nil
	}
	if d := l.made.Load(); d != nil {
		return d
	}
	c.press.mu.Lock()
	defer c.press.mu.Unlock()
	if l = look(); l == nil {
		return nil
	}
	return l.get()
}

// update forgets what another state changed. An older state, of a request that
// took long, changes nothing back.
func (c *Cache) update(state *resource.State, info Info) {
	if c.state == state && c.others == info.Others || c.state != nil && state.Serial < c.state.Serial {
		return
	}
	c.state, c.others = state, info.Others
	info.Docs, info.press = docsOf(state.Types()), &c.press
	before := c.groups
	c.groups = map[meta.GroupVersion]*groupDocument{}
	for gv, versions := range served(state.Types()) {
		if g := before[gv]; g != nil && g.foreign == nil && slices.Equal(g.versions, versions) {
			c.groups[gv] = g
			continue
		}
		own := info
		own.Others = nil // it lives longer than they do
		c.groups[gv] = &groupDocument{versions: versions, lazy: lazy{from: func() *Document { return V3(gv, versions, own) }}}
	}
	if info.Others != nil {
		c.addForeign(before, info)
	}
	groups := c.groups
	c.index = &lazy{from: func() *Document { return index(groups, info) }}
	c.v2 = &lazy{from: func() *Document { return V2(state.Types(), info) }}
}

// addForeign adds the documents that are made of what other servers say in version 2.
func (c *Cache) addForeign(before map[meta.GroupVersion]*groupDocument, info Info) {
	own := info
	own.Others = nil
	for gv, f := range info.Others.V3 {
		if g := before[gv]; g != nil && g.foreign == f {
			c.groups[gv] = g
			continue
		}
		c.groups[gv] = &groupDocument{foreign: f, lazy: lazy{from: func() *Document { return foreignV3(f, own) }}}
	}
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
		paths[Path(gv)] = map[string]any{"serverRelativeURL": URL(gv, g.get().Hash())}
	}
	if info.Others != nil {
		for path, url := range info.Others.Index {
			paths[path] = map[string]any{"serverRelativeURL": url}
		}
	}
	return newDocument(members{"paths": paths}, nil, info.press)
}

// Path returns the path of a group version as the index names it: "api/v1".
func Path(gv meta.GroupVersion) string { return basePath(gv)[1:] }

// URL returns where the document of that hash is found.
func URL(gv meta.GroupVersion, hash string) string {
	return "/openapi/v3/" + Path(gv) + "?hash=" + hash
}
