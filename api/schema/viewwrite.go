package schema

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"orch.io/controlplane/api/meta"
)

// maxDepth limits the nesting of a Go value, because pointers can form cycles.
const maxDepth = 500

var errDeep = errors.New("value is nested too deeply")

// encode returns src as a JSON value.
func (p *plan) encode(src reflect.Value, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errDeep
	}
	switch p.kind {
	case planString:
		return src.String(), nil
	case planBool:
		return src.Bool(), nil
	case planInt:
		return src.Int(), nil
	case planUint:
		if src.Uint() > math.MaxInt64 {
			return nil, fmt.Errorf("%d is too large", src.Uint())
		}
		return int64(src.Uint()), nil
	case planFloat:
		f := src.Float()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("%v has no JSON encoding", f)
		}
		if isInteger(f) && math.Abs(f) < 1<<53 {
			return int64(f), nil
		}
		return f, nil
	case planPointer:
		if src.IsNil() {
			return nil, nil
		}
		return p.elem.encode(src.Elem(), depth+1)
	case planStruct:
		return p.encodeStruct(src, depth)
	case planMap:
		return p.encodeMap(src, depth)
	case planSlice, planArray:
		return p.encodeList(src, depth)
	case planRaw, planOrBoolean, planOrList:
		return p.encodeUnion(src, depth)
	}
	return p.encodeForm(src)
}

func (p *plan) encodeStruct(src reflect.Value, depth int) (any, error) {
	m := make(map[string]any, min(len(p.fields), 8))
	for i := range p.fields {
		f := &p.fields[i]
		v, ok := lookupField(src, f.index)
		if !ok || f.omitEmpty && isEmpty(v) || f.omitZero && f.isZero(v) {
			continue
		}
		e, err := f.plan.encode(v, depth+1)
		if err != nil {
			return nil, inField(f.name, err)
		}
		m[f.name] = e
	}
	return m, nil
}

// lookupField returns the field at an index path, or false if a pointer on the way is nil.
func lookupField(v reflect.Value, index []int) (reflect.Value, bool) {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v, true
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Map, reflect.Slice, reflect.String, reflect.Array:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func (f *fieldPlan) isZero(v reflect.Value) bool {
	if f.zeroer && (v.Kind() != reflect.Pointer || !v.IsNil()) {
		return v.Interface().(zeroer).IsZero()
	}
	return v.IsZero()
}

func (p *plan) encodeMap(src reflect.Value, depth int) (any, error) {
	if src.IsNil() {
		return nil, nil
	}
	m := make(map[string]any, src.Len())
	for it := src.MapRange(); it.Next(); {
		k := it.Key().String()
		e, err := p.elem.encode(it.Value(), depth+1)
		if err != nil {
			return nil, inField(k, err)
		}
		m[k] = e
	}
	return m, nil
}

func (p *plan) encodeList(src reflect.Value, depth int) (any, error) {
	if p.kind == planSlice && src.IsNil() {
		return nil, nil
	}
	l := make([]any, src.Len())
	for i := range l {
		e, err := p.elem.encode(src.Index(i), depth+1)
		if err != nil {
			return nil, inField(fmt.Sprintf("[%d]", i), err)
		}
		l[i] = e
	}
	return l, nil
}

// encodeForm encodes values with a text or JSON encoding of their own.
func (p *plan) encodeForm(src reflect.Value) (any, error) {
	switch p.kind {
	case planTime:
		t := src.Interface().(time.Time)
		if t.IsZero() {
			return nil, nil
		}
		return meta.FormatMicroTime(t), nil
	case planFields:
		if raw, ok := meta.CompactJSON(src.Interface().(meta.Fields).Raw); ok {
			return raw, nil
		}
		return nil, nil
	case planBytes:
		if src.IsNil() {
			return nil, nil
		}
		return base64.StdEncoding.EncodeToString(src.Bytes()), nil
	case planText:
		if m, ok := methods(src).(encoding.TextMarshaler); ok {
			b, err := m.MarshalText()
			return string(b), err
		}
		return nil, fmt.Errorf("Go type %s has no MarshalText", src.Type())
	case planAny:
		if src.IsNil() {
			return nil, nil
		}
		switch v := src.Interface().(type) {
		case string, bool, int64, float64:
			return v, nil
		}
	}
	v := methods(src)
	if known, ok := writeKnown(v); ok {
		return known, nil
	}
	return viaJSON(v)
}

// methods returns a value with all methods of src, including those of its pointer.
func methods(src reflect.Value) any {
	if src.CanAddr() {
		return src.Addr().Interface()
	}
	p := reflect.New(src.Type())
	p.Elem().Set(src)
	return p.Interface()
}

func viaJSON(v any) (any, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return meta.ParseJSON(b)
}

// Update makes dst equal to src, both objects of the schema, but keeps fields in dst that the
// schema does not declare if it preserves unknown fields. dst may share memory with src
// afterwards.
func (s *Schema) Update(dst, src map[string]any) {
	for k, v := range src {
		from, ok := v.(map[string]any)
		to, both := dst[k].(map[string]any)
		if f := s.Struct.Field(k); ok && both && f != nil && f.Schema.Struct != nil {
			f.Schema.Update(to, from)
			continue
		}
		dst[k] = v
	}
	for k := range dst {
		if _, ok := src[k]; !ok && (s.Struct.Field(k) != nil || !s.Preserve) {
			delete(dst, k)
		}
	}
}
