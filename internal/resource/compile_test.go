package resource_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
)

// Widget is a kind as a program declares it.
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
		Columns: []registry.Column{{Name: "Color", Type: "string", JSONPath: ".spec.color"}, registry.AgeColumn()},
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
	t, err := resource.Compile(kind, names.Kubernetes)
	if err != nil {
		fmt.Println(err)
		return
	}
	obj := meta.NewObject(map[string]any{"spec": map[string]any{"color": "green", "size": int64(3)}})
	unknown, _ := t.Storage.Schema().Normalize(obj.Tree())
	_ = t.Storage.Schema().FillDefaults(obj.Tree())
	t.Default(t.Hub.NewChange(context.Background(), obj, nil, ""))
	fmt.Println(t.Plural, t.ListKind, unknown)
	fmt.Println(obj.Map("spec"))
	for _, c := range t.Storage.Schema().Validate(obj.Tree(), nil) {
		fmt.Println(c.Reason, c.Field, c.Message)
	}
	// Output:
	// widgets WidgetList [spec.size]
	// map[color:green replicas:1 shade:ruby]
	// FieldValueNotSupported spec.color Unsupported value: "green": supported values: "red", "blue"
}

func compiled(t *testing.T) *resource.Type {
	typ, err := resource.Compile(registry.Of(widgets()), names.Kubernetes)
	require.NoError(t, err)
	return typ
}

func TestOfRunsTypedHooks(t *testing.T) {
	typ := compiled(t)
	obj := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": int64(2), "color": "red"}, "status": map[string]any{}})
	typ.Default(typ.Hub.NewChange(t.Context(), obj, nil, ""))
	assert.Equal(t, map[string]any{"replicas": int64(2), "color": "red", "shade": "ruby"}, obj.Map("spec"))
	assert.Equal(t, "a", obj.Name())
	smaller := obj.Clone()
	smaller.Set(int64(1), "spec", "replicas")
	shrink, create := typ.Hub.NewChange(t.Context(), smaller, obj, ""), typ.Hub.NewChange(t.Context(), smaller, nil, "")
	typ.Validate(shrink)
	typ.Validate(create)
	assert.Len(t, shrink.Violations, 1)
	assert.Empty(t, create.Violations)
}

func TestStatusAndScaleMergeIntoObject(t *testing.T) {
	typ := compiled(t)
	obj := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a", "namespace": "n", "labels": map[string]any{"l": "1"}},
		"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{"ready": int64(1), "selector": "app=x"}})
	typ.Subresource("status").Merge(obj, meta.NewObject(map[string]any{"status": map[string]any{"ready": int64(5), "selector": "app=x"}, "spec": map[string]any{}}))
	assert.Equal(t, int64(5), obj.Int("status", "ready"))
	assert.Equal(t, int64(2), obj.Int("spec", "replicas"))

	scale := typ.Subresource("scale")
	assert.Equal(t, meta.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}, scale.Body.GVK())
	body := scale.Show(obj)
	assert.Equal(t, map[string]any{
		"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": "a", "namespace": "n"},
		"spec": map[string]any{"replicas": int64(2)}, "status": map[string]any{"replicas": int64(5), "selector": "app=x"},
	}, body.Tree())
	body.Set(int64(-1), "spec", "replicas")
	scale.Merge(obj, body)
	w := typ.Hub.NewChange(t.Context(), obj, nil, "scale")
	scale.Validate(w)
	require.Len(t, w.Violations, 1)
	assert.Equal(t, ".spec.replicas", w.Violations[0].Field)
}

// misplaced has schema tags that do not fit the types of its fields.
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

// plain has only the fields that every object has.
type plain struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
}

