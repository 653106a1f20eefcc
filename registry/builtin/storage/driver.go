package storage

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CSIDriver says what a storage driver needs of the cluster. Its name is the one that the
// driver reports, at most 63 characters.
type CSIDriver struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what the driver needs.
	Spec CSIDriverSpec `json:"spec" protobuf:"2"`
}

// CSIDriverSpec is what a driver needs of those who call it.
type CSIDriverSpec struct {
	// AttachRequired makes pods wait until their volume is attached to the node: true unless
	// set. It cannot change.
	AttachRequired *bool `json:"attachRequired,omitempty" protobuf:"1" schema:"default=true"`
	// PodInfoOnMount tells the driver, when it mounts a volume, for which pod: false unless
	// set. With orch names it cannot change.
	PodInfoOnMount *bool `json:"podInfoOnMount,omitempty" protobuf:"2" schema:"default=false"`
	// VolumeLifecycleModes are the kinds of volumes that the driver has: Persistent, by a
	// claim (the default), and Ephemeral, written in the pod. They cannot change.
	VolumeLifecycleModes []string `json:"volumeLifecycleModes,omitempty" protobuf:"3" schema:"listType=set,repeats,unchecked,items.enum=Persistent|Ephemeral"`
	// StorageCapacity makes the scheduler look at the capacity that the driver reports, and
	// choose nodes that have room: false unless set.
	StorageCapacity *bool `json:"storageCapacity,omitempty" protobuf:"4" schema:"default=false"`
	// FSGroupPolicy says whose volumes get the group of the pod: None, all of them (File), or
	// those with a file system type that one node alone writes (ReadWriteOnceWithFSType, the
	// default). With orch names it cannot change.
	FSGroupPolicy *string `json:"fsGroupPolicy,omitempty" protobuf:"5" schema:"default=ReadWriteOnceWithFSType,enum=File|None|ReadWriteOnceWithFSType"`
	// TokenRequests are the tokens of the pod's service account that the driver gets when it
	// mounts a volume, of different audiences.
	TokenRequests []TokenRequest `json:"tokenRequests,omitempty" protobuf:"6" schema:"listType=atomic"`
	// RequiresRepublish has the driver mount volumes again from time to time, so that it can
	// bring their contents up to date: false unless set.
	RequiresRepublish *bool `json:"requiresRepublish,omitempty" protobuf:"7" schema:"default=false"`
	// SELinuxMount says that volumes may be mounted with an SELinux label: false unless set.
	SELinuxMount *bool `json:"seLinuxMount,omitempty" protobuf:"8" schema:"default=false"`
	// NodeAllocatableUpdatePeriodSeconds is how often a node asks anew how many volumes it may
	// have, in seconds, at least 10. Unset, it asks only when it registers the driver.
	NodeAllocatableUpdatePeriodSeconds *int64 `json:"nodeAllocatableUpdatePeriodSeconds,omitempty" protobuf:"9" schema:"min=10,reason.min=must be greater than or equal to 10 seconds"`
	// ServiceAccountTokenInSecrets passes the tokens among the secrets of a call, not among
	// the attributes of the volume, which drivers may log. It needs tokenRequests.
	ServiceAccountTokenInSecrets *bool `json:"serviceAccountTokenInSecrets,omitempty" protobuf:"10"`
	// PreventPodSchedulingIfMissing keeps pods with volumes of the driver off nodes on which it
	// does not run: false unless set. Then nodes without the driver count as having no limit.
	PreventPodSchedulingIfMissing *bool `json:"preventPodSchedulingIfMissing,omitempty" protobuf:"11" schema:"default=false"`
}

// TokenRequest is a token that a driver gets.
type TokenRequest struct {
	// Audience that the token is for; empty is the API server. At most one request is for each.
	Audience string `json:"audience" protobuf:"1"`
	// ExpirationSeconds is how long the token lasts, in seconds, at least 600.
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty" protobuf:"2" schema:"min=600,max=4294967296,reason.min=may not specify a duration less than 10 minutes,reason.max=may not specify a duration larger than 2^32 seconds"`
}

