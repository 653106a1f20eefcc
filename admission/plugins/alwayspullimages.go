package plugins

import (
	"context"
	"fmt"
	"slices"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

// alwaysPullImages makes pods pull their images at each start, so that a pod cannot run an image that is on
// the node only because of another pod's pull secrets. Updates cannot undo that. Ephemeral containers keep
// their own pull policy, because the rules do not select pods/ephemeralcontainers.
func alwaysPullImages() admission.Plugin {
	return admission.Plugin{
		Name: "AlwaysPullImages", Default: admission.Off,
		Rules: on("", []string{"pods"}, admission.Create, admission.Update),
		Mutate: func(_ context.Context, r *admission.Request) error {
			for _, p := range newImageSources(r) {
				p.of.Set("Always", p.field)
			}
			return nil
		},
		Validate: func(_ context.Context, r *admission.Request) error {
			for _, p := range newImageSources(r) {
				if p.of.String(p.field) != "Always" {
					return fmt.Errorf("image %s must have the pull policy Always", p.image)
				}
			}
			return nil
		},
	}
}

// imageSource is a container or an image volume of a pod, with the name of its pull policy field.
type imageSource struct {
	of                 *meta.Object
	field, name, image string
}

// newImageSources returns the containers and image volumes that the request adds or gives another image.
func newImageSources(r *admission.Request) []imageSource {
	known := map[[3]string]bool{}
	for _, p := range imageSources(r.Old) {
		known[[3]string{p.field, p.name, p.image}] = true
	}
	return slices.DeleteFunc(imageSources(r.Object), func(p imageSource) bool { return known[[3]string{p.field, p.name, p.image}] })
}

func imageSources(pod *meta.Object) (list []imageSource) {
	spec := meta.NewObject(pod.Map("spec"))
	for _, c := range podspec.Of(spec) {
		list = append(list, imageSource{c, "imagePullPolicy", c.String("name"), c.String("image")})
	}
	for _, v := range spec.Objects("volumes") {
		if image := v.Map("image"); image != nil {
			list = append(list, imageSource{meta.NewObject(image), "pullPolicy", v.String("name"), v.String("image", "reference")})
		}
	}
	return list
}
