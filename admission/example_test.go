package admission_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/registry/meta"
)

// A plugin that gives every lamp a room and lets nobody light one in the attic.
// A server runs it as one of Builder.Admission; here a chain of one does.
func ExamplePlugin() {
	rooms := admission.Plugin{
		Name:  "rooms",
		Match: func(r meta.Resource, subresource string) bool { return r.Resource == "lamps" && subresource == "" },
		Mutate: func(_ context.Context, r *admission.Request) error {
			if r.Object != nil && r.Object.String("spec", "room") == "" {
				r.Object.Set("hall", "spec", "room")
				r.Warn("spec.room was set to hall")
			}
			return nil
		},
		Validate: func(_ context.Context, r *admission.Request) error {
			if r.Object != nil && r.Object.String("spec", "room") == "attic" {
				return errors.New("no lamps in the attic") // 403 with this text
			}
			return nil
		},
	}
	chain := admission.Chain{rooms}
	for _, room := range []string{"", "attic"} {
		lamp := meta.NewObject(map[string]any{"spec": map[string]any{"room": room}})
		r := &admission.Request{
			Operation: admission.Create, Resource: meta.Resource{Group: "example.com", Version: "v1", Resource: "lamps"},
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
