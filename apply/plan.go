package apply

import (
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// shape is what a value is to ownership.
type shape uint8

const (
	shapeAny    shape = iota // the value shows it: an object by key, all else whole
	shapeWhole               // any value, owned whole
	shapeString              // scalars; Scalar is any of them
	shapeNumber
	shapeBoolean
	shapeScalar
	shapeList // owned whole
	shapeSet  // by item
	shapeKeyed
	shapeMap
	shapeMixed // a value of any type, of which objects or lists have a shape: left to structured-merge-diff
)

// plan is one type of a compiled schema, laid out for the walks of this package
// over plain trees. They do what structured-merge-diff does in the cases that
// make up nearly all writes, without its cost for each value; whatever is
// unusual they leave to it.
type plan struct {
	shape  shape
	atomic bool // shapeMap: owned whole
	fields map[string]*plan
	others *plan // of the fields that are not declared; nil: unknown
	items  *plan
	keys   []planKey // shapeKeyed, sorted by name
}

type planKey struct {
	name string
	def  any // what it counts as if left out; nil: it may not be
}

// planner lays out the types of a schema, each once.
type planner struct {
	schema *smd.Schema
	done   map[planRef]*plan
}

type planRef struct {
	name   string
	atomic bool
}

func layOut(s *smd.Schema, tr smd.TypeRef) *plan {
	p := planner{schema: s, done: map[planRef]*plan{}}
	return p.ref(tr)
}

func (p *planner) ref(tr smd.TypeRef) *plan {
	atomic := tr.ElementRelationship != nil && *tr.ElementRelationship == smd.Atomic
	if tr.NamedType == nil {
		out := &plan{}
		p.fill(out, tr.Inlined, atomic)
		return out
	}
	switch *tr.NamedType {
	case typeDeduced:
		return &plan{shape: shapeAny}
	case typeAtomic:
		return &plan{shape: shapeWhole}
	}
	key := planRef{*tr.NamedType, atomic}
	if out := p.done[key]; out != nil {
		return out
	}
	out := &plan{}
	p.done[key] = out
	if def, ok := p.schema.FindNamedType(*tr.NamedType); ok {
		p.fill(out, def.Atom, atomic)
	}
	return out
}

func (p *planner) fill(out *plan, a smd.Atom, atomic bool) {
	switch {
	case a.Map != nil && a.List != nil:
		out.shape = shapeMixed
	case a.Map != nil:
		out.shape, out.atomic = shapeMap, atomic || a.Map.ElementRelationship == smd.Atomic
		out.fields = make(map[string]*plan, len(a.Map.Fields))
		for _, f := range a.Map.Fields {
			out.fields[f.Name] = p.ref(f.Type)
		}
		if (a.Map.ElementType != smd.TypeRef{}) {
			out.others = p.ref(a.Map.ElementType)
		}
	case a.List != nil:
		out.shape, out.items = shapeList, p.ref(a.List.ElementType)
		if !atomic && a.List.ElementRelationship == smd.Associative {
			out.shape = shapeSet
			if len(a.List.Keys) > 0 {
				out.shape, out.keys = shapeKeyed, p.keys(a.List)
			}
		}
	case a.Scalar != nil:
		out.shape = map[smd.Scalar]shape{smd.String: shapeString, smd.Numeric: shapeNumber, smd.Boolean: shapeBoolean, smd.Untyped: shapeScalar}[*a.Scalar]
	}
}

func (p *planner) keys(l *smd.List) []planKey {
	item, _ := p.schema.Resolve(l.ElementType)
	var keys []planKey
	for _, name := range l.Keys {
		k := planKey{name: name}
		if item.Map != nil {
			f, _ := item.Map.FindField(name)
			k.def = f.Default
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b planKey) int { return strings.Compare(a.name, b.name) })
	return keys
}

// field returns the plan of a member; declared tells one that the schema names.
func (p *plan) field(name string) (member *plan, declared bool) {
	if f := p.fields[name]; f != nil {
		return f, true
	}
	return p.others, false
}

// itemID is what tells the items of a list apart, in a form that compares
// with ==: a scalar, or an array of key values.
type itemID any

// maxKeys is the most keys of a list that the walks here take.
const maxKeys = 4

// id returns what tells an item of the list apart; false where that is not
// plain: a key that is missing or no scalar.
func (p *plan) id(item any) (itemID, bool) {
	if p.shape == shapeSet {
		return scalar(item)
	}
	obj, ok := item.(map[string]any)
	if !ok || len(p.keys) > maxKeys {
		return nil, false
	}
	var id [maxKeys]any
	for i, k := range p.keys {
		v, has := obj[k.name]
		if !has {
			v = k.def
		}
		if id[i], ok = scalar(v); !ok {
			return nil, false
		}
	}
	if len(p.keys) == 1 {
		return id[0], true
	}
	return id, true
}

// itemIndex finds the items of a list by what tells them apart.
type itemIndex struct {
	ids []itemID
	at  map[itemID]int // nil for a short list, which is searched
}

const shortList = 12

// find returns the position of an item, -1 if there is none.
func (x *itemIndex) find(id itemID) int {
	if x.at == nil {
		return slices.Index(x.ids, id)
	}
	if i, ok := x.at[id]; ok {
		return i
	}
	return -1
}

// index returns the items of a list of the plan; false if what tells them apart
// is not plain, or they are not unique.
func (p *plan) index(list []any) (x itemIndex, ok bool) {
	x.ids = make([]itemID, 0, len(list))
	if len(list) > shortList {
		x.at = make(map[itemID]int, len(list))
	}
	for i, item := range list {
		id, ok := p.id(item)
		if !ok || x.find(id) >= 0 {
			return x, false
		}
		x.ids = append(x.ids, id)
		if x.at != nil {
			x.at[id] = i
		}
	}
	return x, true
}
