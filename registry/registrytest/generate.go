package registrytest

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/codec"
	"orch.io/controlplane/registry"
)

// generate makes an object of a version: of the types, enums, bounds and formats that
// its schema says, in canonical form. Rules beyond these it need not keep.
func generate(v *registry.Version, seed uint64) (*meta.Object, error) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, seed)), often: 0.5, left: size}
	switch seed {
	case 0:
		g.often, g.left = 1, 10*size
	case 1:
		g.often = 0
	}
	tree := map[string]any{}
	for _, f := range v.Schema.Struct.Fields {
		switch f.Name {
		case "apiVersion", "kind", "metadata":
		default:
			g.field(tree, f)
		}
	}
	obj := meta.NewObject(tree)
	obj.SetGVK(v.GVK())
	obj.SetName(fmt.Sprintf("seed-%d", seed))
	if v.Namespaced {
		obj.SetNamespace("default")
	}
	obj.Set(map[string]any{"seed": g.word()}, "metadata", "labels")
	if _, faults := v.Conform(obj); len(faults) > 0 {
		return nil, fmt.Errorf("making an object: %w", v.DecodeError(faults))
	}
	return obj, nil
}

type generator struct {
	*rand.Rand
	often float64 // of the fields that need not be set, how many are
	depth int
	left  int // values that may still be made beside those that must be
}

// size is how many values an object has, about; one with every field has ten times as
// many.
const size = 300

// deepest is how far types that contain themselves are followed.
const deepest = 9

func (g *generator) field(tree map[string]any, f *schema.Field) {
	if !f.Required && (g.left <= 0 || g.Float64() >= g.often) || g.depth >= deepest {
		return
	}
	g.depth++
	defer func() { g.depth-- }()
	tree[f.Name] = g.value(f.Schema)
}

func (g *generator) value(s *schema.Schema) any {
	g.left--
	if len(s.Enum) > 0 {
		return meta.Clone(s.Enum[g.IntN(len(s.Enum))])
	}
	if s.Wire != schema.Plain {
		return g.formed(s)
	}
	switch s.Type {
	case schema.Object:
		return g.object(s)
	case schema.Array:
		return g.list(s)
	case schema.Integer:
		return g.integer(s)
	case schema.Number:
		return float64(g.IntN(1000)) / 4
	case schema.Boolean:
		return g.IntN(2) == 0
	case schema.String:
		return g.text(s.Format)
	}
	return map[string]any{"any": g.word()}
}

func (g *generator) object(s *schema.Schema) any {
	tree := map[string]any{}
	if s.Struct != nil {
		for _, f := range s.Struct.Fields {
			g.field(tree, f)
		}
		return tree
	}
	for range g.length() {
		if s.Values == nil {
			tree[g.word()] = g.word()
		} else {
			tree[g.word()] = g.value(s.Values)
		}
	}
	return tree
}

// length is how many items a list or a map gets.
func (g *generator) length() int {
	if g.left <= 0 {
		return 0
	}
	return g.IntN(3) + int(g.often)
}

func (g *generator) list(s *schema.Schema) any {
	list := []any{}
	seen := map[string]bool{}
	for range g.length() {
		item := g.value(s.Items)
		key := item
		if fields, ok := item.(map[string]any); ok && s.ListType == "map" {
			var values []any
			for _, name := range append(slices.Clone(s.ListKeys), s.PatchMergeKey) {
				if f := s.Items.Struct.Field(name); f != nil && fields[name] == nil {
					fields[name] = g.value(f.Schema)
				}
				values = append(values, fields[name])
			}
			key = values
		}
		text := string(codec.EncodeValue(nil, key))
		if s.ListType != "" && s.ListType != "atomic" && seen[text] {
			continue
		}
		seen[text] = true
		list = append(list, item)
	}
	return list
}

func (g *generator) integer(s *schema.Schema) any {
	low, high := -1000.0, 1000.0
	if s.Minimum != nil {
		low = *s.Minimum
		high = max(high, low+1000)
	}
	if s.Maximum != nil {
		high = *s.Maximum
		low = min(low, high)
	}
	if s.Format == "int32" {
		low, high = max(low, math.MinInt32), min(high, math.MaxInt32)
	}
	return int64(low) + g.Int64N(int64(high-low)+1)
}

func (g *generator) text(format string) string {
	switch format {
	case "ip":
		return fmt.Sprintf("10.%d.%d.%d", g.IntN(256), g.IntN(256), g.IntN(256))
	case "cidr":
		return fmt.Sprintf("10.%d.0.0/16", g.IntN(256))
	case "date":
		return g.time().Format(time.DateOnly)
	case "date-time":
		return g.time().Format(time.RFC3339)
	}
	return g.word()
}

// formed makes a value with a form of its own.
func (g *generator) formed(s *schema.Schema) any {
	switch s.Wire {
	case schema.Time:
		return meta.FormatTime(g.time())
	case schema.MicroTime:
		return meta.FormatMicroTime(g.time().Add(time.Duration(g.IntN(1e6)) * time.Microsecond))
	case schema.Quantity:
		return fmt.Sprintf("%d%s", 1+2*g.IntN(400), []string{"", "m", "Ki", "Mi"}[g.IntN(4)])
	case schema.IntOrString:
		if g.IntN(2) == 0 {
			return g.Int64N(60000)
		}
		return g.word()
	case schema.Bytes:
		return base64.StdEncoding.EncodeToString([]byte(g.word()))
	case schema.Duration:
		return (time.Duration(g.IntN(1e5)) * time.Second).String()
	case schema.OrBoolean, schema.OrList:
		return g.object(&schema.Schema{Type: schema.Object, Struct: s.Struct})
	case schema.Fields:
		return map[string]any{"f:spec": map[string]any{"f:" + g.word(): g.word()}}
	}
	return map[string]any{"raw": g.word()}
}

func (g *generator) time() time.Time {
	return time.Date(2000+g.IntN(30), time.Month(1+g.IntN(12)), 1+g.IntN(28), g.IntN(24), g.IntN(60), g.IntN(60), 0, time.UTC)
}

// word is a DNS label, which most texts may be.
func (g *generator) word() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	b := make([]byte, 1+g.IntN(8))
	for i := range b {
		b[i] = letters[g.IntN(len(letters))]
	}
	return string(b)
}
