package core

import (
	"maps"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// ServiceAccount is an identity for programs, as pods run under it.
type ServiceAccount struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Secrets names the secrets that pods of this account may use.
	Secrets []ObjectReference `json:"secrets,omitempty" protobuf:"2" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats"`

	// ImagePullSecrets names the secrets that pods of this account pull images
	// with, unless they name their own.
	ImagePullSecrets []LocalObjectReference `json:"imagePullSecrets,omitempty" protobuf:"3" schema:"listType=atomic"`

	// AutomountServiceAccountToken says whether pods of this account get a
	// token mounted; a pod can say otherwise. Unset: they do.
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken,omitempty" protobuf:"4"`
}

func serviceAccounts() *registry.Kind {
	return registry.Of(registry.Definition[ServiceAccount]{
		Version:    version,
		ShortNames: []string{"sa"},
		Columns: []registry.Column{
			registry.Age(),
		},
		Behavior: registry.Behavior{
			Prepare: onlyNames,
			Warn:    warnOfMountable,
		},
		Reference: &compat.Reference{NoGeneration: true},
	})
}

// warnOfMountable warns who has an account say which secrets its pods may mount.
func warnOfMountable(w *registry.Change[meta.Object]) []string {
	key := w.Names.Wire(names.MountableSecrets)
	_, said := w.New.Annotations()[key]
	if w.Old != nil {
		_, before := w.Old.Annotations()[key]
		said = said && !before
	}
	if !said {
		return nil
	}
	return []string{check.At("metadata", "annotations").Key(key).String() + ": deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"}
}

// onlyNames leaves of the secrets of an account no more than their names: they
// are in its namespace.
func onlyNames(w *registry.Change[meta.Object]) {
	for _, v := range w.New.List("secrets") {
		if m, ok := v.(map[string]any); ok {
			maps.DeleteFunc(m, func(field string, _ any) bool { return field != "name" })
		}
	}
}
