package apply_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/apply"
)

// An object is shared by two managers. The team deploys it, an autoscaler sets its replicas.
func Example() {
	manager := apply.NewFieldManager(apply.Config{
		Kind:     "App",
		Versions: []apply.Version{{APIVersion: "example.com/v1", Schema: appSchema()}},
	})

	// The team applies the fields that it cares about. It becomes their owner.
	live, err := manager.Apply(nil, object(`{"spec": {"replicas": 1, "image": "shop:1"}}`), apply.Options{Manager: "team"})
	if err != nil {
		panic(err)
	}

	// The autoscaler wants another value of a field that the team owns.
	scaled := object(`{"spec": {"replicas": 5}}`)
	_, err = manager.Apply(live, scaled, apply.Options{Manager: "autoscaler"})
	var conflict *apply.ConflictError
	if errors.As(err, &conflict) {
		for _, c := range conflict.Conflicts {
			fmt.Println("conflict:", c.Manager, "owns", c.Path)
		}
	}

	// With force, the field changes hands.
	next, err := manager.Apply(live, scaled, apply.Options{Manager: "autoscaler", Force: true})
	if err != nil {
		panic(err)
	}
	for _, change := range apply.Diff(live.Tree(), next.Tree(), appSchema()) {
		fmt.Println("change:", change)
	}

	// Each manager can see what it owns, change that and apply it again.
	for _, name := range []string{"team", "autoscaler"} {
		mine, err := manager.Extract(next, name, "")
		if err != nil {
			panic(err)
		}
		fmt.Println(name, "owns", text(mine.Map("spec")))
	}
	// Output:
	// conflict: team owns .spec.replicas
	// change: ~ .spec.replicas: 1 -> 5
	// team owns {"image":"shop:1"}
	// autoscaler owns {"replicas":5}
}

// appSchema returns the schema of the kind App. The registry derives one from a Go struct or
// a CustomResourceDefinition.
func appSchema() *schema.Schema {
	spec := &schema.Struct{}
	spec.Add(
		&schema.Field{Name: "replicas", Schema: &schema.Schema{Type: schema.Integer}},
		&schema.Field{Name: "image", Schema: &schema.Schema{Type: schema.String}},
		&schema.Field{Name: "ports", Schema: ports()},
	)
	app := &schema.Struct{}
	app.Add(&schema.Field{Name: "spec", Schema: &schema.Schema{Type: schema.Object, Struct: spec}})
	return &schema.Schema{Type: schema.Object, Struct: app}
}

// ports returns the schema of a list whose items are identified by name.
func ports() *schema.Schema {
	port := &schema.Struct{}
	port.Add(
		&schema.Field{Name: "name", Schema: &schema.Schema{Type: schema.String}},
		&schema.Field{Name: "number", Schema: &schema.Schema{Type: schema.Integer}},
	)
	return &schema.Schema{
		Type: schema.Array, Items: &schema.Schema{Type: schema.Object, Struct: port},
		PatchStrategy: "merge", PatchMergeKey: "name",
	}
}

// object returns an App with the fields of a JSON object.
func object(fields string) *meta.Object {
	obj := meta.NewObject(tree(fields))
	obj.SetGVK(meta.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "App"})
	obj.SetName("shop")
	return obj
}

