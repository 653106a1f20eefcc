package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

type Lamp struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Lit bool `json:"lit"`
	} `json:"spec"`
	Status struct {
		Burnt bool `json:"burnt,omitempty"`
	} `json:"status,omitzero"`
}

var lamp = registry.Definition[Lamp]{
	Group: "example.com", Version: "v1", Scope: registry.Cluster, Status: true, ShortNames: []string{"lp"},
}

func ExampleCatalog() {
	var served registry.Catalog
	t, err := registry.Of(lamp).Compile(names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	before := served.Now()
	served.Put(t)
	fmt.Println(len(before.Types()), len(served.Now().Types()))
	v := served.Now().Version(meta.Resource{Group: "example.com", Version: "v1", Resource: "lamps"})
	fmt.Println(v.Kind, v.Singular, v.Verbs())
	// Output:
	// 0 1
	// Lamp lamp [create delete deletecollection get list patch update watch]
}

// LampV1alpha1 is what a lamp was before: a switch, and no status.
type LampV1alpha1 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Switched        string `json:"switched" schema:"default=off,enum=on|off"`
}

// Clients of an older version see its form of every object and lose nothing of what
// that cannot say.
func ExampleSpoke() {
	d := lamp
	d.Versions = []registry.VersionOf[Lamp]{registry.Spoke[LampV1alpha1, Lamp]{
		Version: "v1alpha1",
		ToHub: func(in *LampV1alpha1, out *Lamp) error {
			out.Spec.Lit = in.Switched == "on"
			return nil
		},
		FromHub: func(in *Lamp, out *LampV1alpha1) error {
			out.Switched = map[bool]string{true: "on", false: "off"}[in.Spec.Lit]
			return nil
		},
		Lacks: []string{"status"},
	}}
	t, err := registry.Of(d).Compile(names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, old := context.Background(), t.Version("v1alpha1")
	desk := meta.NewObject(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": map[string]any{"name": "desk"},
		"spec": map[string]any{"lit": true}, "status": map[string]any{"burnt": true},
	})
	read, err := old.Convert(ctx, desk)
	fmt.Println(read.Tree()["switched"], err)
	written := read.Clone()
	written.Set("off", "switched")
	desk, err = t.Hub.Merge(ctx, desk, read, written)
	fmt.Println(desk.Map("spec"), desk.Map("status"), err)
	// Output:
	// on <nil>
	// map[lit:false] map[burnt:true] <nil>
}

// Every hook of a kind sees a write in the same form.
func ExampleChange() {
	d := lamp
	d.Default = func(w *registry.Change[Lamp]) {
		if w.Old == nil {
			w.New.Spec.Lit = true
		}
	}
	d.Validate = func(w *registry.Change[Lamp]) {
		if w.Subresource == "" && w.New.Spec.Lit && w.New.Status.Burnt {
			w.Forbidden(check.At("spec", "lit"), "it is burnt")
		}
	}
	t, err := registry.Of(d).Compile(names.Orch)
	if err != nil {
		fmt.Println(err)
		return
	}
	desk := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "desk"}, "spec": map[string]any{"lit": false}})
	t.Default(t.NewChange(context.Background(), desk, nil, ""))
	fmt.Println(desk.Map("spec"))
	desk.Set(true, "status", "burnt")
	for _, c := range t.Storage.ValidateWrite(t.NewChange(context.Background(), desk, nil, "")) {
		fmt.Println(c.Field, c.Message)
	}
	// Output:
	// map[lit:true]
	// spec.lit Forbidden: it is burnt
}

// Lamps that share a few sockets.
func ExamplePool() {
	sockets := []string{"left", "right"}
	pool := &registry.Pool{
		Held: func(o *meta.Object) []string { return []string{o.String("spec", "socket")} },
		Allot: func(o, _ *meta.Object, free func(string) bool) ([]meta.Cause, error) {
			i := slices.IndexFunc(sockets, free)
			if i < 0 {
				return nil, errors.New("no socket is free")
			}
			o.Set(sockets[i], "spec", "socket")
			return nil, nil
		},
	}
	lamp := meta.NewObject(nil)
	_, err := pool.Allot(lamp, nil, func(socket string) bool { return socket != "left" })
	fmt.Println(pool.Held(lamp), err)
	// Output: [right] <nil>
}
