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

// Recipe is a recipe of the kitchen.
type Recipe struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            struct {
		Ingredients []string `json:"ingredients" schema:"required,minItems=1,maxItems=50,listType=set" doc:"the ingredients, in lower case"`
		Minutes     int      `json:"minutes,omitempty" schema:"default=30,min=1" doc:"the time that it takes"`
	} `json:"spec"`
	Status struct {
		Cooked int `json:"cooked,omitempty" doc:"the number of times it was cooked"`
	} `json:"status,omitzero"`
}

// Allergen is an ingredient that no recipe may contain.
type Allergen struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Names           []string `json:"names" schema:"required,minItems=1,maxItems=50" doc:"the names of the ingredient in recipes"`
}

// kinds returns the kinds of the server: their names, columns, and the rules that tags cannot express.
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

// allergens rejects recipes with an allergen. A rule between objects is an admission plugin.
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
