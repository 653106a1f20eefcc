package watch

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"weak"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/storage"
)

// Entry is one object at one revision. It never changes; everything beyond its
// bytes is made on demand. All methods are safe for concurrent use.
type Entry struct {
	key      string // "namespace/name"
	revision storage.Revision
	length   int         // of the text as it is stored
	current  atomic.Bool // it is the object's newest state in a cache
	body     atomic.Pointer[body]
	labels   atomic.Pointer[[]string] // key, value, key, value, ...
	forms    atomic.Pointer[form]
	budget   *formBudget // nil: the entry is in no cache
	object   atomic.Pointer[weak.Pointer[meta.Object]]
	slim     atomic.Pointer[weak.Pointer[meta.Object]] // see identity
	conforms atomic.Pointer[resource.SchemaMark]
}

// body is the JSON text, with (spliced) or without its resourceVersion. Only one
// of the two is kept. In a block it is spliced and an item of a list: apiVersion
// and kind stand in the block's head.
type body struct {
	bytes   []byte
	spliced bool
	block   *block // that bytes lie in; nil: they are by themselves
	at      int    // where in it
}

// text returns the whole text, as it is or a copy.
func (b *body) text() []byte {
	if b.block == nil {
		return b.bytes
	}
	return slices.Concat(b.block.head, b.bytes[1:])
}

// spliceRoom is how much longer the text gets with its resourceVersion, at most.
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

// appendItem appends the text as an item of a list and returns the head that it
// has beside lists.
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

// NewEntry returns an entry of an object outside of any cache, such as one that
// is about to be written. stored is its JSON without resourceVersion, which the
// entry keeps.
func NewEntry(key meta.Key, revision storage.Revision, stored []byte) *Entry {
	return newEntry(nil, key.Namespace+"/"+key.Name, revision, stored)
}

func newEntry(forms *formBudget, key string, revision storage.Revision, stored []byte) *Entry {
	e := &Entry{key: key, revision: revision, length: len(stored), budget: forms}
	e.body.Store(&body{bytes: stored})
	return e
}

// at returns the same object with another resourceVersion.
func (e *Entry) at(revision storage.Revision) *Entry {
	return newEntry(e.budget, e.key, revision, e.stored())
}

// Key returns the namespace and name.
func (e *Entry) Key() meta.Key {
	namespace, name, _ := strings.Cut(e.key, "/")
	return meta.Key{Namespace: namespace, Name: name}
}

// Revision returns the revision that is the object's resourceVersion.
func (e *Entry) Revision() storage.Revision { return e.revision }

// StoredBytes returns the length of the JSON text as it is stored.
func (e *Entry) StoredBytes() int64 { return int64(e.length) }

// size returns the length of the JSON text in bytes, about.
func (e *Entry) size() int { return len(e.body.Load().bytes) }

// stored returns the JSON text as it is stored, without resourceVersion. It is
// shared and must not be modified.
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
	e.body.CompareAndSwap(b, &body{bytes: spliced, spliced: true}) // else another was faster
	return spliced
}

// AppendJSON appends the JSON text with its resourceVersion. Unlike JSON it keeps
// nothing for later.
func (e *Entry) AppendJSON(dst []byte) []byte { return e.body.Load().append(dst, e.revision) }

// Object returns the decoded object with its resourceVersion. It is shared by
// all callers and must not be modified: Clone it first. Bytes that are no JSON
// object give one that has only its name.
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
		// Somebody else was faster: share theirs.
		if now := e.object.Load(); now != nil {
			if other := now.Value(); other != nil {
				return other
			}
		}
	}
	return o
}

// decode returns the decoded object, the caller's own.
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

// identity returns an object with what makes out who it is and whether it may go,
// and nothing else. It is for those who look at every object: the rest is skipped,
// not decoded. It is shared like Object.
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

// label returns the value of a label, and whether it is there.
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

// Field returns the string, number or boolean at a path as text; "" if there is
// none.
func (e *Entry) Field(path ...string) string {
	return codec.ScalarText(codec.FindField(e.body.Load().bytes, path...))
}

// Without returns the decoded object without the fields of a name, wherever they are, which
// are skipped. It is the caller's own; bytes that are no JSON object give an empty one.
func (e *Entry) Without(field string) *meta.Object {
	tree, _ := codec.DecodeWithout(e.body.Load().text(), field)
	return meta.NewObject(tree)
}

// Selectable returns the value that a declared field, whose Path is set, has in the object.
func (e *Entry) Selectable(f *registry.SelectableField) string {
	v := e.Field(f.Path...)
	if v == "" && f.Else != nil {
		v = e.Field(f.Else...)
	}
	return cmp.Or(v, f.Absent)
}

// MarkConforming notes that the JSON text is what a version of the type shows, see
// resource.Version.SchemaMark.
func (e *Entry) MarkConforming(m *resource.SchemaMark) { e.conforms.Store(m) }

// Conforms reports whether MarkConforming was called last with m.
func (e *Entry) Conforms(m *resource.SchemaMark) bool { return e.conforms.Load() == m }
