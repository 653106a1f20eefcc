package plugins

import (
	"context"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// alwaysPullImages makes pods pull their images at each start, so that no pod runs an
// image that another one's secrets brought to the node. Nobody may undo that later. Who may
// add containers to a pod that runs says himself when their images are pulled.
func alwaysPullImages() admission.Plugin {
	return admission.Plugin{
		Name: "AlwaysPullImages", Default: admission.Off,
		Rules: on("", []string{"pods"}, admission.Create, admission.Update),
		Mutate: func(_ context.Context, r *admission.Request) error {
			for _, p := range pullers(r) {
				p.of.Set("Always", p.field)
			}
			return nil
		},
		Validate: func(_ context.Context, r *admission.Request) error {
			for _, p := range pullers(r) {
				if p.of.String(p.field) != "Always" {
					return fmt.Errorf("image %s is not pulled always", p.image)
				}
			}
			return nil
		},
	}
}

// puller is a part of a pod that brings an image to the node, and its field that says
// when.
type puller struct {
	of                 *meta.Object
	field, name, image string
}

// pullers returns those of a pod that are new or have another image than before.
func pullers(r *admission.Request) []puller {
	known := map[[3]string]bool{}
	for _, p := range pullersOf(r.Old) {
		known[[3]string{p.field, p.name, p.image}] = true
	}
	return slices.DeleteFunc(pullersOf(r.Object), func(p puller) bool { return known[[3]string{p.field, p.name, p.image}] })
}

func pullersOf(pod *meta.Object) (list []puller) {
	spec := meta.NewObject(pod.Map("spec"))
	for _, c := range podspec.Of(spec) {
		list = append(list, puller{c, "imagePullPolicy", c.String("name"), c.String("image")})
	}
	for _, v := range spec.Objects("volumes") {
		if image := v.Map("image"); image != nil {
			list = append(list, puller{meta.NewObject(image), "pullPolicy", v.String("name"), v.String("image", "reference")})
		}
	}
	return list
}
