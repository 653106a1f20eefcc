package storage

import (
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// CSIDriver describes the requirements of a CSI driver. Its name must be the name that the driver
// reports, of at most 63 characters.
type CSIDriver struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec lists the requirements.
	Spec CSIDriverSpec `json:"spec" protobuf:"2"`
}

// CSIDriverSpec lists the requirements of a CSI driver.
type CSIDriverSpec struct {
	// AttachRequired makes pods wait until the volume is attached through a VolumeAttachment; default
	// true. Immutable.
	AttachRequired *bool `json:"attachRequired,omitempty" protobuf:"1" schema:"default=true"`
	// PodInfoOnMount passes information about the pod to the driver when a volume is mounted; default
	// false. Immutable with orch names.
	PodInfoOnMount *bool `json:"podInfoOnMount,omitempty" protobuf:"2" schema:"default=false"`
	// VolumeLifecycleModes are the supported kinds of volumes: Persistent (default) and Ephemeral, for
	// inline volumes of pods. Immutable.
	VolumeLifecycleModes []string `json:"volumeLifecycleModes,omitempty" protobuf:"3" schema:"listType=set,repeats,unchecked,items.enum=Persistent|Ephemeral"`
	// StorageCapacity makes the scheduler consider the CSIStorageCapacity objects of the driver;
	// default false.
	StorageCapacity *bool `json:"storageCapacity,omitempty" protobuf:"4" schema:"default=false"`
	// FSGroupPolicy decides whether volumes get the fsGroup of the pod: None, File (always), or
	// ReadWriteOnceWithFSType (default), for volumes with a file system type and the access mode
	// ReadWriteOnce. Immutable with orch names.
	FSGroupPolicy *string `json:"fsGroupPolicy,omitempty" protobuf:"5" schema:"default=ReadWriteOnceWithFSType,enum=File|None|ReadWriteOnceWithFSType"`
	// TokenRequests are tokens of the pod's service account that are passed to the driver when a volume
	// is mounted. The audiences must be unique.
	TokenRequests []TokenRequest `json:"tokenRequests,omitempty" protobuf:"6" schema:"listType=atomic"`
	// RequiresRepublish makes the kubelet mount volumes periodically again, so that the driver can
	// refresh their contents; default false.
	RequiresRepublish *bool `json:"requiresRepublish,omitempty" protobuf:"7" schema:"default=false"`
	// SELinuxMount declares that the driver supports SELinux mount options; default false.
	SELinuxMount *bool `json:"seLinuxMount,omitempty" protobuf:"8" schema:"default=false"`
	// NodeAllocatableUpdatePeriodSeconds is the period in seconds, at least 10, after which a node
	// updates its volume limit. Unset means only when the driver is registered.
	NodeAllocatableUpdatePeriodSeconds *int64 `json:"nodeAllocatableUpdatePeriodSeconds,omitempty" protobuf:"9" schema:"min=10,reason.min=must be greater than or equal to 10 seconds"`
	// ServiceAccountTokenInSecrets passes the tokens as secrets instead of volume attributes, which
	// drivers may log. It requires tokenRequests.
	ServiceAccountTokenInSecrets *bool `json:"serviceAccountTokenInSecrets,omitempty" protobuf:"10"`
	// PreventPodSchedulingIfMissing keeps pods with volumes of the driver from nodes without the
	// driver; default false, which treats such nodes as having no volume limit.
	PreventPodSchedulingIfMissing *bool `json:"preventPodSchedulingIfMissing,omitempty" protobuf:"11" schema:"default=false"`
}

// TokenRequest is a request for a service account token.
type TokenRequest struct {
	// Audience of the token. Empty is the API server.
	Audience string `json:"audience" protobuf:"1"`
	// ExpirationSeconds is the requested lifetime in seconds: at least 600.
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty" protobuf:"2" schema:"min=600,max=4294967296,reason.min=may not specify a duration less than 10 minutes,reason.max=may not specify a duration larger than 2^32 seconds"`
}

func drivers() *registry.Kind {
	return registry.Of(registry.Definition[CSIDriver]{
		Group: wellknown.GroupStorage, Version: "v1", Scope: registry.Cluster,
		Lifetime: registry.Lifetime{Introduced: "1.18"},
		Versions: []registry.VersionOf[CSIDriver]{
			older.Same[CSIDriver]("v1beta1", "1.14", "1.19", "1.22", wellknown.GroupStorage+"/v1"),
		},
		Columns: []registry.Column{
			{Name: "AttachRequired", Type: "boolean", Doc: "Whether volumes must be attached.", JSONPath: ".spec.attachRequired"},
			{Name: "PodInfoOnMount", Type: "boolean", Doc: "Whether the driver gets information about the pod.", JSONPath: ".spec.podInfoOnMount"},
			{Name: "StorageCapacity", Type: "boolean", Doc: "Whether the scheduler considers the capacity.", JSONPath: ".spec.storageCapacity"},
			{Name: "TokenRequests", Type: "string", Doc: "The audiences of the requested tokens.", Cell: func(o *meta.Object) any {
				var list []string
				for _, r := range o.Objects("spec", "tokenRequests") {
					list = append(list, r.String("audience"))
				}
				if list == nil {
					return "<unset>"
				}
				return strings.Join(list, ",")
			}},
			{Name: "RequiresRepublish", Type: "boolean", Doc: "Whether volumes are mounted again periodically.", JSONPath: ".spec.requiresRepublish"},
			{Name: "Modes", Type: "string", Doc: "The supported kinds of volumes.", Cell: func(o *meta.Object) any {
				return strings.Join(o.Strings("spec", "volumeLifecycleModes"), ",")
			}},
			registry.AgeColumn(),
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
			if s.ServiceAccountTokenInSecrets != nil || len(s.TokenRequests) == 0 || w.Old != nil && check.SemanticEqual(s.TokenRequests, w.Old.Spec.TokenRequests) {
				return nil
			}
			return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"}
		},
		Reference: &compat.Reference{AnyNamespace: true, LateGeneration: true, PutWithVersion: true},
	})
}

// checkDriverName checks the name of a driver, which is limited because it is part of volumes.
func checkDriverName(name string, prefix bool) []string {
	faults := meta.NameChecker(meta.CheckDNSSubdomain)(name, prefix)
	if len(name) > 63 && !prefix {
		faults = append(faults, "must be no more than 63 characters")
	}
	return faults
}

// validateDriver checks uniqueness and immutability. With Kubernetes names, podInfoOnMount and
// fsGroupPolicy are mutable, see compat.DriverChanges.
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
		w.Unchanged(at.Field("attachedRequired"), s.AttachRequired, w.Old.Spec.AttachRequired) // kube-apiserver misspells the field
		if !w.Rules.Has(compat.DriverChanges) {
			w.Unchanged(at.Field("podInfoOnMount"), s.PodInfoOnMount, w.Old.Spec.PodInfoOnMount)
			w.Unchanged(at.Field("fsGroupPolicy"), s.FSGroupPolicy, w.Old.Spec.FSGroupPolicy)
		}
		w.Unchanged(modes, s.VolumeLifecycleModes, w.Old.Spec.VolumeLifecycleModes)
	}
}
