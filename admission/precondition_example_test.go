package admission_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// A plugin that allows lamps in rooms that are not locked: if the room is locked or removed after the plugin has
// read it and before the lamp is stored, the plugin runs again.
func ExamplePrecondition() {
	rooms := meta.GroupResource{Group: "example.com", Resource: "rooms"}
	hall := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "hall", "resourceVersion": "17"}}) // as returned by Client.Get
	open := admission.Plugin{Name: "OpenRooms", Validate: func(_ context.Context, r *admission.Request) error {
		if hall.Bool("spec", "locked") {
			return errors.New("the room is locked")
		}
		open := func(now *meta.Object) bool { return !now.Bool("spec", "locked") }
		r.Preconditions = append(r.Preconditions, admission.Precondition{Resource: rooms, Object: hall, Holds: open})
		return nil
	}}
	chain, err := admission.New([]admission.Plugin{open}, admission.Options{}, admission.PluginContext{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &admission.Request{Operation: admission.Create, Resource: meta.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "lamps"}, Object: meta.NewObject(nil)}
	if err := chain.Validate(context.Background(), r); err != nil {
		fmt.Println(err)
	}
	for _, b := range r.Preconditions { // the server compares them when it commits the lamp
		fmt.Println(b.Resource, b.Object.Name(), "is of version", b.Object.ResourceVersion())
	}
	// Output: rooms.example.com hall is of version 17
}
