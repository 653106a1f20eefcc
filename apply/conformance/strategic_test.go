package conformance

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply"
)

func key(v any) string { return fmt.Sprintf("%T%v", v, v) }

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// TestStrategicMerge merges random patches with every directive and compares.
func TestStrategicMerge(t *testing.T) {
	for _, typ := range []any{corev1.Pod{}, appsv1.Deployment{}, corev1.Service{}} {
		t.Run(reflect.TypeOf(typ).Name(), func(t *testing.T) {
			s := fromTags{}.of(reflect.TypeOf(typ))
			merged := 0
			for seed := range uint64(4000) {
				r := random{rand.New(rand.NewPCG(seed, 1)), 0.25}
				live := r.object(s, 8)
				patch := r.patch(live, s)
				theirs, theirErr := strategicpatch.StrategicMergeMapPatch(clone(live), clone(patch), typ)
				ours, err := apply.StrategicMerge(live, patch, s)
				if theirErr != nil {
					continue
				}
				merged++
				require.NoError(t, err, "seed %d\nlive  %s\npatch %s\nwant  %s", seed, text(live), text(patch), text(theirs))
				undirected(map[string]any(theirs))
				require.JSONEq(t, text(theirs), text(ours), "seed %d\nlive  %s\npatch %s", seed, text(live), text(patch))
			}
			require.Greater(t, merged, 2000, "most patches must be good ones")
		})
	}
}

// undirected takes out the directives and nulls that they leave in items which take the
// place of a whole list; their typed decoding drops them later.
func undirected(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k[0] == '$' || e == nil {
				delete(v, k)
				continue
			}
			undirected(e)
		}
	case []any:
		for _, e := range v {
			undirected(e)
		}
	}
}

func clone(m map[string]any) map[string]any { return meta.Clone(m).(map[string]any) }

// patch returns a patch of live: directives stand where live has something that
// they are about.
func (r random) patch(live map[string]any, s *schema.Schema) map[string]any {
	p := map[string]any{}
	if r.IntN(25) == 0 {
		p["$patch"] = []string{"replace", "delete"}[r.IntN(2)]
		if p["$patch"] == "replace" {
			for k, v := range r.object(s, 2) {
				p[k] = v
			}
		}
		return p
	}
	for _, k := range sorted(live) {
		if r.IntN(2) == 0 {
			continue
		}
		f := s.Struct.Field(k)
		if f == nil {
			p[k] = r.word()
			continue
		}
		r.change(p, k, live[k], f.Schema)
	}
	if s.Struct != nil {
		f := s.Struct.Fields[r.IntN(len(s.Struct.Fields))]
		if _, has := live[f.Name]; !has {
			p[f.Name] = r.value(f.Schema, 3)
		}
	}
	if r.IntN(8) == 0 {
		keep := []any{}
		for _, k := range sorted(p) {
			if p[k] != nil && k[0] != '$' {
				keep = append(keep, k)
			}
		}
		p["$retainKeys"] = keep
	}
	return p
}

func (r random) change(p map[string]any, k string, live any, s *schema.Schema) {
	if r.IntN(8) == 0 {
		p[k] = nil
		return
	}
	switch v := live.(type) {
	case map[string]any:
		if s.Struct != nil {
			p[k] = r.patch(v, s)
			return
		}
		p[k] = r.value(s, 2)
	case []any:
		r.changeList(p, k, v, s)
	default:
		p[k] = r.value(s, 2)
	}
}

func (r random) changeList(p map[string]any, k string, live []any, s *schema.Schema) {
	merge := s.PatchStrategy != ""
	if !merge || len(live) == 0 {
		p[k] = r.list(s, 3)
		return
	}
	if s.PatchMergeKey == "" {
		if r.IntN(2) == 0 {
			p["$deleteFromPrimitiveList/"+k] = []any{live[r.IntN(len(live))]}
		} else {
			p[k] = append([]any{}, r.list(s, 2)...)
		}
		return
	}
	items := []any{}
	order := []any{}
	for _, v := range live {
		m := v.(map[string]any)
		id := m[s.PatchMergeKey]
		if id == nil {
			continue
		}
		switch r.IntN(4) {
		case 0:
			items = append(items, map[string]any{"$patch": "delete", s.PatchMergeKey: id})
		case 1, 2:
			c := r.patch(m, s.Items)
			if c["$patch"] == nil {
				c[s.PatchMergeKey] = id
				if keep, ok := c["$retainKeys"].([]any); ok {
					c["$retainKeys"] = append(keep, s.PatchMergeKey)
				}
				items = append(items, c)
				order = append(order, map[string]any{s.PatchMergeKey: id})
			}
		case 3:
			order = append(order, map[string]any{s.PatchMergeKey: id})
		}
	}
	if r.IntN(3) == 0 {
		n := r.object(s.Items, 2)
		n[s.PatchMergeKey] = "new"
		items = append(items, n)
		order = append(order, map[string]any{s.PatchMergeKey: "new"})
	}
	if r.IntN(12) == 0 {
		items = append(items, map[string]any{"$patch": "replace"})
	}
	r.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	p[k] = items
	if r.IntN(3) == 0 {
		p["$setElementOrder/"+k] = order
	}
}
