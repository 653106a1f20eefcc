package recordings_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// structuralGenerator makes schemas of custom kinds and values for them. Equal seeds give
// equal results.
type structuralGenerator struct{ *rand.Rand }

func newStructuralGenerator(seed uint64) structuralGenerator {
	return structuralGenerator{rand.New(rand.NewPCG(seed, 0))}
}

// chance reports true in percent of 100 calls.
func (g structuralGenerator) chance(percent int) bool { return g.IntN(100) < percent }

func pick[T any](g structuralGenerator, list ...T) T { return list[g.IntN(len(list))] }

type node = map[string]any

const (
	preserves   = "x-kubernetes-preserve-unknown-fields"
	intOrString = "x-kubernetes-int-or-string"
	embeds      = "x-kubernetes-embedded-resource"
	listType    = "x-kubernetes-list-type"
	listKeys    = "x-kubernetes-list-map-keys"
	mapType     = "x-kubernetes-map-type"
)

// schema returns a schema with at most depth levels below it.
func (g structuralGenerator) schema(depth int) node {
	var s node
	switch {
	case depth == 0 || g.chance(20):
		s = g.leaf()
	case g.chance(35):
		s = g.array(depth)
	default:
		s = g.object(depth)
	}
	if g.chance(15) {
		s["nullable"] = true
	}
	if g.chance(15) {
		s["default"] = g.value(s, 3)
	}
	return s
}

func (g structuralGenerator) leaf() node {
	switch g.IntN(9) {
	case 0:
		return node{"type": "integer"}
	case 1:
		return node{"type": "number"}
	case 2:
		return node{"type": "boolean"}
	case 3:
		return node{intOrString: true}
	case 4:
		return node{preserves: true}
	case 5:
		return node{"type": "object"}
	case 6:
		return node{"type": "object", preserves: true}
	case 7:
		return node{"type": "string", "minLength": 1}
	}
	return node{"type": "string"}
}

func (g structuralGenerator) array(depth int) node {
	s := node{"type": "array"}
	if g.chance(40) {
		s[preserves] = true
	}
	if g.chance(10) && s[preserves] != nil {
		delete(s, "type")
	}
	if s[preserves] == nil || g.chance(75) {
		s["items"] = g.schema(depth - 1)
	}
	switch g.IntN(8) {
	case 0:
		s[listType] = "atomic"
	case 1:
		if s["items"] == nil || g.chance(80) {
			s["items"] = node{"type": pick(g, "string", "integer")}
		}
		s[listType] = "set"
	case 2:
		item := node{"type": "object", "required": []any{"a"}, "properties": node{"a": node{"type": "string"}, "b": g.schema(depth - 1)}}
		if g.chance(30) {
			item[preserves] = true
		}
		if g.chance(20) {
			delete(item, "required")
			item["properties"].(node)["a"].(node)["default"] = "one"
		}
		s["items"], s[listType], s[listKeys] = item, "map", []any{"a"}
	}
	return s
}

func (g structuralGenerator) object(depth int) node {
	s := node{"type": "object"}
	if g.chance(35) {
		s[preserves] = true
	}
	switch n := g.IntN(10); {
	case n < 6:
		s["properties"] = g.properties(depth)
		if g.chance(5) {
			s["additionalProperties"] = pick[any](g, true, false)
		}
	case n < 8:
		s["additionalProperties"] = g.schema(depth - 1)
	case n < 9:
		s["additionalProperties"] = g.chance(70)
	}
	if g.chance(15) {
		s[embeds] = true
		if fields, ok := s["properties"].(node); ok && g.chance(30) {
			fields["metadata"] = node{"type": "object"}
			fields["kind"] = node{"type": "string"}
		}
		if s["properties"] == nil {
			s[preserves] = true
			delete(s, "additionalProperties")
		}
	}
	if g.chance(10) && s[preserves] != nil && s[embeds] == nil {
		delete(s, "type")
	}
	if g.chance(15) && s["type"] != nil {
		s[mapType] = pick(g, "atomic", "granular")
	}
	return s
}

func (g structuralGenerator) properties(depth int) node {
	fields := node{}
	for _, name := range []string{"a", "b", "c"}[:1+g.IntN(3)] {
		fields[name] = g.schema(depth - 1)
	}
	return fields
}

