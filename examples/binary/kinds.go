package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

const group = "kitchen.example.com"

// Recipe is what cooks write down.
type Recipe struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Ingredients []string `json:"ingredients" schema:"required,minItems=1,maxItems=50,listType=set" doc:"what goes in, in lower case"`
		Minutes     int      `json:"minutes,omitempty" schema:"default=30,min=1" doc:"how long it takes"`
	} `json:"spec"`
	Status struct {
		Cooked int `json:"cooked,omitempty" doc:"how often it was made"`
	} `json:"status,omitzero"`
}

// Allergen is something that no recipe may hold.
type Allergen struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Names           []string `json:"names" schema:"required,minItems=1,maxItems=50" doc:"what recipes call it"`
}

// kinds are what the server serves: names, columns, and what tags cannot say.
func kinds() []*registry.Kind {
	return []*registry.Kind{
		registry.Of(registry.Definition[Recipe]{
			Group: group, Version: "v1", ShortNames: []string{"rcp"}, Status: true,
			Columns: []registry.Column{
				{Name: "Minutes", Type: "integer", JSONPath: ".spec.minutes"},
				{Name: "Cooked", Type: "integer", JSONPath: ".status.cooked"},
				registry.AgeColumn(),
			},
			Validate: func(w *registry.Change[Recipe]) {
				for i, name := range w.New.Spec.Ingredients {
					if name != strings.ToLower(name) {
						w.Invalid(check.At("spec", "ingredients").Index(i), name, "must be in lower case")
					}
				}
			},
		}),
		registry.Of(registry.Definition[Allergen]{Group: group, Version: "v1", Scope: registry.Cluster}),
	}
}

// allergens refuses recipes with an allergen: a rule between objects, which is admission's.
func allergens() admission.Plugin {
	return admission.Plugin{
		Name: "Allergens",
		Rules: []admission.Rule{{
			Operations: []admission.Operation{admission.Create, admission.Update},
			Groups:     []string{group}, Resources: []string{"recipes"},
		}},
		Validate: func(ctx context.Context, r *admission.Request) error {
			known, err := r.Server.List(ctx, group, "allergens", "")
			if err != nil {
				return err
			}
			for _, allergen := range known {
				for _, name := range allergen.Strings("names") {
					if slices.Contains(r.Object.Strings("spec", "ingredients"), name) {
						return fmt.Errorf("%s is an allergen (%s)", name, allergen.Name())
					}
				}
			}
			return nil
		},
	}
}
