package openapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/resource"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/server/internal/openapi"
)

// Robot is a kind of the examples.
type Robot struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`

	Legs int32 `json:"legs" schema:"required,min=2" doc:"How many legs it has."`
}

func robots() *resource.State {
	robot, err := resource.Compile(registry.Of(registry.Definition[Robot]{Group: "example.com", Version: "v1"}), names.Kubernetes)
	if err != nil {
		fmt.Println(err)
	}
	var c resource.Catalog
	c.Put(robot)
	return c.Now()
}

func ExampleV3() {
	gv := meta.GroupVersion{Group: "example.com", Version: "v1"}
	robot := robots().Types()[0].Version("v1")
	d := openapi.V3(gv, []*resource.Version{robot}, openapi.Info{Title: "Robots", Version: "v1.0.0", Names: names.Kubernetes})
	var doc struct {
		OpenAPI string
		Paths   map[string]any
	}
	if err := json.Unmarshal(d.JSON().Bytes(), &doc); err != nil {
		fmt.Println(err)
	}
	fmt.Println(doc.OpenAPI)
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		fmt.Println(path)
	}
	// Output:
	// 3.0.0
	// /apis/example.com/v1/
	// /apis/example.com/v1/namespaces/{namespace}/robots
	// /apis/example.com/v1/namespaces/{namespace}/robots/{name}
	// /apis/example.com/v1/robots
}

func ExampleV2() {
	d := openapi.V2(robots().Types(), openapi.Info{Title: "Robots", Version: "v1.0.0", Names: names.Kubernetes})
	var doc struct {
		Definitions map[string]struct {
			Properties map[string]struct{ Type, Description string }
		}
	}
	if err := json.Unmarshal(d.JSON().Bytes(), &doc); err != nil {
		fmt.Println(err)
	}
	for name, def := range doc.Definitions {
		if legs, ok := def.Properties["legs"]; ok {
			fmt.Println(name, legs.Type, legs.Description)
		}
	}
	// Output: io.orch.controlplane.server.internal.openapi_test.Robot integer How many legs it has.
}

func ExampleCache() {
	var cache openapi.Cache
	state, info := robots(), openapi.Info{Title: "Robots", Version: "v1.0.0", Names: names.Kubernetes}
	gv := meta.GroupVersion{Group: "example.com", Version: "v1"}
	first := cache.V3(state, gv, info)
	fmt.Println(first == cache.V3(state, gv, info))
	fmt.Println(cache.V3(state, meta.GroupVersion{Version: "v9"}, info) == nil)
	fmt.Println(len(cache.Index(state, info).Hash()))
	// Output:
	// true
	// true
	// 64
}
