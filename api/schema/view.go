package schema

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// View converts object trees to values of one Go struct type and back. The tree has wire names,
// the json tags spec names; the mapping is computed once, by NewView. A View is safe for
// concurrent use.
type View struct {
	typ  reflect.Type
	root *plan
}

// NewView returns the View of a struct type t, or of the struct type that t points to.
func NewView(t reflect.Type, p names.Profile) (*View, error) {
	t = indirect(t)
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("Go type %s is not a struct", t)
	}
	c := &planner{names: p, shared: commonOf(p), plans: map[reflect.Type]*plan{}}
	root := c.planOf(t)
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	for t, p := range c.plans {
		c.shared.plans.LoadOrStore(t, p)
	}
	return &View{t, root}, nil
}

// Into sets *v, of the view's type, to the values of a normalized tree. v and the tree share no
// memory. The error names the field that has a wrong type.
func (w *View) Into(tree map[string]any, v any) error {
	dst := reflect.ValueOf(v)
	if dst.Kind() != reflect.Pointer || dst.IsNil() || dst.Elem().Type() != w.typ {
		return fmt.Errorf("view of %s cannot fill a %T", w.typ, v)
	}
	dst = dst.Elem()
	dst.SetZero()
	return w.root.decode(tree, dst)
}

// From returns v, a value of the view's type or a pointer to such a value, as a normalized tree. The
// tree shares no memory with v.
func (w *View) From(v any) (map[string]any, error) {
	src := reflect.ValueOf(v)
	for src.Kind() == reflect.Pointer && !src.IsNil() {
		src = src.Elem()
	}
	if !src.IsValid() || src.Type() != w.typ {
		return nil, fmt.Errorf("view of %s cannot read a %T", w.typ, v)
	}
	tree, err := w.root.encode(src, 0)
	if err != nil {
		return nil, err
	}
	return tree.(map[string]any), nil
}

// plan is the conversion of a Go type. A plan in common is complete and never modified.
type plan struct {
	kind   planKind
	elem   *plan
	list   *plan // for planOrList: the list; see union
	fields []fieldPlan
	byName map[string]int
}

type fieldPlan struct {
	name                string
	index               []int
	plan                *plan
	omitEmpty, omitZero bool
	zeroer              bool // has an IsZero method
}

type planKind uint8

const (
	planString planKind = iota
	planBool
	planInt
	planUint
	planFloat
	planBytes
	planAny
	planPointer
	planSlice
	planArray
	planMap
	planStruct
	planTime // time.Time
	planFields
	planJSON // by MarshalJSON and UnmarshalJSON
	planText // by MarshalText and UnmarshalText
	planRaw  // this and the next two: see unionKind
	planOrBoolean
	planOrList
)

// planner builds the plans of a View.
type planner struct {
	names  names.Profile
	shared *common
	plans  map[reflect.Type]*plan
	inline []reflect.Type // structs that are being added, each inlined in the previous struct
	faults []error
}

func (c *planner) planOf(t reflect.Type) *plan {
	if p := c.plans[t]; p != nil {
		return p
	}
	if p, ok := c.shared.plans.Load(t); ok {
		return p.(*plan)
	}
	p := &plan{}
	c.plans[t] = p
	p.kind = planKindOf(t)
	switch p.kind {
	case planPointer, planSlice, planArray, planMap:
		p.elem = c.planOf(t.Elem())
	case planStruct:
		p.byName = map[string]int{}
		inline := c.inline
		c.inline = nil
		c.addFields(p, t, nil, false)
		c.inline = inline
	case planRaw, planOrBoolean, planOrList:
		c.union(p, t)
	case planAny:
		if t.Kind() != reflect.Interface || t.NumMethod() > 0 {
			c.faults = append(c.faults, &FieldError{Type: t, Err: errors.New("has no JSON encoding")})
		}
	}
	return p
}

func planKindOf(t reflect.Type) planKind {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return planTime
	case t == reflect.TypeFor[meta.Fields]():
		return planFields
	case t.Kind() == reflect.Pointer:
		return planPointer
	case t.Kind() == reflect.Interface:
		return planAny
	case has[json.Marshaler](t) || has[json.Unmarshaler](reflect.PointerTo(t)):
		return planJSON
	case has[encoding.TextMarshaler](t) || has[encoding.TextUnmarshaler](reflect.PointerTo(t)):
		return planText
	}
	switch t.Kind() {
	case reflect.String:
		return planString
	case reflect.Bool:
		return planBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return planInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return planUint
	case reflect.Float32, reflect.Float64:
		return planFloat
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return planBytes
		}
		return planSlice
	case reflect.Array:
		return planArray
	case reflect.Map:
		return planMap
	case reflect.Struct:
		return unionKind(t)
	}
	return planAny
}

func (c *planner) addFields(p *plan, t reflect.Type, index []int, optional bool) {
	c.inline = append(c.inline, t)
	defer func() { c.inline = c.inline[:len(c.inline)-1] }()
	for i := range t.NumField() {
		sf := t.Field(i)
		jsonName, opts := jsonTag(sf)
		if sf.Name == "_" || !sf.IsExported() && !sf.Anonymous || jsonName == "-" && len(opts) == 0 {
			continue
		}
		path := append(append([]int(nil), index...), i)
		if inner, ok := inlined(sf, jsonName, opts); ok {
			if !sf.IsExported() && sf.Type.Kind() == reflect.Pointer || inner.Kind() != reflect.Struct || slices.Contains(c.inline, inner) {
				c.faults = append(c.faults, &FieldError{t, sf.Name, errors.New("cannot be inline")})
				continue
			}
			c.addFields(p, inner, path, optional || sf.Type.Kind() == reflect.Pointer)
			continue
		}
		if !sf.IsExported() {
			continue
		}
		if jsonName == "" {
			jsonName = sf.Name
		}
		f := fieldPlan{name: c.names.Field(jsonName), index: path, plan: c.planOf(sf.Type), zeroer: has[zeroer](sf.Type)}
		for _, o := range opts {
			f.omitEmpty = f.omitEmpty || o == "omitempty" && emptiable(sf.Type)
			f.omitZero = f.omitZero || o == "omitzero"
		}
		f.omitZero = f.omitZero || optional
		if old, taken := p.byName[f.name]; taken {
			if len(p.fields[old].index) > len(path) {
				p.fields[old] = f
			}
			continue
		}
		p.byName[f.name] = len(p.fields)
		p.fields = append(p.fields, f)
	}
}

type zeroer interface{ IsZero() bool }
