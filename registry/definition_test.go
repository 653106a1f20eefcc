package registry_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

// Widget is a kind as a program would declare it.
type Widget struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Spec   WidgetSpec   `json:"spec,omitempty"`
	Status WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Replicas int32  `json:"replicas" schema:"default=1,min=1"`
	Color    string `json:"color,omitempty" schema:"enum=red|blue"`
	Shade    string `json:"shade,omitempty"`
}

type WidgetStatus struct {
	Ready    int32  `json:"ready,omitempty"`
	Selector string `json:"selector,omitempty"`
}

func widgets() registry.Definition[Widget] {
	return registry.Definition[Widget]{
		Group: "example.com", Version: "v1", Status: true, ShortNames: []string{"wd"},
		Columns: []registry.Column{{Name: "Color", Type: "string", JSONPath: ".spec.color"}, registry.Age()},
		Default: func(w *registry.Change[Widget]) {
			if w.New.Spec.Color == "red" && w.New.Spec.Shade == "" {
				w.New.Spec.Shade = "ruby"
			}
		},
		Validate: func(w *registry.Change[Widget]) {
			if n := w.New.Spec.Replicas; w.Old != nil && n < w.Old.Spec.Replicas {
				w.Invalid(check.At("spec", "replicas"), n, "may not shrink")
			}
		},
		Scale:  &registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.ready", Selector: ".status.selector"},
		Fields: []registry.SelectableField{{Name: "spec.color"}},
	}
}

func ExampleOf() {
	kind := registry.Of(registry.Definition[Widget]{
		Group: "example.com", Version: "v1", Status: true,
		Default: func(w *registry.Change[Widget]) { w.New.Spec.Shade = "ruby" },
	})
	t, err := kind.Compile(names.Kubernetes)
	if err != nil {
		fmt.Println(err)
		return
	}
	obj := meta.NewObject(map[string]any{"spec": map[string]any{"color": "green", "size": int64(3)}})
	unknown, _ := t.Storage.Schema.Conform(obj.Tree())
	_ = t.Storage.Schema.FillDefaults(obj.Tree())
	t.Default(t.NewChange(context.Background(), obj, nil, ""))
	fmt.Println(t.Plural, t.ListKind, unknown)
	fmt.Println(obj.Map("spec"))
	for _, c := range t.Storage.Schema.Validate(obj.Tree(), nil) {
		fmt.Println(c.Reason, c.Field, c.Message)
	}
	// Output:
	// widgets WidgetList [spec.size]
	// map[color:green replicas:1 shade:ruby]
	// FieldValueNotSupported spec.color Unsupported value: "green": supported values: "red", "blue"
}

func compiled(t *testing.T) *registry.Type {
	typ, err := registry.Of(widgets()).Compile(names.Kubernetes)
	require.NoError(t, err)
	return typ
}

func TestOfRunsTypedHooks(t *testing.T) {
	typ := compiled(t)
	obj := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": int64(2), "color": "red"}, "status": map[string]any{}})
	typ.Default(typ.NewChange(t.Context(), obj, nil, ""))
	assert.Equal(t, map[string]any{"replicas": int64(2), "color": "red", "shade": "ruby"}, obj.Map("spec"))
	assert.Equal(t, "a", obj.Name())
	smaller := obj.Clone()
	smaller.Set(int64(1), "spec", "replicas")
	shrink, create := typ.NewChange(t.Context(), smaller, obj, ""), typ.NewChange(t.Context(), smaller, nil, "")
	typ.Validate(shrink)
	typ.Validate(create)
	assert.Len(t, shrink.Faults, 1)
	assert.Empty(t, create.Faults)
}

func TestOfStatusAndScale(t *testing.T) {
	typ := compiled(t)
	obj := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a", "namespace": "n", "labels": map[string]any{"l": "1"}},
		"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{"ready": int64(1), "selector": "app=x"}})
	typ.Subresource("status").Merge(obj, meta.NewObject(map[string]any{"status": map[string]any{"ready": int64(5), "selector": "app=x"}, "spec": map[string]any{}}))
	assert.Equal(t, int64(5), obj.Int("status", "ready"))
	assert.Equal(t, int64(2), obj.Int("spec", "replicas"))

	scale := typ.Subresource("scale")
	assert.Equal(t, meta.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, scale.Kind)
	body := scale.Show(obj)
	assert.Equal(t, map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": "a", "namespace": "n"},
		"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{"replicas": int64(5), "selector": "app=x"},
	}, body.Tree())
	body.Set(int64(-1), "spec", "replicas")
	scale.Merge(obj, body)
	w := typ.NewChange(t.Context(), obj, nil, "scale")
	scale.Validate(w)
	require.Len(t, w.Faults, 1)
	assert.Equal(t, ".spec.replicas", w.Faults[0].Field)
}

