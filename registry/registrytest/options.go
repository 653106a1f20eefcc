package registrytest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
)

// Options say how objects are made. The zero value makes them of their schemas alone:
// of its types, formats, patterns, enums, bounds and lengths.
type Options struct {
	// Generators make the values that schemas do not say enough of, such as texts
	// that ToHub parses. The first that fits a field is asked.
	Generators []Generator

	// Seeds are those of the objects that are made, one object of each version for
	// each; by default they are 0, which sets every field, 1, which sets none that
	// need not be, and 98 more.
	Seeds []uint64
}

// Generator makes values, see ForType and ForField.
type Generator struct {
	goType reflect.Type // of the value, or the struct that path begins in
	path   []string     // nil: of a type
	make   func(*rand.Rand) any
}

// ForType makes the values of a Go type wherever fields, items of lists or values of
// maps have it, or point to it. They are written in JSON as the type is.
func ForType[T any](make func(*rand.Rand) T) Generator {
	return Generator{goType: reflect.TypeFor[T](), make: func(r *rand.Rand) any { return make(r) }}
}

// ForField makes the values of a field, by its path on the wire, such as spec.size,
// from a struct S on: the struct of a version or one in it. A path leads through lists
// and maps by the fields of their items alone.
func ForField[S, T any](path string, make func(*rand.Rand) T) Generator {
	return Generator{goType: reflect.TypeFor[S](), path: strings.Split(path, "."), make: func(r *rand.Rand) any { return make(r) }}
}

// String says what values it is for.
func (g Generator) String() string {
	if g.path == nil {
		return fmt.Sprintf("the generator of %s", g.goType)
	}
	return fmt.Sprintf("the generator of %s of %s", strings.Join(g.path, "."), g.goType)
}

// fits reports whether it makes the value at the end of a path, of a Go type, nil where
// there is none.
func (g Generator) fits(path []step, t reflect.Type) bool {
	if g.path == nil {
		return t == g.goType
	}
	from := len(path) - len(g.path)
	return from >= 0 && path[from].of == g.goType && path[len(path)-1].value == t &&
		slices.EqualFunc(g.path, path[from:], func(name string, s step) bool { return name == s.name })
}

// step is one on the way to a value: a field of a Go struct.
type step struct {
	of    reflect.Type // nil: of no Go struct
	name  string
	value reflect.Type // of the field, not of what it holds
}

// value returns a value that it makes, as JSON has it.
func (g Generator) value(r *rand.Rand) (any, error) {
	text, err := json.Marshal(g.make(r))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", g, err)
	}
	v, _, err := codec.DecodeValue(text, codec.Limits{})
	return v, err
}

// RoundTrip is what the function of that name is, with these options. A generator
// that no object needs fails the test, if Seeds are not given.
func (o Options) RoundTrip(t testing.TB, kinds ...*registry.Kind) {
	t.Helper()
	m := &maker{generators: o.Generators, used: make([]bool, len(o.Generators))}
	seeds := o.Seeds
	for seed := range uint64(defaultSeeds) {
		if len(o.Seeds) == 0 {
			seeds = append(seeds, seed)
		}
	}
	for _, k := range kinds {
		if typ := compile(t, k); typ != nil {
			check(t, typ, m, seeds)
		}
	}
	for i, g := range o.Generators {
		if len(o.Seeds) == 0 && !m.used[i] {
			t.Errorf("%v is of no field of the kinds", g)
		}
	}
}
