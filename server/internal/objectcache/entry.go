package objectcache

import (
	"cmp"
	"slices"
	"strconv"
	"sync/atomic"
	"weak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Entry is an object at a revision. The object is immutable. Everything except its bytes is made on demand. All
// methods are safe for concurrent use.
type Entry struct {
	key      string // "namespace/name"
	revision storage.Revision
	length   uint32        // of the text as it is stored; objects are smaller than 4 GiB
	current  atomic.Uint32 // 1 while it is the object's newest entry in a cache
	body     atomic.Pointer[body]
	labels   atomic.Pointer[[]string] // key, value, key, value, ...
	encoded  atomic.Pointer[encoding] // list of kept encodings
	budget   *encodingBudget          // nil if the entry is in no cache
	object   atomic.Pointer[weak.Pointer[meta.Object]]
	slim     atomic.Pointer[weak.Pointer[meta.Object]] // see identity
	replaced atomic.Pointer[Entry]                     // see replacedAt
	conforms atomic.Pointer[resource.SchemaMark]
}

// body is the JSON text, either with its resourceVersion (spliced) or without; only one of them is kept. A text in a
// block is spliced and is a list item: its apiVersion and kind are in the head of the block.
type body struct {
	bytes   []byte
	spliced bool
	block   *block // the block that contains bytes, or nil
	at      int    // offset in the block
}

// text returns the whole text, which may be a copy.
func (b *body) text() []byte {
	if b.block == nil {
		return b.bytes
	}
	return slices.Concat(b.block.head, b.bytes[1:])
}

// spliceRoom is the maximum length that the resourceVersion adds to the text.
const spliceRoom = 42

// append appends the text with the resourceVersion.
func (b *body) append(dst []byte, revision storage.Revision) []byte {
	switch {
	case b.block != nil:
		return append(append(dst, b.block.head...), b.bytes[1:]...)
	case b.spliced || revision == 0:
		return append(dst, b.bytes...)
	}
	return codec.Splice(dst, b.bytes, int64(revision))
}

// appendItem appends the text as a list item, without its apiVersion and kind. head is the beginning of the text that
// contains these.
func (b *body) appendItem(dst []byte, revision storage.Revision) (item, head []byte) {
	if b.block != nil {
		return append(dst, b.bytes...), b.block.head
	}
	head, rest := codec.CutHead(b.bytes)
	dst = append(dst, '{')
	if b.spliced || revision == 0 {
		return append(dst, rest...), head
	}
	return codec.Splice(dst, rest, int64(revision)), head
}

// NewEntry returns an entry that is in no cache, for example of an object that is about to be written. stored is the
// object's JSON without resourceVersion. The entry keeps stored, so the caller must not modify it.
func NewEntry(key meta.Key, revision storage.Revision, stored []byte) *Entry {
	return newEntry(nil, cacheKey(key), revision, stored)
}

func newEntry(budget *encodingBudget, key string, revision storage.Revision, stored []byte) *Entry {
	e := &Entry{key: key, revision: revision, length: uint32(len(stored)), budget: budget}
	e.body.Store(&body{bytes: stored})
	return e
}

// replacedAt returns an entry of the same object with the revision of the commit that
// replaced or deleted it. An entry is replaced once, so the result is kept for all readers.
func (e *Entry) replacedAt(revision storage.Revision) *Entry {
	if r := e.replaced.Load(); r != nil && r.revision == revision {
		return r
	}
	r := newEntry(e.budget, e.key, revision, e.stored())
	if !e.replaced.CompareAndSwap(nil, r) {
		if first := e.replaced.Load(); first.revision == revision {
			return first
		}
	}
	return r
}

// Origin implements watch.Entry.
func (e *Entry) Origin() (key string, revision storage.Revision, size int) {
	return e.key, e.revision, int(e.length)
}

// Key returns the namespace and name.
func (e *Entry) Key() meta.Key { return keyOf(e.key) }

// Revision returns the revision that is the object's resourceVersion.
func (e *Entry) Revision() storage.Revision { return e.revision }

// StoredBytes returns the length of the JSON text as it is stored.
func (e *Entry) StoredBytes() int64 { return int64(e.length) }

// size returns the approximate length of the JSON text.
func (e *Entry) size() int { return len(e.body.Load().bytes) }

// stored returns the JSON text as it is stored, without resourceVersion. It may be shared
// and must not be modified.
func (e *Entry) stored() []byte {
	b := e.body.Load()
	text := b.text()
	if !b.spliced {
		return text
	}
	return codec.Unsplice(make([]byte, 0, len(text)), text, int64(e.revision))
}

// JSON returns the JSON text with its resourceVersion. It is shared and must not
// be modified.
func (e *Entry) JSON() []byte {
	b := e.body.Load()
	if b.spliced || e.revision == 0 {
		return b.text()
	}
	spliced := b.append(make([]byte, 0, len(b.bytes)+spliceRoom), e.revision)
	e.body.CompareAndSwap(b, &body{bytes: spliced, spliced: true}) // if it fails, another reader has set it
	return spliced
}

// AppendJSON appends the JSON text with its resourceVersion. Unlike JSON, it does not keep
// the spliced text.
func (e *Entry) AppendJSON(dst []byte) []byte { return e.body.Load().append(dst, e.revision) }

// Object returns the decoded object with its resourceVersion. It is shared by all callers
// and must not be modified; Clone it first. If the text is not a JSON object, the result has
// only the name and namespace.
func (e *Entry) Object() *meta.Object {
	kept := e.object.Load()
	if kept != nil {
		if o := kept.Value(); o != nil {
			return o
		}
	}
	o := e.decode()
	w := weak.Make(o)
	if !e.object.CompareAndSwap(kept, &w) {
		// Another reader has decoded it: share that object.
		if now := e.object.Load(); now != nil {
			if other := now.Value(); other != nil {
				return other
			}
		}
	}
	return o
}

// decode returns a newly decoded object.
func (e *Entry) decode() *meta.Object {
	tree, _, err := codec.DecodeJSON(e.body.Load().text(), codec.Limits{})
	o := meta.NewObject(tree)
	if err != nil {
		k := e.Key()
		o.SetName(k.Name)
		o.SetNamespace(k.Namespace)
	}
	if e.revision != 0 {
		o.SetResourceVersion(strconv.FormatInt(int64(e.revision), 10))
	}
	return o
}

// identity returns an object with name, namespace, resourceVersion, uid, ownerReferences,
// finalizers and deletionTimestamp only. It is for readers of all objects: the other fields
// are skipped, not decoded. It is shared like Object.
func (e *Entry) identity() *meta.Object {
	kept := e.slim.Load()
	if kept != nil {
		if o := kept.Value(); o != nil {
			return o
		}
	}
	k := e.Key()
	m := map[string]any{"name": k.Name}
	if k.Namespace != "" {
		m["namespace"] = k.Namespace
	}
	for name, value := range codec.Fields(codec.FindField(e.body.Load().bytes, "metadata")) {
		switch string(name) {
		case "uid", "ownerReferences", "finalizers", "deletionTimestamp":
			if v, _, err := codec.DecodeValue(value, codec.Limits{}); err == nil {
				m[string(name)] = v
			}
		}
	}
	if e.revision != 0 {
		m["resourceVersion"] = strconv.FormatInt(int64(e.revision), 10)
	}
	o := meta.NewObject(map[string]any{"metadata": m})
	w := weak.Make(o)
	e.slim.CompareAndSwap(kept, &w)
	return o
}

// label returns the value of a label, and whether the object has it.
func (e *Entry) label(key string) (string, bool) {
	pairs := e.labelPairs()
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == key {
			return pairs[i+1], true
		}
	}
	return "", false
}