// misplaced has rules that cannot hold.
type misplaced struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Range           string     `json:"range" schema:"min=3"`
	Length          int        `json:"length" schema:"maxLength=3"`
	Items           string     `json:"items" schema:"uniqueItems"`
	Order           int        `json:"order" schema:"min=5,max=3"`
	Counts          []int      `json:"counts" schema:"minItems=5,maxItems=3"`
	Keys            []string   `json:"keys" schema:"listType=map,listMapKeys=name"`
	NoKeys          []struct{} `json:"noKeys" schema:"listType=map"`
	Below           []int      `json:"below" schema:"items.pattern=x"`
	hidden          string     `schema:"required"`
}

func TestCompileReportsEveryFault(t *testing.T) {
	_ = misplaced{}.hidden // it is there to be refused
	type noMeta struct {
		Spec struct{} `json:"spec"`
	}
	cases := []struct {
		name string
		kind *registry.Kind
		want []string
	}{
		{"names", registry.Of(registry.Definition[Widget]{Group: "Bad Group", Version: "V 1", Kind: "widget", Plural: "Wi", ShortNames: []string{"x y"}}),
			[]string{"Group", "Version", "upper-case", "Plural", "ShortNames", "registry_test.Widget"}},
		{"no group", registry.Of(registry.Definition[struct {
			A chan int `json:"a"`
		}]{Version: "v1", Kind: "X"}), []string{"Group is empty", "field A"}},
		{"no metadata", registry.Of(registry.Definition[noMeta]{Group: "g.io", Version: "v1", Kind: "X"}), []string{"apiVersion", "metadata is missing"}},
		{"no status", registry.Of(registry.Definition[struct {
			meta.TypeMeta   `json:",inline"`
			meta.ObjectMeta `json:"metadata"`
		}]{Group: "g.io", Version: "v1", Kind: "X", Status: true}), []string{"no field status"}},
		{"columns", registry.Of(registry.Definition[Widget]{Group: "g.io", Version: "v1", Columns: []registry.Column{{Name: "A", Type: "string", JSONPath: "x["}, {Name: "B", Type: "odd"}}}),
			[]string{`column "A"`, `column "B": type`, "neither JSONPath nor Cell"}},
		{"fields", registry.Of(registry.Definition[Widget]{Group: "g.io", Version: "v1", Fields: []registry.SelectableField{{Name: "spec.nope"}, {Name: "spec"}}}),
			[]string{`"spec.nope" leads nowhere`, `"spec" is no single value`}},
		{"scope", registry.Of(registry.Definition[Widget]{Group: "g.io", Version: "v1", Scope: 9}), []string{"Scope 9"}},
		{"pointer", registry.Of(registry.Definition[*Widget]{Group: "g.io", Version: "v1"}), []string{"take the struct, registry_test.Widget"}},
		{"tags", registry.Of(registry.Definition[misplaced]{Group: "g.io", Version: "v1"}), []string{
			"(Go type registry_test.misplaced)", "field Range: tag schema: a range is for numbers", "field Length: tag schema: a length is for strings",
			"field Items: tag schema: a rule for items is for lists", "field Order: tag schema: the minimum is over the maximum",
			"field Counts: tag schema: a minimum is over the maximum", "field Keys: tag schema: listMapKeys needs items that are structs",
			"field NoKeys: tag schema: listType=map needs listMapKeys", "field Below: tag schema: pattern is for strings", "field hidden: it has a schema tag but is not exported"}},
		{"scale", registry.Of(registry.Definition[Widget]{Group: "g.io", Version: "v1", Scale: &registry.Scale{SpecReplicas: ".spec.x", StatusReplicas: ".spec.replicas"}}),
			[]string{`".spec.x" leads nowhere`, "must be under .status"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.kind.Compile(names.Orch)
			require.Error(t, err)
			for _, w := range c.want {
				assert.ErrorContains(t, err, w)
			}
		})
	}
}

func TestColumnCells(t *testing.T) {
	typ := compiled(t)
	cols := typ.Storage.Columns
	require.Len(t, cols, 3)
	assert.Equal(t, "name", cols[0].Format)
	obj := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"color": "red"}})
	assert.Equal(t, "a", cols[0].Cell(obj))
	assert.Equal(t, "red", cols[1].Cell(obj))
	assert.Nil(t, cols[1].Cell(meta.NewObject(nil)))
}

func TestClashes(t *testing.T) {
	a, b := compiled(t), compiled(t)
	assert.NoError(t, registry.Clashes([]*registry.Type{a}))
	assert.ErrorContains(t, registry.Clashes([]*registry.Type{a, b}), `"wd"`)
}

func TestCompileIsSafeForManyServersAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			typ, err := registry.Of(widgets()).Compile(names.Profile(i % 2))
			if !assert.NoError(t, err) {
				return
			}
			obj := meta.NewObject(map[string]any{"spec": map[string]any{"color": "red"}})
			typ.Storage.Conform(obj)
			if err := typ.Storage.Defaults(typ.NewChange(t.Context(), obj, nil, "")); err != nil {
				t.Fatal(err)
			}
			assert.Empty(t, typ.Storage.Schema.Validate(obj.Tree(), nil))
			assert.Equal(t, "ruby", obj.String("spec", "shade"))
		})
	}
	wg.Wait()
}
