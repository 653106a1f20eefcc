package registrytest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/internal/resource"
)

// maker makes objects. For a version and a seed it always makes the same object.
type maker struct {
	generators []Generator
	used       []bool // whether each generator was used, by its index
}

// object makes an object of a version in canonical form. Each value satisfies the rules of the
// schema for single values; rules between values may be broken. Seed 0 sets all fields, seed 1 only
// the required fields.
func (m *maker) object(v *resource.Version, seed uint64) (*meta.Object, error) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, seed)), maker: m, often: 0.5, left: size}
	switch seed {
	case 0:
		g.often, g.left = 1, 10*size
	case 1:
		g.often = 0
	}
	tree := map[string]any{}
	for _, f := range v.Schema().Struct.Fields {
		switch f.Name {
		case "apiVersion", "kind", "metadata":
		default:
			g.field(tree, v.Schema().Struct, f)
		}
	}
	if g.err != nil {
		return nil, fmt.Errorf("making an object: %w", g.err)
	}
	obj := meta.NewObject(tree)
	obj.SetGVK(v.GVK())
	obj.SetName(fmt.Sprintf("seed-%d", seed))
	if v.Namespaced {
		obj.SetNamespace("default")
	}
	obj.Set(map[string]any{"seed": g.word()}, "metadata", "labels")
	if _, faults := v.Normalize(obj); len(faults) > 0 {
		return nil, fmt.Errorf("making an object: %w", v.DecodeError(faults))
	}
	return obj, nil
}

// generator makes one object.
type generator struct {
	*rand.Rand
	*maker
	often float64 // the probability with which an optional field is set
	left  int     // number of optional values that may still be made
	path  []step  // the fields that lead to the current value
	err   error   // the error of the first value that could not be made
}

// size is the approximate number of values of an object. The object with all fields has up to ten
// times as many.
const size = 300

// deepest limits the depth of objects of recursive types.
const deepest = 16

// field sets a field of a struct or leaves it out.
func (g *generator) field(tree map[string]any, s *schema.Struct, f *schema.Field) {
	if !needed(s, f) && (g.left <= 0 || g.Float64() >= g.often) || len(g.path) >= deepest {
		return
	}
	g.set(tree, s, f)
}

// needed reports whether a field must be set, because it is required, or because the Go encoding
// always writes it and the zero value may break a rule.
func needed(s *schema.Struct, f *schema.Field) bool {
	if f.Required || s.Go == nil || f.Pointer || f.OmitEmpty || f.OmitZero {
		return f.Required
	}
	rules := f.Schema
	return rules.Struct != nil || len(rules.Enum) > 0 || rules.Pattern != "" || rules.Minimum != nil || rules.Maximum != nil ||
		rules.MinLength != nil || rules.MinItems != nil || rules.MinProperties != nil ||
		rules.Format != "" && rules.Type != schema.Integer && rules.Type != schema.Number
}

// set sets a field of a struct.
func (g *generator) set(tree map[string]any, s *schema.Struct, f *schema.Field) {
	var goType reflect.Type
	if s.Go != nil {
		goType = target(s.Go.FieldByIndex(f.Index).Type)
	}
	g.path = append(g.path, step{s.Go, f.Name, goType})
	defer func() { g.path = g.path[:len(g.path)-1] }()
	for range attempts {
		tree[f.Name] = g.value(f.Schema, goType)
		if !f.Required || f.Pointer || !isZero(tree[f.Name]) {
			return
		}
		g.left = max(g.left, 2) // allow a list with one item, in case the limit made the value empty
	}
}

// attempts limits how often a value that breaks a rule is made again.
const attempts = 100

// isZero reports whether v is the zero value, which a required field of a Go struct must not have.
func isZero(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return v == nil || reflect.ValueOf(v).IsZero()
}

// target returns t without pointers.
func target(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// element returns the type of the items of a list or the values of a map, or nil if t is neither.
func element(t reflect.Type) reflect.Type {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return target(t.Elem())
	}
	return nil
}

