package schema

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"orch.io/controlplane/api/meta"
)

// decode sets dst, which is zero, to v. A null leaves dst zero.
func (p *plan) decode(v any, dst reflect.Value) error {
	if v == nil {
		return nil
	}
	switch p.kind {
	case planString:
		s, ok := v.(string)
		if !ok {
			return wrongType(v, dst)
		}
		dst.SetString(s)
	case planBool:
		b, ok := v.(bool)
		if !ok {
			return wrongType(v, dst)
		}
		dst.SetBool(b)
	case planInt:
		n, ok := v.(int64)
		if !ok || dst.OverflowInt(n) {
			return wrongType(v, dst)
		}
		dst.SetInt(n)
	case planUint:
		n, ok := v.(int64)
		if !ok || n < 0 || dst.OverflowUint(uint64(n)) {
			return wrongType(v, dst)
		}
		dst.SetUint(uint64(n))
	case planFloat:
		return decodeFloat(v, dst)
	case planAny:
		dst.Set(reflect.ValueOf(meta.Clone(v)))
	case planPointer:
		e := reflect.New(dst.Type().Elem())
		if err := p.elem.decode(v, e.Elem()); err != nil {
			return err
		}
		dst.Set(e)
	case planStruct:
		return p.decodeStruct(v, dst)
	case planMap:
		return p.decodeMap(v, dst)
	case planSlice, planArray:
		return p.decodeList(v, dst)
	case planRaw, planOrBoolean, planOrList:
		return p.decodeUnion(v, dst)
	default:
		return p.decodeForm(v, dst)
	}
	return nil
}

func wrongType(v any, dst reflect.Value) error {
	return fmt.Errorf("%s does not fit Go type %s", jsonType(v), dst.Type())
}

func inField(name string, err error) error { return fmt.Errorf("%s: %w", name, err) }

func decodeFloat(v any, dst reflect.Value) error {
	switch n := v.(type) {
	case int64:
		dst.SetFloat(float64(n))
	case float64:
		dst.SetFloat(n)
	default:
		return wrongType(v, dst)
	}
	return nil
}

func (p *plan) decodeStruct(v any, dst reflect.Value) error {
	m, ok := v.(map[string]any)
	if !ok {
		return wrongType(v, dst)
	}
	for k, e := range m {
		i, ok := p.byName[k]
		if !ok || e == nil {
			continue
		}
		f := &p.fields[i]
		if err := f.plan.decode(e, ensureField(dst, f.index)); err != nil {
			return inField(k, err)
		}
	}
	return nil
}

// ensureField returns the field at an index path and allocates nil pointers on the way.
func ensureField(v reflect.Value, index []int) reflect.Value {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v
}

func (p *plan) decodeMap(v any, dst reflect.Value) error {
	m, ok := v.(map[string]any)
	if !ok {
		return wrongType(v, dst)
	}
	t := dst.Type()
	dst.Set(reflect.MakeMapWithSize(t, len(m)))
	for k, e := range m {
		val := reflect.New(t.Elem()).Elem()
		if err := p.elem.decode(e, val); err != nil {
			return inField(k, err)
		}
		dst.SetMapIndex(reflect.ValueOf(k).Convert(t.Key()), val)
	}
	return nil
}

func (p *plan) decodeList(v any, dst reflect.Value) error {
	l, ok := v.([]any)
	if !ok {
		return wrongType(v, dst)
	}
	if p.kind == planSlice {
		dst.Set(reflect.MakeSlice(dst.Type(), len(l), len(l)))
	}
	for i, e := range l {
		if i >= dst.Len() {
			return fmt.Errorf("%d items do not fit Go type %s", len(l), dst.Type())
		}
		if err := p.elem.decode(e, dst.Index(i)); err != nil {
			return inField(fmt.Sprintf("[%d]", i), err)
		}
	}
	return nil
}

// decodeForm decodes values with a text or JSON encoding of their own.
func (p *plan) decodeForm(v any, dst reflect.Value) error {
	s, isText := v.(string)
	switch p.kind {
	case planFields:
		raw, ok := v.(meta.RawJSON)
		if !ok {
			return decodeJSON(v, dst)
		}
		dst.Set(reflect.ValueOf(meta.Fields{Raw: json.RawMessage(raw)}))
	case planJSON:
		if readKnown(v, dst.Addr().Interface()) {
			return nil
		}
		return decodeJSON(v, dst)
	case planTime:
		t, err := time.Parse(time.RFC3339, s)
		if err != nil || !isText {
			return wrongType(v, dst)
		}
		dst.Set(reflect.ValueOf(t))
	case planText:
		u, ok := dst.Addr().Interface().(encoding.TextUnmarshaler)
		if !ok || !isText {
			return wrongType(v, dst)
		}
		return u.UnmarshalText([]byte(s))
	case planBytes:
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil || !isText {
			return wrongType(v, dst)
		}
		dst.SetBytes(b)
	}
	return nil
}

func decodeJSON(v any, dst reflect.Value) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	u, ok := dst.Addr().Interface().(json.Unmarshaler)
	if !ok {
		return json.Unmarshal(b, dst.Addr().Interface())
	}
	return u.UnmarshalJSON(b)
}