func drivers() *registry.Kind {
	return registry.Of(registry.Definition[CSIDriver]{
		Group: names.GroupStorage, Version: "v1", Scope: registry.Cluster,
		Lifetime: registry.Lifetime{Introduced: "1.18"},
		Versions: []registry.VersionOf[CSIDriver]{
			older.Same[CSIDriver]("v1beta1", "1.14", "1.19", "1.22", names.GroupStorage+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "AttachRequired", Type: "boolean", Doc: "Whether pods wait for volumes to be attached.", JSONPath: ".spec.attachRequired"},
			{Name: "PodInfoOnMount", Type: "boolean", Doc: "Whether the driver learns of the pod.", JSONPath: ".spec.podInfoOnMount"},
			{Name: "StorageCapacity", Type: "boolean", Doc: "Whether the scheduler looks at the capacity.", JSONPath: ".spec.storageCapacity"},
			{Name: "TokenRequests", Type: "string", Doc: "The audiences of the tokens that the driver gets.", Cell: func(o *meta.Object) any {
				var list []string
				for _, r := range o.Objects("spec", "tokenRequests") {
					list = append(list, r.String("audience"))
				}
				if list == nil {
					return "<unset>"
				}
				return strings.Join(list, ",")
			}},
			{Name: "RequiresRepublish", Type: "boolean", Doc: "Whether volumes are mounted again from time to time.", JSONPath: ".spec.requiresRepublish"},
			{Name: "Modes", Type: "string", Doc: "The kinds of volumes that the driver has.", Cell: func(o *meta.Object) any {
				return strings.Join(o.Strings("spec", "volumeLifecycleModes"), ",")
			}},
			registry.Age(),
		},
		ValidateName: checkDriverName,
		Default: func(w *registry.Change[CSIDriver]) {
			if s := &w.New.Spec; len(s.VolumeLifecycleModes) == 0 {
				s.VolumeLifecycleModes = []string{"Persistent"}
			}
		},
		Validate: validateDriver,
		Warn: func(w *registry.Change[CSIDriver]) []string {
			s := &w.New.Spec
			if s.ServiceAccountTokenInSecrets != nil || len(s.TokenRequests) == 0 || w.Old != nil && check.Same(s.TokenRequests, w.Old.Spec.TokenRequests) {
				return nil
			}
			return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"}
		},
		Reference: &compat.Reference{AnyNamespace: true, LateGeneration: true, PutWithVersion: true},
	})
}

// checkDriverName bounds the name of a driver, which volumes carry.
func checkDriverName(name string, prefix bool) []string {
	faults := meta.NameChecker(meta.CheckDNSSubdomain)(name, prefix)
	if len(name) > 63 && !prefix {
		faults = append(faults, "must be no more than 63 characters")
	}
	return faults
}

func validateDriver(w *registry.Change[CSIDriver]) {
	s, at := &w.New.Spec, check.At("spec")
	modes := at.Field("volumeLifecycleModes")
	for _, m := range s.VolumeLifecycleModes {
		w.OneOf(modes, m, schema.EnumOf[CSIDriverSpec]("VolumeLifecycleModes")...)
	}
	seen := map[string]bool{}
	for i, r := range s.TokenRequests {
		if seen[r.Audience] {
			w.Duplicate(at.Field("tokenRequests").Index(i).Field("audience"), r.Audience)
		}
		seen[r.Audience] = true
	}
	if in := s.ServiceAccountTokenInSecrets; in != nil && len(s.TokenRequests) == 0 {
		w.Invalid(at.Field("serviceAccountTokenInSecrets"), *in, "serviceAccountTokenInSecrets is set but no tokenRequests are specified")
	}
	if w.Old != nil {
		w.Unchanged(at.Field("attachedRequired"), s.AttachRequired, w.Old.Spec.AttachRequired) // the word that clients know
		if !w.Rules.Has(compat.DriverChanges) {
			w.Unchanged(at.Field("podInfoOnMount"), s.PodInfoOnMount, w.Old.Spec.PodInfoOnMount)
			w.Unchanged(at.Field("fsGroupPolicy"), s.FSGroupPolicy, w.Old.Spec.FSGroupPolicy)
		}
		w.Unchanged(modes, s.VolumeLifecycleModes, w.Old.Spec.VolumeLifecycleModes)
	}
}