func tree(text string) map[string]any {
	v, err := meta.ParseJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	return v.(map[string]any)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// A program that is not a server keeps managedFields for writes other than Apply.
func ExampleFieldManager_Update() {
	manager := apply.NewFieldManager(apply.Config{Versions: []apply.Version{{APIVersion: "example.com/v1", Schema: appSchema()}}})
	live := object(`{"spec": {"image": "shop:1"}}`)
	if err := manager.Update(nil, live, apply.Options{Manager: "editor", Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}); err != nil {
		panic(err)
	}
	owners, err := apply.Owners(live)
	if err != nil {
		panic(err)
	}
	for _, o := range owners {
		fmt.Println(o.Manager, o.Operation, o.Time.Year(), o.Paths)
	}
	// Output: editor Update 2026 [.spec .spec.image]
}

func ExampleFieldManager_ApplyConfiguration() {
	manager := apply.NewFieldManager(apply.Config{Versions: []apply.Version{{APIVersion: "example.com/v1", Schema: appSchema()}}})
	config := tree(`{"apiVersion": "example.com/v1", "kind": "App", "spec": {"ports": [{"name": "https", "number": 443}]}}`)
	out, err := manager.ApplyConfiguration(object(`{"spec": {"ports": [{"name": "http", "number": 80}]}}`).Tree(), config, "example.com/v1")
	if err != nil {
		panic(err)
	}
	fmt.Println(text(out["spec"]))
	// Output: {"ports":[{"name":"http","number":80},{"name":"https","number":443}]}
}

// Each request converts with its own context.
func ExampleFieldManager_WithConvert() {
	manager := apply.NewFieldManager(apply.Config{Versions: []apply.Version{
		{APIVersion: "example.com/v1", Schema: appSchema()},
		{APIVersion: "example.com/v2", Schema: appSchema()},
	}})
	live, err := manager.Apply(nil, object(`{"spec": {"image": "shop:1"}}`), apply.Options{Manager: "team"})
	if err != nil {
		panic(err)
	}
	applied := object(`{"spec": {"image": "shop:2"}}`)
	applied.SetGVK(meta.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "App"})
	live.SetGVK(meta.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "App"})
	converting := manager.WithConvert(func(apiVersion string, objs ...map[string]any) ([]map[string]any, error) {
		var out []map[string]any
		for _, obj := range objs {
			converted := meta.Clone(obj).(map[string]any)
			converted["apiVersion"] = apiVersion
			out = append(out, converted)
			fmt.Println("converting to", apiVersion)
		}
		return out, nil
	})
	_, err = converting.Apply(live, applied, apply.Options{Manager: "other"})
	fmt.Println(err)
	// Output:
	// converting to example.com/v1
	// converting to example.com/v1
	// Apply failed with 1 conflict: conflict with "team": .spec.image
}

// A program takes over an object that kubectl apply has written without --server-side.
func ExampleUpgradeManagedFields() {
	const annotation = "kubectl.kubernetes.io/last-applied-configuration"
	manager := apply.NewFieldManager(apply.Config{LastAppliedAnnotation: annotation, Versions: []apply.Version{{APIVersion: "example.com/v1", Schema: appSchema()}}})
	live := object(`{"metadata": {"annotations": {"` + annotation + `": "{}"}}, "spec": {"replicas": 1, "image": "shop:1"}}`)
	if err := manager.Update(nil, live, apply.Options{Manager: "kubectl-client-side-apply"}); err != nil {
		panic(err)
	}

	managers, err := apply.ClientSideManagers(live, annotation)
	if err != nil {
		panic(err)
	}
	upgraded, err := apply.UpgradeManagedFields(live, "team", managers...)
	if err != nil {
		panic(err)
	}
	// The team does not apply replicas any more: the field is removed.
	live, err = manager.Apply(upgraded, object(`{"spec": {"image": "shop:2"}}`), apply.Options{Manager: "team"})
	if err != nil {
		panic(err)
	}
	fmt.Println(managers, text(live.Map("spec")))
	// Output: [kubectl-client-side-apply] {"image":"shop:2"}
}

func ExampleDiff() {
	live := tree(`{"spec": {"image": "shop:1", "ports": [{"name": "http", "number": 80}, {"name": "old", "number": 1}]}}`)
	desired := tree(`{"spec": {"image": "shop:2", "ports": [{"name": "http", "number": 8080}]}}`)
	for _, change := range apply.Diff(live, desired, appSchema()) {
		fmt.Println(change)
	}
	// Output:
	// ~ .spec.image: "shop:1" -> "shop:2"
	// ~ .spec.ports[name="http"].number: 80 -> 8080
	// - .spec.ports[name="old"]: {"name":"old","number":1}
}

func ExampleMergePatch() {
	obj := tree(`{"data": {"a": "1", "b": "2"}}`)
	fmt.Println(text(apply.MergePatch(obj, tree(`{"data": {"a": null, "c": "3"}}`))))
	// Output: {"data":{"b":"2","c":"3"}}
}