func TestCompileReportsEveryError(t *testing.T) {
	_ = misplaced{}.hidden // Compile rejects the tag of this field
	type noMeta struct {
		Spec struct{} `json:"spec"`
	}
	cases := []struct {
		name string
		kind *registry.Kind
		want []string
	}{
		{"names", registry.Of(registry.Definition[Widget]{Group: "Bad Group", Version: "V 1", Kind: "widget", Plural: "Wi", ShortNames: []string{"x y"}}),
			[]string{"Group", "Version", "upper-case", "Plural", "ShortNames", "resource_test.Widget"}},
		{"no group", registry.Of(registry.Definition[struct {
			A chan int `json:"a"`
		}]{Version: "v1", Kind: "X"}), []string{"field A"}},
		{"no metadata", registry.Of(registry.Definition[noMeta]{Group: "g.io", Version: "v1", Kind: "X"}), []string{"apiVersion", "metadata is missing"}},
		{"no status", registry.Of(registry.Definition[struct {
			meta.TypeMeta   `json:",inline"`
			meta.ObjectMeta `json:"metadata"`
		}]{Group: "g.io", Version: "v1", Kind: "X", Status: true}), []string{"no field status"}},
		{"columns", registry.Of(registry.Definition[Widget]{Group: "g.io", Version: "v1", Columns: []registry.Column{{Name: "A", Type: "string", JSONPath: "x["}, {Name: "B", Type: "odd"}}}),
			[]string{`column "A"`, `column "B": type`, "neither JSONPath nor Cell"}},
		{"paths of columns", registry.Of(registry.Definition[Widget]{
			Group: "g.io", Version: "v2",
			Columns: []registry.Column{{Name: "A", Type: "string", JSONPath: ".spec.colour"}, {Name: "B", Type: "string", JSONPath: ".spec.color"}},
			Versions: []registry.VersionOf[Widget]{registry.Spoke[plain, Widget]{
				Version: "v1", ToHub: func(*plain, *Widget) error { return nil }, FromHub: func(*Widget, *plain) error { return nil },
				Columns: []registry.Column{{Name: "C", Type: "string", JSONPath: ".spec.color"}},
			}},
		}), []string{`version "v2": column "A": the path .spec.colour does not exist`, `version "v1": column "C": the path .spec.color does not exist`}},
		{"fields", registry.Of(registry.Definition[Widget]{Group: "g.io", Version: "v1", Fields: []registry.SelectableField{{Name: "spec.nope"}, {Name: "spec"}, {Name: "spec.color", Fallback: []string{"spec", "gone"}}}}),
			[]string{`"spec.nope" does not exist`, `"spec.color" does not exist`, `"spec" is not a scalar`}},
		{"scope", registry.Of(registry.Definition[Widget]{Group: "g.io", Version: "v1", Scope: 9}), []string{"Scope 9"}},
		{"pointer", registry.Of(registry.Definition[*Widget]{Group: "g.io", Version: "v1"}), []string{"T must be the struct resource_test.Widget"}},
		{"tags", registry.Of(registry.Definition[misplaced]{Group: "g.io", Version: "v1"}), []string{
			"(Go type resource_test.misplaced)", "field Range: tag schema: a range is for numbers", "field Length: tag schema: a length is for strings",
			"field Items: tag schema: a rule for items is for lists", "field Order: tag schema: the minimum exceeds the maximum",
			"field Counts: tag schema: a minimum exceeds the maximum", "field Keys: tag schema: listMapKeys needs items that are structs",
			"field NoKeys: tag schema: listType=map needs listMapKeys", "field Below: tag schema: pattern is for strings", "field hidden: unexported field has a schema tag"}},
		{"scale", registry.Of(registry.Definition[Widget]{Group: "g.io", Version: "v1", Scale: &registry.Scale{SpecReplicas: ".spec.x", StatusReplicas: ".spec.replicas"}}),
			[]string{`".spec.x" does not exist`, "must be under .status"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := resource.Compile(c.kind, names.Orch)
			require.Error(t, err)
			for _, w := range c.want {
				assert.ErrorContains(t, err, w)
			}
		})
	}
}

func TestColumnsReadCellsByPath(t *testing.T) {
	typ := compiled(t)
	cols := typ.Storage.Columns
	require.Len(t, cols, 3)
	assert.Equal(t, "name", cols[0].Format)
	obj := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"color": "red"}})
	assert.Equal(t, "a", cols[0].Cell(obj))
	assert.Equal(t, "red", cols[1].Cell(obj))
	assert.Nil(t, cols[1].Cell(meta.NewObject(nil)))
}

