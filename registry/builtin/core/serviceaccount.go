package core

import (
	"maps"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// ServiceAccount is an identity for programs, such as those in pods.
type ServiceAccount struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Secrets lists Secrets that pods of the account may mount.
	Secrets []ObjectReference `json:"secrets,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// ImagePullSecrets lists Secrets with credentials for pulling images, for pods of the account
	// without their own.
	ImagePullSecrets []LocalObjectReference `json:"imagePullSecrets,omitempty" protobuf:"3" schema:"listType=atomic"`

	// AutomountServiceAccountToken decides whether tokens are mounted into pods of the account; default
	// true. A pod can override it.
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken,omitempty" protobuf:"4"`
}

func serviceAccounts() *registry.Kind {
	return registry.Of(registry.Definition[ServiceAccount]{
		Version:    version,
		ShortNames: []string{"sa"},
		Columns: []registry.Column{
			registry.AgeColumn(),
		},
		Behavior: registry.Behavior{
			Prepare: keepSecretNames,
			Warn:    warnOfMountable,
		},
		Reference: &compat.Reference{NoGeneration: true},
	})
}

// warnOfMountable returns a warning if the write adds the deprecated annotation that restricts
// mountable Secrets.
func warnOfMountable(w *registry.Change[meta.Object]) []string {
	key := w.Names.Wire(wellknown.MountableSecrets)
	_, added := w.New.Annotations()[key]
	if w.Old != nil {
		_, before := w.Old.Annotations()[key]
		added = added && !before
	}
	if !added {
		return nil
	}
	return []string{check.At("metadata", "annotations").Key(key).String() + ": deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}

// keepSecretNames removes all fields but the names from references to Secrets, which are in the namespace of
// the account.
func keepSecretNames(w *registry.Change[meta.Object]) {
	for _, v := range w.New.List("secrets") {
		if m, ok := v.(map[string]any); ok {
			maps.DeleteFunc(m, func(field string, _ any) bool { return field != "name" })
		}
	}
}