// value makes a value of a schema. t is its Go type, or nil if there is none.
func (g *generator) value(s *schema.Schema, t reflect.Type) any {
	g.left--
	for i, own := range g.generators {
		if own.fits(g.path, t) {
			g.used[i] = true
			v, err := own.value(g.Rand)
			if err != nil && g.err == nil {
				g.err = err
			}
			return v
		}
	}
	if len(s.Enum) > 0 {
		return meta.Clone(s.Enum[g.IntN(len(s.Enum))])
	}
	if s.Wire != schema.Plain || s.IntOrString {
		return g.formed(s)
	}
	switch s.Type {
	case schema.Object:
		return g.object(s, t)
	case schema.Array:
		return g.list(s, t)
	case schema.Integer:
		return g.integer(s)
	case schema.Number:
		return g.number(s)
	case schema.Boolean:
		return g.IntN(2) == 0
	case schema.String:
		return g.text(s)
	}
	return map[string]any{"any": g.word()}
}

// typeOf reports whether f belongs to the embedded TypeMeta of a struct. The protobuf encoding of
// an embedded object omits the type, which its container determines.
func typeOf(s *schema.Struct, f *schema.Field) bool {
	return s.Go != nil && len(f.Index) > 1 && s.Go.Field(f.Index[0]).Type == reflect.TypeFor[meta.TypeMeta]()
}

// object makes an object or a map.
func (g *generator) object(s *schema.Schema, t reflect.Type) any {
	tree := map[string]any{}
	if s.Format == "label-selector" {
		tree["matchLabels"] = map[string]any{g.word(): g.word()}
		tree["matchExpressions"] = []any{
			map[string]any{"key": g.word(), "operator": "In", "values": []any{g.word()}},
			map[string]any{"key": g.word(), "operator": "Exists"},
		}
		return tree
	}
	if s.Struct != nil {
		for _, f := range s.Struct.Fields {
			if typeOf(s.Struct, f) {
				continue
			}
			if slices.Contains(s.Required, f.Name) { // required here, though not wherever the struct is used
				g.set(tree, s.Struct, f)
				continue
			}
			g.field(tree, s.Struct, f)
		}
		return tree
	}
	least, most := g.length(s.MinProperties, s.MaxProperties)
	for range attempts {
		if len(tree) >= most {
			break
		}
		if s.Values == nil {
			tree[g.word()] = g.word()
		} else {
			tree[g.word()] = g.value(s.Values, element(t))
		}
	}
	g.must(len(tree) >= least, "a map of %d keys", least)
	return tree
}

// length returns the minimum number of items of a list or map, and the number to make.
func (g *generator) length(low, high *int64) (least, wanted int) {
	if low != nil {
		least = int(*low)
	}
	if g.left > 0 {
		wanted = g.IntN(3) + int(g.often)
	}
	if high != nil {
		wanted = min(wanted, int(*high))
	}
	return least, max(least, wanted)
}

// list makes a list.
func (g *generator) list(s *schema.Schema, t reflect.Type) any {
	list := []any{}
	seen := map[string]bool{}
	different := s.UniqueItems || s.ListType != "" && s.ListType != "atomic"
	least, wanted := g.length(s.MinItems, s.MaxItems)
	for range attempts * wanted {
		if len(list) >= wanted {
			break
		}
		item := g.value(s.Items, element(t))
		if text := string(codec.EncodeValue(nil, g.key(s, item))); !different || !seen[text] {
			seen[text] = true
			list = append(list, item)
		}
	}
	g.must(len(list) >= least, "a list of %d items", least)
	return list
}

// key returns the value by which an item differs from the other items of its list. It sets missing
// key fields.
func (g *generator) key(s *schema.Schema, item any) any {
	fields, ok := item.(map[string]any)
	if !ok || s.ListType != "map" || s.Items.Struct == nil {
		return item
	}
	var values []any
	for _, name := range append(slices.Clone(s.ListKeys), s.PatchMergeKey) {
		if f := s.Items.Struct.Field(name); f != nil {
			if fields[name] == nil {
				g.set(fields, s.Items.Struct, f)
			}
			values = append(values, fields[name])
		}
	}
	return values
}

// must records an error if a value could not be made.
func (g *generator) must(made bool, format string, args ...any) {
	if made || g.err != nil {
		return
	}
	var names []string
	for _, s := range g.path {
		names = append(names, s.name)
	}
	g.err = fmt.Errorf("%q: found no %s; see Options.Generators", names, fmt.Sprintf(format, args...))
}
