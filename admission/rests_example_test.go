package admission_test

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
)

// A plugin that lets lamps only into rooms that stay: one that is locked, or demolished, after
// the plugin looked and before the lamp is stored, has the plugin asked anew.
func ExampleRequest_RestsOn() {
	rooms := meta.GroupResource{Group: "example.com", Resource: "rooms"}
	hall := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "hall", "resourceVersion": "17"}}) // as env.Client.Get has it
	open := admission.Plugin{Name: "OpenRooms", Validate: func(_ context.Context, r *admission.Request) error {
		if hall.Bool("spec", "locked") {
			return errors.New("the room is locked")
		}
		r.RestsOn(rooms, hall)
		return nil
	}}
	chain, err := admission.New([]admission.Plugin{open}, admission.Options{}, admission.Env{})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &admission.Request{Operation: admission.Create, Resource: meta.Resource{Group: "example.com", Version: "v1", Resource: "lamps"}, Object: meta.NewObject(nil)}
	if err := chain.Validate(context.Background(), r); err != nil {
		fmt.Println(err)
	}
	for resource, object := range r.Bases() { // the server commits the lamp if this is so
		fmt.Println(resource, object.Name(), "is of version", object.ResourceVersion())
	}
	// Output: rooms.example.com hall is of version 17
}
