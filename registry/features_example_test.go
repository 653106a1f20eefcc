package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing/fstest"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server"
)

type Row struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Room  string `json:"room"`
		Count int64  `json:"count" schema:"default=1"`
	} `json:"spec"`
	Status struct {
		Lit int64 `json:"lit,omitempty"`
	} `json:"status,omitzero"`
}

// scrap answers a POST to a subresource by deleting the row.
func scrap(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	var objects registry.Client = call.Client
	return nil, objects.Delete(ctx, call.Resource.GroupResource(), call.Key, registry.DeleteOptions{})
}

// This kind has columns for kubectl get, a field to select by, a scale for kubectl scale, and two
// subresources of its own.
func ExampleDefinition() {
	ctx := context.Background()
	rows := registry.Definition[Row]{
		Group: "example.com", Version: "v1", Kind: "Row", Scope: registry.Cluster, Status: true,
		Scale:  &registry.Scale{SpecReplicas: ".spec.count", StatusReplicas: ".status.lit"},
		Fields: []registry.SelectableField{{Name: "spec.room"}},
		Columns: []registry.Column{
			registry.TextColumn("Room", "Where the lamps are.", "spec", "room"),
			{Name: "Lit", Type: "string", Cell: func(o *meta.Object) any {
				return fmt.Sprintf("%d/%d", o.Int("status", "lit"), o.Int("spec", "count"))
			}},
			registry.AgeColumn(),
		},
		Subresources: []registry.Subresource{{Name: "blink", Act: func(_ context.Context, call *registry.Call) (*meta.Object, error) {
			call.Warn("the lamps of " + call.Key.Name + " blink")
			return call.Object, nil
		}}, {Name: "scrap", Act: scrap}},
	}
	b := &server.Builder{Authorizer: auth.AllowAll, Names: names.Kubernetes}
	b.Register(registry.Of(rows))
	s, err := b.Build(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, served := range b.Client().Types() {
		var t *registry.Type = served
		fmt.Println(t.GroupResource(), t.ServedVersions, t.Namespaced)
	}
	kind := meta.GroupResource{Group: "example.com", Resource: "rows"}
	for _, room := range []string{"hall", "attic"} {
		_, err := b.Client().Create(ctx, kind, meta.NewObject(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Row", "metadata": map[string]any{"name": room}, "spec": map[string]any{"room": room, "count": int64(3)},
		}))
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	req, _ := http.NewRequest("GET", "http://server/apis/example.com/v1/rows?fieldSelector=spec.room%3Dhall", nil)
	req.Header.Set("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
	res, err := s.Transport().RoundTrip(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	var table struct {
		ColumnDefinitions []struct{ Name string }
		Rows              []struct{ Cells []any }
	}
	if err := json.NewDecoder(res.Body).Decode(&table); err != nil {
		fmt.Println(err)
		return
	}
	for i, column := range table.ColumnDefinitions[:3] {
		fmt.Println(column.Name, table.Rows[0].Cells[i])
	}
	fmt.Println(s.Shutdown(ctx))
	// Output:
	// rows.example.com [example.com/v1] false
	// Name hall
	// Room hall
	// Lit 0/3
	// <nil>
}

type Window struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            WindowSpec `json:"spec"`
}

type WindowSpec struct {
	_ struct{} `schema:"rule=self.low <= self.high,rule.messageExpression='low is %d above high'.format([self.low - self.high]),rule.fieldPath=.low"`

	Low  int64 `json:"low"`
	High int64 `json:"high" schema:"rule=self >= oldSelf,rule.message=may only grow"`
}

// Rules between fields, and between the old and the new object, can be CEL expressions in a tag.
// The server evaluates them on each write and publishes them with the schema.
func ExampleOf_rules() {
	s := serve(registry.Of(registry.Definition[Window]{Group: "example.com", Version: "v1", Scope: registry.Cluster}))
	const windows = "/apis/example.com/v1/windows"
	window := func(low, high int) string {
		return fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Window", "metadata": {"name": "w"}, "spec": {"low": %d, "high": %d}}`, low, high)
	}
	fmt.Println(send(s, "POST", windows, window(3, 1)).String("message"))
	fmt.Println(send(s, "POST", windows, window(1, 3)).Kind())
	fmt.Println(send(s, "PUT", windows+"/w", window(1, 2)).String("message"))
	// Output:
	// Window.example.com "w" is invalid: spec.low: Invalid value: low is 2 above high
	// Window
	// Window.example.com "w" is invalid: spec.high: Invalid value: 2: may only grow
}

// Files that a code generator wrote can be read as kinds, or as objects to create in a server.
func ExampleFromCRDDir() {
	files := fstest.MapFS{"ships.yaml": {Data: []byte(`
apiVersion: apiextensions.orch.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Ship, plural: ships, singular: ship, listKind: ShipList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`)}}
	kinds, err := registry.FromCRDDir(files)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range kinds[0].Versions {
		fmt.Println(kinds[0].Kind, v.Name, v.Storage)
	}
	objects, err := registry.CRDFiles(files)
	if err != nil {
		fmt.Println(err)
		return
	}
	own := registry.FromDefinition(objects[0], nil)
	own.Features.ValidateName = meta.NameChecker(meta.CheckDNSLabel)
	fmt.Println(own, own.Err())
	// Output:
	// Ship v1 true
	// Ship v1beta1 false
	// kind Ship.example.com <nil>
}
