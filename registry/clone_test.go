package registry_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// TestCloneSharesNothing sets every slice, map and pointer of a kind, and checks that the clone has
// its own copy of each, except for functions and immutable values.
func TestCloneSharesNothing(t *testing.T) {
	k := registry.FromDefinition(meta.NewObject(nil), nil) // with a Reference
	fill(reflect.ValueOf(k).Elem())
	c := k.Clone()
	assert.Empty(t, shared("Kind", reflect.ValueOf(*k), reflect.ValueOf(*c)))
	assert.NotEmpty(t, shared("Kind", reflect.ValueOf(*k), reflect.ValueOf(*k)))
}

// immutable lists the types of pointers that clones may share, because nothing modifies their
// values.
var immutable = []string{"*schema.Docs"}

func fill(v reflect.Value) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case !f.CanSet():
		case f.Kind() == reflect.Struct:
			fill(f)
		case f.Kind() == reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			if e := f.Index(0); e.Kind() == reflect.Struct {
				fill(e)
			}
		case f.Kind() == reflect.Map:
			f.Set(reflect.MakeMap(f.Type()))
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			if f.Elem().Kind() == reflect.Struct && f.Type() != reflect.TypeFor[*registry.Kind]() { // the body of a subresource
				fill(f.Elem())
			}
		}
	}
}

func shared(at string, a, b reflect.Value) (paths []string) {
	for i := range a.NumField() {
		f, g, name := a.Field(i), b.Field(i), at+"."+a.Type().Field(i).Name
		if !a.Type().Field(i).IsExported() {
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			paths = append(paths, shared(name, f, g)...)
		case reflect.Slice, reflect.Pointer:
			if f.IsNil() || slices.Contains(immutable, f.Type().String()) {
				continue
			}
			if f.Pointer() == g.Pointer() {
				paths = append(paths, name)
			}
			if f.Type() == reflect.TypeFor[*registry.Kind]() {
				continue
			}
			if f.Kind() == reflect.Slice {
				f, g = f.Index(0), g.Index(0)
			} else {
				f, g = f.Elem(), g.Elem()
			}
			if f.Kind() == reflect.Struct {
				paths = append(paths, shared(name, f, g)...)
			}
		case reflect.Map:
			if !f.IsNil() && f.Pointer() == g.Pointer() {
				paths = append(paths, name)
			}
		}
	}
	return paths
}
