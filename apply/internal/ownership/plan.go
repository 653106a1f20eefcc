package ownership

import (
	"slices"
	"strings"

	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"orch.io/controlplane/internal/number"
)

// shape is how the fields of a value are owned.
type shape uint8

const (
	shapeDeduced shape = iota // decided by the value: objects by field, everything else atomically
	shapeAtomic               // any value, owned as a whole
	shapeString
	shapeNumber
	shapeBoolean
	shapeScalar     // a string, number or boolean
	shapeAtomicList // a list that is owned as a whole
	shapeSet        // a list of scalars, owned by item
	shapeMapList    // a list of objects, owned by item and field
	shapeMap
	shapeMixed // a value of any type whose objects or lists have a schema: left to structured-merge-diff
)

// plan is a type of a compiled schema, laid out for walks over plain trees. The walks give
// the same results as structured-merge-diff without its cost for each value, and give up on
// values that they do not cover.
type plan struct {
	shape  shape
	atomic bool // shapeMap: owned as a whole
	fields map[string]*plan
	others *plan // type of undeclared fields; nil: they are errors
	items  *plan
	keys   []planKey // shapeMapList: sorted by name
}

// planKey is a key field of a shapeMapList.
type planKey struct {
	name       string
	defaultsTo any // value of an item without the field; nil: the field is required
}

// planner builds the plans of a schema and shares the plans of named types.
type planner struct {
	schema *smd.Schema
	done   map[planRef]*plan
}

type planRef struct {
	name   string
	atomic bool
}

func newPlan(s *smd.Schema, tr smd.TypeRef) *plan {
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
		return &plan{shape: shapeDeduced}
	case typeAtomic:
		return &plan{shape: shapeAtomic}
	}
	key := planRef{*tr.NamedType, atomic}
	if out := p.done[key]; out != nil {
		return out
	}
	out := &plan{}
	p.done[key] = out // before fill: a type may contain itself
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
		out.shape, out.items = shapeAtomicList, p.ref(a.List.ElementType)
		if !atomic && a.List.ElementRelationship == smd.Associative {
			out.shape = shapeSet
			if len(a.List.Keys) > 0 {
				out.shape, out.keys = shapeMapList, p.keys(a.List)
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
			k.defaultsTo = f.Default
		}
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b planKey) int { return strings.Compare(a.name, b.name) })
	return keys
}

// field returns the plan of a field, nil if the field is unknown. declared reports whether
// the schema names the field.
func (p *plan) field(name string) (f *plan, declared bool) {
	if p.shape == shapeDeduced {
		return p, false
	}
	if f := p.fields[name]; f != nil {
		return f, true
	}
	return p.others, false
}

// fieldOrDeduced is field with a deduced plan for unknown fields.
func (p *plan) fieldOrDeduced(name string) *plan {
	if f, _ := p.field(name); f != nil {
		return f
	}
	return &plan{shape: shapeDeduced}
}

// itemID identifies an item of a set or map list. It is a scalar or an array of scalars,
// so that it compares with ==.
type itemID any

// maxKeys is the largest number of keys of a map list that plans cover.
const maxKeys = 4

// id returns the identity of an item. ok is false if the plan does not cover the item:
// a key is missing or is not a scalar.
func (p *plan) id(item any) (id itemID, ok bool) {
	if p.shape == shapeSet {
		return Scalar(item)
	}
	obj, ok := item.(map[string]any)
	if !ok || len(p.keys) > maxKeys {
		return nil, false
	}
	var ids [maxKeys]any
	for i, k := range p.keys {
		v, has := obj[k.name]
		if !has {
			v = k.defaultsTo
		}
		if ids[i], ok = Scalar(v); !ok {
			return nil, false
		}
	}
	if len(p.keys) == 1 {
		return ids[0], true
	}
	return ids, true
}

// Scalar returns a scalar in a form that compares with ==: numbers of the same value are
// equal. ok is false if v is not a scalar.
func Scalar(v any) (scalar any, ok bool) {
	switch v := v.(type) {
	case string, bool, int64:
		return v, true
	case float64:
		if n, ok := number.Integer(v); ok {
			return n, true
		}
		return v, true
	}
	return nil, false
}

// itemIndex finds items of a list by identity.
type itemIndex struct {
	ids []itemID
	at  map[itemID]int // nil if the list is short: find searches ids then
}

const shortList = 12

// find returns the position of an item, -1 if the list does not contain it.
func (x *itemIndex) find(id itemID) int {
	if x.at == nil {
		return slices.Index(x.ids, id)
	}
	if i, ok := x.at[id]; ok {
		return i
	}
	return -1
}

// index returns the index of a list. ok is false if the plan does not cover the list: an
// item has no plain identity, or two items have the same.
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
