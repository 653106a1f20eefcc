package apps

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// DeploymentRollback requests the rollback of a Deployment. It is the body of the subresource rollback
// of the versions v1beta1.
type DeploymentRollback struct {
	meta.TypeMeta `json:",inline"`

	// Name of the Deployment.
	Name string `json:"name" protobuf:"1"`

	// UpdatedAnnotations are added to the annotations of the Deployment.
	UpdatedAnnotations map[string]string `json:"updatedAnnotations,omitempty" protobuf:"2"`

	// RollbackTo is the target revision.
	RollbackTo RollbackConfig `json:"rollbackTo" protobuf:"3"`
}

// rollback is the name of the subresource.
const rollback = "rollback"

// rollbackSubresource returns the subresource rollback. It records the request in annotations of the
// Deployment; the deployment controller performs the rollback.
func rollbackSubresource() registry.Subresource {
	gone := registry.Lifetime{Removed: "1.16"}
	return registry.Subresource{Name: rollback, Act: rollBack, Merge: func(obj, in *meta.Object) { obj.CopyField(in, "metadata", "annotations") },
		Body: registry.Of(registry.Definition[DeploymentRollback]{
			Group: wellknown.GroupApps, Version: "v1beta1", Lifetime: gone, Validate: validateRollback,
			Versions: []registry.VersionOf[DeploymentRollback]{
				registry.Spoke[DeploymentRollback, DeploymentRollback]{Group: wellknown.GroupFormer, Version: "v1beta1", Lifetime: gone},
			},
		})}
}

func validateRollback(w *registry.Change[DeploymentRollback]) {
	if w.New.Name == "" {
		w.Required(check.At("name"), "name is required")
	}
	for _, key := range slices.Sorted(maps.Keys(w.New.UpdatedAnnotations)) {
		w.Format(check.At("updatedAnnotations"), key, meta.CheckQualifiedName(strings.ToLower(key)))
	}
}

func rollBack(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	if call.Object.String("name") != call.Key.Name {
		return nil, meta.BadRequest("name in URL does not match name in %s object", call.Object.Kind())
	}
	deployments := meta.GroupResource{Group: call.Names.Group(wellknown.GroupApps), Resource: "deployments"}
	if call.DryRun {
		_, err := call.Client.Get(ctx, deployments, call.Key)
		return nil, err
	}
	_, err := call.Client.Update(ctx, deployments, call.Key, rollback, func(d *meta.Object) error {
		for key, value := range call.Object.Map("updatedAnnotations") {
			d.Set(value, "metadata", "annotations", key)
		}
		d.Set(strconv.FormatInt(call.Object.Int("rollbackTo", "revision"), 10), "metadata", "annotations", call.Names.Wire(wellknown.RollbackTo))
		return nil
	})
	return nil, err
}
