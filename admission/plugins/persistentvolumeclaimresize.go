package plugins

import (
	"context"
	"errors"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
)

// persistentVolumeClaimResize allows a claim to grow if it is bound and its class has allowVolumeExpansion.
func persistentVolumeClaimResize() admission.Plugin {
	return admission.Plugin{
		Name:  "PersistentVolumeClaimResize",
		Rules: on("", []string{"persistentvolumeclaims"}, admission.Update),
		Validate: func(ctx context.Context, r *admission.Request) error {
			size := func(claim *meta.Object) meta.Quantity {
				q, _ := meta.ParseQuantity(claim.String("spec", "resources", "requests", "storage"))
				return q
			}
			if size(r.Object).Cmp(size(r.Old)) <= 0 {
				return nil
			}
			if r.Old.String("status", "phase") != "Bound" {
				return refusal([]string{"Only bound persistent volume claims can be expanded"})
			}
			name := r.Object.String("spec", "storageClassName")
			if name == "" {
				name = r.Object.Annotation(r.Server.Wire(wellknown.StorageClassBeta))
			}
			class, err := r.Server.Find(ctx, wellknown.GroupStorage, "storageclasses", meta.Key{Name: name})
			if err == nil && !class.Bool("allowVolumeExpansion") {
				err = errors.New("only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize")
			}
			return err
		},
	}
}
