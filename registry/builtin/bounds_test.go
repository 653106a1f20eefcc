package builtin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/registry/builtin"
	"orch.io/controlplane/registry/internal/kindtest"
)

// TestLongLists checks, for each list and map of each built-in kind, that the cost of a create grows
// linearly with its length. It compares allocations, so that it does not see a loop without
// allocations.
func TestLongLists(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long, in one goroutine")
	}
	const n, most = 50, 400
	for _, k := range builtin.Kinds() {
		kind := kindtest.Of(t, names.Kubernetes, builtin.Kinds(), k.Kind)
		base := map[string]any{}
		if text, err := os.ReadFile("../../server/internal/apitest/testdata/minimal/" + kind.GroupResource().String() + ".json"); err == nil {
			require.NoError(t, json.Unmarshal(text, &base))
		}
		for _, p := range places(kind.Hub.Schema(), nil, nil) {
			if slices.Contains(p.path, "metadata") || slices.Contains(p.path, "template") && kind.Kind != "Deployment" {
				continue // metadata is the same for all kinds, and pod templates for all workloads
			}
			few, some, many := createCost(t, kind, base, p, 2), createCost(t, kind, base, p, n), createCost(t, kind, base, p, most)
			for i, unit := range []string{"objects", "bytes"} {
				if limit := 3 * most / n * max(some[i]-few[i], few[i]); many[i]-few[i] > limit {
					t.Errorf("%s %s: %d items take %d %s, %d take %d", kind.Kind, strings.Join(p.path, "."), n, some[i]-few[i], unit, most, many[i]-few[i])
				}
			}
		}
	}
}

// place is a list or map in the objects of a kind.
type place struct {
	path []string // field names; [] is a list item, {} a map value
	of   *schema.Schema
}

// places returns the lists and maps of a schema. It follows a recursive schema once.
func places(s *schema.Schema, path []string, within []*schema.Struct) (list []place) {
	below := func(s *schema.Schema, name string) []place {
		return places(s, append(slices.Clip(path), name), within)
	}
	switch {
	case s.Struct != nil && !slices.Contains(within, s.Struct):
		within = append(slices.Clip(within), s.Struct)
		for _, f := range s.Struct.Fields {
			list = append(list, below(f.Schema, f.Name)...)
		}
	case s.Items != nil:
		list = append(below(s.Items, "[]"), place{path, s})
	case s.Values != nil:
		list = append(below(s.Values, "{}"), place{path, s})
	}
	return list
}

// createCost returns the numbers of objects and bytes allocated by a create of base with n items at a place.
func createCost(t *testing.T, k kindtest.Kind, base map[string]any, p place, n int) [2]int {
	items := []any{}
	values := map[string]any{}
	for i := range n {
		if p.of.Items != nil {
			items = append(items, sample(p.of.Items, i))
		} else {
			values[fmt.Sprint("k", i)] = sample(p.of.Values, i)
		}
	}
	var long any = items
	if p.of.Items == nil {
		long = values
	}
	text, err := json.Marshal(put(base, p.path, long))
	require.NoError(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	k.Create(t, string(text))
	runtime.ReadMemStats(&after)
	return [2]int{int(after.Mallocs - before.Mallocs), int(after.TotalAlloc - before.TotalAlloc)}
}

// put returns a copy of v with value at path.
func put(v any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	if path[0] == "[]" {
		list, _ := v.([]any)
		list = slices.Clone(list)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = put(list[0], path[1:], value)
		return list
	}
	field := path[0]
	if field == "{}" {
		field = "k"
	}
	out := map[string]any{}
	was, _ := v.(map[string]any)
	for name, v := range was {
		out[name] = v
	}
	out[field] = put(out[field], path[1:], value)
	return out
}

// sample returns the i-th value for a schema. Values differ for each i if the schema allows it.
func sample(s *schema.Schema, i int) any {
	switch {
	case s.Struct != nil:
		out := map[string]any{}
		for _, f := range s.Struct.Fields {
			if f.Schema.Struct == nil && f.Schema.Items == nil && f.Schema.Values == nil && f.Schema.Type != schema.Any {
				out[f.Name] = sample(f.Schema, i)
			}
		}
		return out
	case s.Items != nil:
		return []any{sample(s.Items, i)}
	case s.Values != nil:
		return map[string]any{"k": sample(s.Values, i)}
	case s.Type == schema.Any:
		return map[string]any{}
	case s.Type == schema.Boolean:
		return true
	case s.Type == schema.Integer || s.Type == schema.Number || s.IntOrString:
		return i + 1
	case s.Wire == schema.Time || s.Wire == schema.MicroTime:
		return "2020-01-01T00:00:00Z"
	case s.Format == "quantity":
		return "1"
	case s.Format == "byte":
		return "YQ=="
	}
	return fmt.Sprint("k", i)
}