// value returns a value, most often one that fits the schema, with at most depth levels of
// unknown values.
func (g structuralGenerator) value(s node, depth int) any {
	switch {
	case g.chance(4):
		return nil
	case g.chance(4):
		return g.any(depth)
	}
	kind, _ := s["type"].(string)
	switch {
	case s["properties"] != nil, s["additionalProperties"] != nil, kind == "object":
		return g.objectValue(s, depth)
	case s["items"] != nil, kind == "array":
		return g.listValue(s, depth)
	case s[intOrString] != nil:
		return pick[any](g, 1, 2, "50%", "x")
	}
	switch kind {
	case "integer":
		return g.IntN(3)
	case "number":
		return pick[any](g, 1, 0.5, 2.25)
	case "boolean":
		return g.chance(50)
	case "string":
		return pick(g, "x", "y", "z", "")
	}
	return g.any(depth)
}

func (g structuralGenerator) objectValue(s node, depth int) node {
	v := node{}
	fields, _ := s["properties"].(node)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if g.chance(70) {
			v[name] = g.value(fields[name].(node), depth)
		}
	}
	if more, ok := s["additionalProperties"].(node); ok {
		for _, name := range []string{"k", "l", "a"}[:g.IntN(4)] {
			v[name] = g.value(more, depth)
		}
	}
	if g.chance(40) && depth > 0 {
		v[pick(g, "x", "y", "b.c")] = g.any(depth - 1)
	}
	if s[embeds] == nil || g.chance(5) {
		return v
	}
	v["apiVersion"], v["kind"] = "v1", "Thing"
	if g.chance(10) {
		delete(v, pick(g, "apiVersion", "kind"))
	}
	if g.chance(5) {
		v[pick(g, "apiVersion", "kind")] = pick[any](g, nil, 1, "", "a/b/c", "a b")
	}
	if g.chance(70) {
		v["metadata"] = g.metadataValue()
	}
	return v
}

func (g structuralGenerator) metadataValue() any {
	if g.chance(6) {
		return pick[any](g, nil, "x", []any{}, node{"labels": []any{}})
	}
	m := node{}
	if g.chance(70) {
		m["name"] = pick[any](g, "n", "N", "n")
	}
	if g.chance(30) {
		m["labels"] = node{"a": pick[any](g, "b", "b", "b", "!", 1)}
	}
	if g.chance(20) {
		m[pick(g, "zzz", "creationTimestamp", "finalizers", "generation")] = pick[any](g, nil, "x", 1, node{"a": 1}, []any{"f"})
	}
	return m
}

func (g structuralGenerator) listValue(s node, depth int) []any {
	items, _ := s["items"].(node)
	list := []any{}
	for range g.IntN(4) {
		list = append(list, g.value(items, depth))
	}
	return list
}

// any returns a value of no schema.
func (g structuralGenerator) any(depth int) any {
	n := 10
	if depth <= 0 {
		n = 6
	}
	switch g.IntN(n) {
	case 0:
		return nil
	case 1:
		return g.IntN(3)
	case 2:
		return 1.5
	case 3:
		return true
	case 4, 5:
		return pick(g, "", "x", "y")
	case 6, 7:
		list := []any{}
		for range g.IntN(3) {
			list = append(list, g.any(depth-1))
		}
		return list
	}
	m := node{}
	for range g.IntN(3) {
		m[pick(g, "a", "b", "x", "y")] = g.any(depth - 1)
	}
	return m
}

// structuralCases returns count generated schemas, each with values.
func structuralCases(seed uint64, count, values int) []*structuralCase {
	g := newStructuralGenerator(seed)
	cases := make([]*structuralCase, count)
	for i := range cases {
		c := &structuralCase{Schema: g.schema(3)}
		for range values {
			c.Objects = append(c.Objects, &structuralObject{Value: g.value(c.Schema, 3), Next: g.value(c.Schema, 3)})
		}
		cases[i] = c
	}
	return cases
}

// structuralDefinition defines the kind of a batch: a field f0, f1, ... with the field v for each schema.
func structuralDefinition(batch []*structuralCase) node {
	fields := node{}
	for i, c := range batch {
		fields[fmt.Sprint("f", i)] = node{"type": "object", "properties": node{"v": c.Schema}}
	}
	return node{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": node{"name": "batches.example.com"}, "spec": node{
		"group": "example.com", "scope": "Cluster", "names": node{"plural": "batches", "kind": "Batch"},
		"versions": []any{node{"name": "v1", "served": true, "storage": true,
			"schema": node{"openAPIV3Schema": node{"type": "object", "properties": fields}}}}}}
}
