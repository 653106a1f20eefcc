package check

import "reflect"

// SemanticEqual reports whether two values are of the same type and equal. In contrast to
// reflect.DeepEqual, nil and empty lists and maps are equal, and values of types with an Equal
// method, such as times and quantities, are compared by it.
func SemanticEqual(a, b any) bool { return same(reflect.ValueOf(a), reflect.ValueOf(b)) }

func same(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() {
		return a.IsValid() == b.IsValid()
	}
	if a.Type() != b.Type() {
		return false
	}
	if eq, ok := equalMethod(a, b); ok {
		return eq
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return same(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for it := a.MapRange(); it.Next(); {
			other := b.MapIndex(it.Key())
			if !other.IsValid() || !same(it.Value(), other) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}

// equalMethod calls the method Equal(T) bool of a type T, if a has such a method and it may be called.
func equalMethod(a, b reflect.Value) (equal, ok bool) {
	if a.Kind() == reflect.Pointer || a.Kind() == reflect.Interface || !a.CanInterface() {
		return false, false
	}
	m, found := a.Type().MethodByName("Equal")
	if !found || m.Type.NumIn() != 2 || m.Type.In(1) != a.Type() || m.Type.NumOut() != 1 || m.Type.Out(0).Kind() != reflect.Bool {
		return false, false
	}
	return m.Func.Call([]reflect.Value{a, b})[0].Bool(), true
}