func (e *Entry) labelPairs() []string {
	if p := e.labels.Load(); p != nil {
		return *p
	}
	var pairs []string
	for key, value := range codec.Fields(codec.FindField(e.body.Load().bytes, "metadata", "labels")) {
		if value[0] == '"' {
			pairs = append(pairs, string(key), codec.ScalarText(value))
		}
	}
	e.labels.Store(&pairs)
	return pairs
}

// Field returns the string, number or boolean at a path as text, or "".
func (e *Entry) Field(path ...string) string {
	return codec.ScalarText(codec.FindField(e.body.Load().bytes, path...))
}

// Without returns a newly decoded object, without the fields of a name at any depth, which are skipped and not
// decoded. If the text is not a JSON object, the result is empty.
func (e *Entry) Without(field string) *meta.Object {
	tree, _ := codec.DecodeWithout(e.body.Load().text(), field)
	return meta.NewObject(tree)
}

// Selectable returns the value of a selectable field. f.Path must be set.
func (e *Entry) Selectable(f *registry.SelectableField) string {
	v := e.Field(f.Path...)
	if v == "" && f.Fallback != nil {
		v = e.Field(f.Fallback...)
	}
	return cmp.Or(v, f.Absent)
}

// MarkConforming records that the JSON text is the representation of the object in a version of its type, see
// resource.Version.SchemaMark.
func (e *Entry) MarkConforming(m *resource.SchemaMark) { e.conforms.Store(m) }

// Conforms reports whether the last call of MarkConforming was with m.
func (e *Entry) Conforms(m *resource.SchemaMark) bool { return e.conforms.Load() == m }
