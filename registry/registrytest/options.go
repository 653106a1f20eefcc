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

// Options configure how RoundTrip makes objects. The zero value uses only the schemas: types,
// formats, patterns, enums, bounds and lengths.
type Options struct {
	// Generators make values that the schemas do not describe sufficiently, such as strings that
	// ToHub parses. For each field, the first matching generator is used.
	Generators []Generator

	// Seeds are the seeds of the objects; one object of each version is made for each. The default
	// is 0 to 99, where 0 sets every field and 1 only the required fields.
	Seeds []uint64
}

// Generator makes values for RoundTrip. Create it with ForType or ForField.
type Generator struct {
	goType reflect.Type // the type of the value, or the struct in which path starts
	path   []string     // nil: the generator is for a type
	make   func(*rand.Rand) any
}

// ForType returns a Generator for all fields, list items and map values of type T or a pointer to
// T. The values are encoded as JSON.
func ForType[T any](make func(*rand.Rand) T) Generator {
	return Generator{goType: reflect.TypeFor[T](), make: func(r *rand.Rand) any { return make(r) }}
}

// ForField returns a Generator for the field at a path of JSON names, such as spec.size, that
// starts in the struct S: the struct of a version or a struct inside it. In a path, lists and maps
// are skipped; it continues with the fields of their items.
func ForField[S, T any](path string, make func(*rand.Rand) T) Generator {
	return Generator{goType: reflect.TypeFor[S](), path: strings.Split(path, "."), make: func(r *rand.Rand) any { return make(r) }}
}

// String describes the values that the generator makes.
func (g Generator) String() string {
	if g.path == nil {
		return fmt.Sprintf("the generator of %s", g.goType)
	}
	return fmt.Sprintf("the generator of %s of %s", strings.Join(g.path, "."), g.goType)
}

// fits reports whether the generator makes the value at the end of path. t is the Go type of the
// value, or nil.
func (g Generator) fits(path []step, t reflect.Type) bool {
	if g.path == nil {
		return t == g.goType
	}
	from := len(path) - len(g.path)
	return from >= 0 && path[from].of == g.goType && path[len(path)-1].value == t &&
		slices.EqualFunc(g.path, path[from:], func(name string, s step) bool { return name == s.name })
}

// step is a field on the path to a value.
type step struct {
	of    reflect.Type // the struct; nil if it is not a Go struct
	name  string
	value reflect.Type // the type of the field, without pointers
}

// value returns a generated value as decoded JSON.
func (g Generator) value(r *rand.Rand) (any, error) {
	text, err := json.Marshal(g.make(r))
	if err != nil {
		return nil, fmt.Errorf("%v: %w", g, err)
	}
	v, _, err := codec.DecodeValue(text, codec.Limits{})
	return v, err
}

// RoundTrip runs the function RoundTrip with these options. If Seeds is empty, a generator that no
// object uses fails the test.
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
			t.Errorf("%v matches no field of the kinds", g)
		}
	}
}
