package schema

import "reflect"

// A union is a struct of this library that is written as the value of one of its fields,
// depending on APIForm: the field Raw; the object in Schema or the boolean in Allows; the object
// in Schema or the list in List.

// unionKind returns the kind of union of a struct type, or planStruct.
func unionKind(t reflect.Type) planKind {
	if f, ok := zeroOf(t).(apiFormer); ok {
		switch f.APIForm() {
		case "json":
			return planRaw
		case "or-boolean":
			return planOrBoolean
		case "or-list":
			return planOrList
		}
	}
	return planStruct
}

// union plans the fields of a union.
func (c *planner) union(p *plan, t reflect.Type) {
	field := func(name string) *plan {
		f, _ := t.FieldByName(name)
		return c.planOf(f.Type)
	}
	switch p.kind {
	case planRaw:
		p.elem = field("Raw")
	case planOrBoolean:
		p.elem = field("Schema")
	case planOrList:
		p.elem, p.list = field("Schema"), field("List")
	}
}

func (p *plan) encodeUnion(src reflect.Value, depth int) (any, error) {
	if p.kind == planRaw {
		return p.elem.encode(src.FieldByName("Raw"), depth+1)
	}
	object := src.FieldByName("Schema")
	switch {
	case !object.IsNil():
		return p.elem.encode(object, depth+1)
	case p.kind == planOrBoolean:
		return src.FieldByName("Allows").Bool(), nil
	}
	return p.list.encode(src.FieldByName("List"), depth+1)
}

func (p *plan) decodeUnion(v any, dst reflect.Value) error {
	if p.kind == planRaw {
		return p.elem.decode(v, dst.FieldByName("Raw"))
	}
	if list, ok := v.([]any); ok && p.kind == planOrList {
		return p.list.decode(list, dst.FieldByName("List"))
	}
	if p.kind == planOrBoolean {
		allows, ok := v.(bool)
		dst.FieldByName("Allows").SetBool(allows || !ok)
		if ok {
			return nil
		}
	}
	return p.elem.decode(v, dst.FieldByName("Schema"))
}
