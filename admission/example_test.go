package admission_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// A plugin sets a default room and refuses lamps in the attic that are lit. A server runs it as one of
// Builder.Admission; this example uses a chain.
func ExamplePlugin() {
	rooms := admission.Plugin{
		Name: "Rooms",
		Rules: []admission.Rule{{
			Operations: []admission.Operation{admission.Create, admission.Update},
			Groups:     []string{"example.com"}, Resources: []string{"lamps"},
		}},
		Mutate: func(_ context.Context, r *admission.Request) error {
			if r.Object.String("spec", "room") == "" {
				r.Object.Set("hall", "spec", "room")
				r.Warn("spec.room was set to hall")
			}
			return nil
		},
		Validate: func(_ context.Context, r *admission.Request) error {
			if r.Object.String("spec", "room") == "attic" {
				return errors.New("no lamps in the attic") // 403 with this text
			}
			return nil
		},
	}
	chain, err := admission.New([]admission.Plugin{rooms}, admission.Options{}, admission.PluginContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, room := range []string{"", "attic"} {
		lamp := meta.NewObject(map[string]any{"spec": map[string]any{"room": room}})
		r := &admission.Request{
			Operation: admission.Create, Resource: meta.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"},
			Object: lamp, Warn: func(text string) { fmt.Println("warning:", text) },
		}
		err := errors.Join(chain.Mutate(context.Background(), r), chain.Validate(context.Background(), r))
		fmt.Println(lamp.String("spec", "room"), err)
	}
	// Output:
	// warning: spec.room was set to hall
	// hall <nil>
	// attic lamps.example.com is forbidden: no lamps in the attic
}

// A plugin with a configuration: the default room.
func ExamplePlugin_setup() {
	type defaults struct{ Room string }
	rooms := admission.Plugin{
		Name: "DefaultRoom", Default: admission.Off, Config: defaults{Room: "hall"},
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			config := env.Config.(defaults) // New has checked the type
			p.Mutate = func(_ context.Context, r *admission.Request) error {
				r.Object.Set(config.Room, "spec", "room")
				return nil
			}
			return nil
		},
	}
	chain, err := admission.New([]admission.Plugin{rooms}, admission.Options{
		Enable: []string{"DefaultRoom"}, Config: map[string]any{"DefaultRoom": defaults{Room: "kitchen"}},
	}, admission.PluginContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	lamp := meta.NewObject(nil)
	fmt.Println(chain.Mutate(context.Background(), &admission.Request{Operation: admission.Create, Object: lamp}), lamp.String("spec", "room"))
	// Output: <nil> kitchen
}

// A file configures the plugins of a table by name.
func ExampleLoadConfig() {
	dir, _ := os.MkdirTemp("", "admission")
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "admission.yaml")
	_ = os.WriteFile(path, []byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: Rooms
  configuration: {most: 3}
`), 0o600)
	type rooms struct {
		Most int `json:"most"`
	}
	config, _, err := admission.LoadConfig(path, []admission.Plugin{{Name: "Rooms", Config: rooms{}}}, names.Kubernetes)
	fmt.Println(config["Rooms"].(rooms).Most, err) // for Options.Config
	// Output: 3 <nil>
}