func ExampleCreateMergePatch() {
	original, modified := tree(`{"data": {"a": "1", "b": "2"}}`), tree(`{"data": {"b": "2", "c": "3"}}`)
	fmt.Println(text(apply.CreateMergePatch(original, modified)))
	// Output: {"data":{"a":null,"c":"3"}}
}

// Another program has added the field mine.
func ExampleCreateThreeWayMergePatch() {
	lastApplied := tree(`{"spec": {"color": "red", "size": 1}}`)
	config := tree(`{"spec": {"color": "blue"}}`)
	live := tree(`{"spec": {"color": "red", "size": 1, "mine": true}}`)
	patch := apply.CreateThreeWayMergePatch(lastApplied, config, live)
	fmt.Println(text(patch))
	fmt.Println(text(apply.MergePatch(live, patch)))
	// Output:
	// {"spec":{"color":"blue","size":null}}
	// {"spec":{"color":"blue","mine":true}}
}

func ExampleStrategicMerge() {
	obj := tree(`{"spec": {"ports": [{"name": "http", "number": 80}, {"name": "old", "number": 1}]}}`)
	patch := tree(`{"spec": {"ports": [{"name": "http", "number": 8080}, {"name": "old", "$patch": "delete"}]}}`)
	out, err := apply.StrategicMerge(obj, patch, appSchema())
	fmt.Println(text(out), err)
	// Output: {"spec":{"ports":[{"name":"http","number":8080}]}} <nil>
}

func ExampleCreateStrategicMerge() {
	original := tree(`{"spec": {"ports": [{"name": "http", "number": 80}, {"name": "old", "number": 1}]}}`)
	modified := tree(`{"spec": {"ports": [{"name": "http", "number": 8080}]}}`)
	patch, err := apply.CreateStrategicMerge(original, modified, appSchema())
	fmt.Println(text(patch), err)
	// Output: {"spec":{"$setElementOrder/ports":[{"name":"http"}],"ports":[{"name":"http","number":8080},{"$patch":"delete","name":"old"}]}} <nil>
}

// The patch by which kubectl apply changes a live object: the port that another program has
// added stays.
func ExampleCreateThreeWayStrategicMerge() {
	lastApplied := tree(`{"spec": {"ports": [{"name": "http", "number": 80}, {"name": "old", "number": 1}]}}`)
	config := tree(`{"spec": {"ports": [{"name": "http", "number": 8080}]}}`)
	live := tree(`{"spec": {"ports": [{"name": "http", "number": 80}, {"name": "old", "number": 1}, {"name": "added", "number": 2}]}}`)
	patch, err := apply.CreateThreeWayStrategicMerge(lastApplied, config, live, appSchema())
	if err != nil {
		panic(err)
	}
	out, err := apply.StrategicMerge(live, patch, appSchema())
	fmt.Println(text(out), err)
	// Output: {"spec":{"ports":[{"name":"http","number":8080},{"name":"added","number":2}]}} <nil>
}

func ExampleJSONPatch() {
	obj := tree(`{"data": {"a": "1"}}`)
	out, err := apply.JSONPatch(obj, []byte(`[
		{"op": "test", "path": "/data/a", "value": "1"},
		{"op": "add", "path": "/data/b", "value": "2"}
	]`), apply.Limits{})
	fmt.Println(text(out), err)

	_, err = apply.JSONPatch(obj, []byte(`[{"op": "test", "path": "/data/a", "value": "2"}]`), apply.Limits{Operations: 10})
	fmt.Println(errors.Is(err, apply.ErrTestFailed))
	// Output:
	// {"data":{"a":"1","b":"2"}} <nil>
	// true
}

func ExampleCreateJSONPatch() {
	fmt.Printf("%s\n", apply.CreateJSONPatch(tree(`{"data": {"a": "1", "b": "2"}}`), tree(`{"data": {"a": "1", "c": "3"}}`)))
	// Output: [{"op":"remove","path":"/data/b"},{"op":"add","path":"/data/c","value":"3"}]
}

func ExampleValidateManager() {
	for _, c := range apply.ValidateManager(strings.Repeat("x", 200), "fieldManager", true) {
		fmt.Println(c.Field, c.Message)
	}
	// Output: fieldManager Too long: may not be more than 128 bytes
}
