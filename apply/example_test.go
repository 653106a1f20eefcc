package apply_test

import (
	"encoding/json"
	"fmt"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply"
)

func show(v any) {
	b, err := json.Marshal(v)
	fmt.Println(string(b), err)
}

func configMap() *schema.Schema {
	text := &schema.Schema{Type: schema.String}
	fields := &schema.Struct{}
	fields.Add(&schema.Field{Name: "data", Schema: &schema.Schema{Type: schema.Object, Values: text}})
	return &schema.Schema{Type: schema.Object, Struct: fields}
}

func ExampleTracker() {
	tracker := apply.NewTracker(apply.Config{
		Kind:     "ConfigMap",
		Versions: []apply.Version{{APIVersion: "v1", Schema: configMap()}},
	})
	body := func(value string) *meta.Object {
		return meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"color": value}})
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	live, err := tracker.Apply(nil, body("red"), apply.Write{Manager: "alice", APIVersion: "v1", Now: now})
	fmt.Println(live.List("metadata", "managedFields")[0].(map[string]any)["fieldsV1"], err)

	_, err = tracker.Apply(live, body("blue"), apply.Write{Manager: "bob", APIVersion: "v1", Now: now})
	fmt.Println(err)

	live, err = tracker.Apply(live, body("blue"), apply.Write{Manager: "bob", APIVersion: "v1", Now: now, Force: true})
	fmt.Println(live.String("data", "color"), err)
	// Output:
	// {"f:data":{"f:color":{}}} <nil>
	// Apply failed with 1 conflict: conflict with "alice": .data.color
	// blue <nil>
}

func ExampleTracker_Update() {
	tracker := apply.NewTracker(apply.Config{Versions: []apply.Version{{APIVersion: "v1", Schema: configMap()}}})
	obj := meta.NewObject(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"color": "red"}})
	err := tracker.Update(nil, obj, apply.Write{Manager: "alice", APIVersion: "v1", Now: time.Unix(0, 0)})
	entry := obj.List("metadata", "managedFields")[0].(map[string]any)
	fmt.Println(entry["manager"], entry["operation"], entry["fieldsV1"], err)
	// Output: alice Update {"f:data":{".":{},"f:color":{}}} <nil>
}

func ExampleJSONPatch() {
	obj := map[string]any{"data": map[string]any{"a": "1"}}
	out, err := apply.JSONPatch(obj, []byte(`[{"op":"test","path":"/data/a","value":"1"},{"op":"add","path":"/data/b","value":"2"}]`), apply.Limits{})
	fmt.Println(err)
	show(out)
	// Output:
	// <nil>
	// {"data":{"a":"1","b":"2"}} <nil>
}

func ExampleMergePatch() {
	show(apply.MergePatch(
		map[string]any{"data": map[string]any{"a": "1", "b": "2"}},
		map[string]any{"data": map[string]any{"a": nil, "c": "3"}},
	))
	// Output: {"data":{"b":"2","c":"3"}} <nil>
}

func ExampleStrategicMerge() {
	item := &schema.Struct{}
	item.Add(&schema.Field{Name: "name", Schema: &schema.Schema{Type: schema.String}}, &schema.Field{Name: "image", Schema: &schema.Schema{Type: schema.String}})
	spec := &schema.Struct{}
	spec.Add(&schema.Field{Name: "containers", Schema: &schema.Schema{
		Type: schema.Array, Items: &schema.Schema{Type: schema.Object, Struct: item},
		PatchStrategy: "merge", PatchMergeKey: "name",
	}})
	container := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	out, err := apply.StrategicMerge(
		map[string]any{"containers": []any{container("a", "1"), container("b", "1")}},
		map[string]any{"containers": []any{container("b", "2"), map[string]any{"$patch": "delete", "name": "a"}}},
		&schema.Schema{Type: schema.Object, Struct: spec},
	)
	fmt.Println(err)
	show(out)
	// Output:
	// <nil>
	// {"containers":[{"image":"2","name":"b"}]} <nil>
}