func TestClashesReportsSharedNames(t *testing.T) {
	a, b := compiled(t), compiled(t)
	assert.NoError(t, resource.CheckNameConflicts([]*resource.Type{a}))
	assert.ErrorContains(t, resource.CheckNameConflicts([]*resource.Type{a, b}), `"wd"`)
}

func TestCompileIsSafeForConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			typ, err := resource.Compile(registry.Of(widgets()), names.Profile(i%2))
			if !assert.NoError(t, err) {
				return
			}
			obj := meta.NewObject(map[string]any{"spec": map[string]any{"color": "red"}})
			typ.Storage.Normalize(obj)
			if err := typ.Storage.Defaults(typ.Hub.NewChange(t.Context(), obj, nil, "")); err != nil {
				t.Fatal(err)
			}
			assert.Empty(t, typ.Storage.Schema().Validate(obj.Tree(), nil))
			assert.Equal(t, "ruby", obj.String("spec", "shade"))
		})
	}
	wg.Wait()
}

// WidgetV0 is an older version of Widget.
type WidgetV0 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Status          struct{} `json:"status,omitempty"`
}

// TestCompileRejectsInvalidVersions checks the errors of Compile for the versions of a kind.
func TestCompileRejectsInvalidVersions(t *testing.T) {
	toHub, fromHub := func(*WidgetV0, *Widget) error { return nil }, func(*Widget, *WidgetV0) error { return nil }
	good := registry.Spoke[WidgetV0, Widget]{Version: "v0", ToHub: toHub, FromHub: fromHub}
	half, unnamed, same := good, good, good
	half.FromHub, unnamed.Version, same.Version = nil, "", "v1"
	for _, c := range []struct {
		spoke   registry.Spoke[WidgetV0, Widget]
		storage string
		want    string
	}{
		{good, "", ""},
		{good, "v0", ""},
		{good, "v3", `Storage "v3" is not a version of the kind`},
		{half, "", `version "v0": a spoke needs ToHub and FromHub`},
		{unnamed, "", "Version"},
		{same, "", `duplicate version "v1"`},
	} {
		d := widgets()
		d.Storage, d.Versions = c.storage, []registry.VersionOf[Widget]{c.spoke}
		typ, err := resource.Compile(registry.Of(d), names.Orch)
		if c.want != "" {
			assert.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		assert.True(t, typ.Converts())
		assert.Equal(t, "v1", typ.Hub.Name)
		assert.Equal(t, typ.Hub, typ.Version("v0").Working())
	}
	type unique struct {
		WidgetV0
		Code string `json:"code" schema:"unique"`
	}
	d := widgets()
	d.Versions = []registry.VersionOf[Widget]{registry.Spoke[unique, Widget]{
		Version: "v0", ToHub: func(*unique, *Widget) error { return nil }, FromHub: func(*Widget, *unique) error { return nil },
	}}
	_, err := resource.Compile(registry.Of(d), names.Orch)
	assert.ErrorContains(t, err, `version "v0": unique is allowed only in the hub version`)
}

// TestMerge checks that Merge applies the difference between before and after by fields and list
// keys, and keeps the values that the other version cannot represent.
func TestMerge(t *testing.T) {
	type item struct {
		Name   string `json:"name"`
		Size   int32  `json:"size,omitempty"`
		Hidden string `json:"hidden,omitempty"`
	}
	type hub struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Items           []item            `json:"items,omitempty" schema:"listType=map,listMapKeys=name"`
		Plain           []item            `json:"plain,omitempty"`
		Map             map[string]string `json:"map,omitempty"`
	}
	type spokeItem struct {
		Name string `json:"name"`
		Size int32  `json:"size,omitempty"`
	}
	type spoke struct {
		meta.TypeMeta   `json:",inline"`
		meta.ObjectMeta `json:"metadata"`
		Items           []spokeItem       `json:"items,omitempty"`
		Plain           []spokeItem       `json:"plain,omitempty"`
		Map             map[string]string `json:"map,omitempty"`
	}
	typ, err := resource.Compile(registry.Of(registry.Definition[hub]{
		Group: "example.com", Version: "v2", Kind: "Thing", Versions: []registry.VersionOf[hub]{registry.Spoke[spoke, hub]{
			Version: "v1",
			ToHub: func(in *spoke, out *hub) error {
				for _, i := range in.Items {
					out.Items = append(out.Items, item{Name: i.Name, Size: i.Size})
				}
				for _, i := range in.Plain {
					out.Plain = append(out.Plain, item{Name: i.Name, Size: i.Size})
				}
				out.Map = in.Map
				return nil
			},
			FromHub: func(in *hub, out *spoke) error {
				for _, i := range in.Items {
					if i.Name != "secret" {
						out.Items = append(out.Items, spokeItem{i.Name, i.Size})
					}
				}
				for _, i := range in.Plain {
					out.Plain = append(out.Plain, spokeItem{i.Name, i.Size})
				}
				out.Map = in.Map
				return nil
			},
		}},
	}), names.Orch)
	require.NoError(t, err)
	const live = `"items":[{"name":"a","size":1,"hidden":"x"},{"name":"secret","hidden":"y"},{"name":"b","size":2}],"plain":[{"name":"p","hidden":"z"}],"map":{"k":"v","l":"w"}`
	for _, c := range []struct{ name, after, want string }{
		{"nothing", `"items":[{"name":"a","size":1},{"name":"b","size":2}],"plain":[{"name":"p"}],"map":{"k":"v","l":"w"}`, live},
		{"an item", `"items":[{"name":"a","size":5},{"name":"b","size":2}],"plain":[{"name":"p"}],"map":{"k":"v","l":"w"}`,
			`"items":[{"name":"a","size":5,"hidden":"x"},{"name":"b","size":2},{"name":"secret","hidden":"y"}],"plain":[{"name":"p","hidden":"z"}],"map":{"k":"v","l":"w"}`},
		{"reordered, an item removed, an item added", `"items":[{"name":"c"},{"name":"b","size":2}],"plain":[{"name":"p"}],"map":{"l":"w","m":"n"}`,
			`"items":[{"name":"c"},{"name":"b","size":2},{"name":"secret","hidden":"y"}],"plain":[{"name":"p","hidden":"z"}],"map":{"l":"w","m":"n"}`},
		{"another item in a list without keys", `"items":[{"name":"a","size":1},{"name":"b","size":2}],"plain":[{"name":"q"}],"map":{"k":"v","l":"w"}`,
			`"items":[{"name":"a","size":1,"hidden":"x"},{"name":"secret","hidden":"y"},{"name":"b","size":2}],"plain":[{"name":"q"}],"map":{"k":"v","l":"w"}`},
		{"an item added to a list without keys", `"items":[{"name":"a","size":1},{"name":"b","size":2}],"plain":[{"name":"new"},{"name":"p"}],"map":{"k":"v","l":"w"}`,
			`"items":[{"name":"a","size":1,"hidden":"x"},{"name":"secret","hidden":"y"},{"name":"b","size":2}],"plain":[{"name":"new"},{"name":"p","hidden":"z"}],"map":{"k":"v","l":"w"}`},
		{"duplicate key", `"items":[{"name":"a","size":1},{"name":"a","size":3}],"plain":[{"name":"p"}],"map":{"k":"v","l":"w"}`,
			`"items":[{"name":"a","size":1},{"name":"a","size":3}],"plain":[{"name":"p","hidden":"z"}],"map":{"k":"v","l":"w"}`},
		{"everything removed", ``, `"items":[{"name":"secret","hidden":"y"}]`},
	} {
		object := func(version, fields string) *meta.Object {
			if fields != "" {
				fields = "," + fields
			}
			v, err := meta.ParseJSON([]byte(`{"apiVersion":"example.com/` + version + `","kind":"Thing","metadata":{"name":"t"}` + fields + `}`))
			require.NoError(t, err)
			return meta.NewObject(v.(map[string]any))
		}
		whole := object("v2", live)
		before, err := typ.Version("v1").Convert(t.Context(), whole)
		require.NoError(t, err)
		got, err := typ.Hub.Merge(t.Context(), whole, before, object("v1", c.after))
		require.NoError(t, err)
		assert.Equal(t, object("v2", c.want).Tree(), got.Tree(), c.name)
		assert.Equal(t, object("v2", live).Tree(), whole.Tree(), c.name)
	}
}
