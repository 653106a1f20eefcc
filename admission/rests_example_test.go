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
func ExampleBase() {
	rooms := meta.GroupResource{Group: "example.com", Resource: "rooms"}
	hall := meta.NewObject(map[string]any{"metadata": map[string]any{"name": "hall", "resourceVersion": "17"}}) // as env.Client.Get has it
	open := admission.Plugin{Name: "OpenRooms", Validate: func(_ context.Context, r *admission.Request) error {
		if hall.Bool("spec", "locked") {
			return errors.New("the room is locked")
		}
		open := func(now *meta.Object) bool { return !now.Bool("spec", "locked") }
		r.Bases = append(r.Bases, admission.Base{Resource: rooms, Object: hall, Holds: open})
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
	for _, b := range r.Bases { // the server commits the lamp if this is so
		fmt.Println(b.Resource, b.Object.Name(), "is of version", b.Object.ResourceVersion())
	}
	// Output: rooms.example.com hall is of version 17
}
