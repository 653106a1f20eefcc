package main

import (
	"context"
	"fmt"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry"
)

// Jar is preserved food on the shelf of its namespace.
type Jar struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Spec            JarSpec   `json:"spec"`
	Status          JarStatus `json:"status"`
}

// JarSpec is the size of a jar, which kubectl scale can change.
type JarSpec struct {
	Liters int64 `json:"liters" schema:"required,min=1"`
}

// JarStatus is the amount in a jar.
type JarStatus struct {
	Liters int64 `json:"liters,omitempty"`
}

// Shelf limits the jars of the namespace with the same name.
type Shelf struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
	Liters          int64 `json:"liters" schema:"required,min=0" doc:"total capacity of the jars in the namespace, in liters"`
}

func quotaKinds() []*registry.Kind {
	return []*registry.Kind{
		registry.Of(registry.Definition[Jar]{
			Group: group, Version: "v1", Status: true, Scale: &registry.Scale{SpecReplicas: ".spec.liters", StatusReplicas: ".status.liters"},
		}),
		registry.Of(registry.Definition[Shelf]{Group: group, Version: "v1", Plural: "shelves", Scope: registry.Cluster}),
	}
}

// shelfSpace is an exact quota: the jars of a namespace never hold more than its shelf, however many
// servers of one store create jars, resize them and change shelves at the same time. The rule includes
// subresources, because the subresource scale changes spec.liters. It excludes deletions, which only
// lower the sum.
func shelfSpace() admission.Plugin {
	return admission.Plugin{
		Name: "ShelfSpace",
		Rules: []admission.Rule{{
			Operations: []admission.Operation{admission.Create, admission.Update},
			Groups:     []string{group}, Resources: []string{"jars", "jars/*", "shelves"},
		}},
		Validate: func(ctx context.Context, r *admission.Request) error {
			namespace := r.Namespace
			if r.Resource.Resource == "shelves" {
				namespace = r.Name
			}
			if err := r.Serialize(ctx, meta.Key{Namespace: namespace, Name: "jars"}); err != nil {
				return err
			}
			used, limit, err := space(ctx, r, namespace)
			if err == nil && used > limit {
				err = fmt.Errorf("the jars of %s would hold %d liters, the shelf has room for %d", namespace, used, limit)
			}
			return err
		},
	}
}

// space returns how much the jars of a namespace would hold after the request, and the limit.
func space(ctx context.Context, r *admission.Request, namespace string) (used, limit int64, err error) {
	shelf, err := r.Server.Find(ctx, group, "shelves", meta.Key{Name: namespace})
	if err != nil {
		return 0, 0, err
	}
	jars, err := r.Server.List(ctx, group, "jars", namespace)
	for _, jar := range jars {
		if r.Resource.Resource != "jars" || jar.Name() != r.Name { // otherwise the request replaces it
			used += jar.Int("spec", "liters")
		}
	}
	if r.Resource.Resource == "shelves" {
		shelf = r.Object
	} else {
		used += r.Object.Int("spec", "liters") // the jar, also if the request is for a subresource
	}
	if shelf == nil {
		return used, 0, err
	}
	return used, shelf.Int("liters"), err
}
