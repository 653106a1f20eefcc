package core

import (
	"path"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// PersistentVolume is storage that outlives the pods that use it. Claims are bound to
// it.
type PersistentVolume struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what the volume is.
	Spec PersistentVolumeSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what has become of it. The system writes it.
	Status PersistentVolumeStatus `json:"status,omitempty" protobuf:"3"`
}

// PersistentVolumeSpec says what a volume is, and whose.
type PersistentVolumeSpec struct {
	// Capacity is how much it holds: storage, in bytes.
	Capacity map[string]meta.Quantity `json:"capacity,omitempty" protobuf:"1" schema:"values.milli"`

	// PersistentVolumeSource is where it is; exactly one is set, for good.
	PersistentVolumeSource `json:",inline" protobuf:"2"`

	// AccessModes that it can be mounted in: ReadWriteOnce, ReadOnlyMany, ReadWriteMany,
	// ReadWriteOncePod. The last one comes alone.
	AccessModes []string `json:"accessModes,omitempty" protobuf:"3" schema:"required,optional,listType=atomic"`

	// ClaimRef is the claim that the volume belongs to. It is bound when that claim
	// names the volume, too.
	ClaimRef *ObjectReference `json:"claimRef,omitempty" protobuf:"4" schema:"mapType=granular"`

	// PersistentVolumeReclaimPolicy is what becomes of the volume when its claim goes:
	// Retain keeps it for someone to look after, Delete removes it with its data, and
	// Recycle, which is deprecated, empties it.
	PersistentVolumeReclaimPolicy string `json:"persistentVolumeReclaimPolicy,omitempty" protobuf:"5" schema:"enum=Delete|Recycle|Retain"`

	// StorageClassName is the class it is of; empty: none.
	StorageClassName string `json:"storageClassName,omitempty" protobuf:"6" schema:"format=dns-subdomain"`

	// MountOptions to mount it with. Nobody checks them; mounting fails on a wrong one.
	MountOptions []string `json:"mountOptions,omitempty" protobuf:"7" schema:"listType=atomic"`

	// VolumeMode is Filesystem (the default), or Block for a device without one.
	VolumeMode *string `json:"volumeMode,omitempty" protobuf:"8" schema:"enum=Block|Filesystem"`

	// NodeAffinity limits the nodes that can reach it, and so the pods' places.
	NodeAffinity *VolumeNodeAffinity `json:"nodeAffinity,omitempty" protobuf:"9"`

	// VolumeAttributesClassName is the class of the attributes that it has now. For CSI
	// volumes.
	VolumeAttributesClassName *string `json:"volumeAttributesClassName,omitempty" protobuf:"10"`
}

// VolumeNodeAffinity says which nodes can reach a volume.
type VolumeNodeAffinity struct {
	// Required is what such a node is like.
	Required *NodeSelector `json:"required,omitempty" protobuf:"1" schema:"required,optional,reason.required=must specify required node constraints"`
}

// PersistentVolumeStatus is the state of a volume.
type PersistentVolumeStatus struct {
	// Phase is Pending, Available, Bound, Released (its claim is gone) or Failed (it
	// could not be reclaimed).
	Phase string `json:"phase,omitempty" protobuf:"1"`

	// Message tells people why.
	Message string `json:"message,omitempty" protobuf:"2"`

	// Reason is a word for programs that says why.
	Reason string `json:"reason,omitempty" protobuf:"3"`

	// LastPhaseTransitionTime is when the phase last changed.
	LastPhaseTransitionTime *meta.Time `json:"lastPhaseTransitionTime,omitempty" protobuf:"4"`
}

// Words of the specs and states of volumes and claims.
const (
	volumePending = "Pending"
	claimBound    = "Bound"
	filesystem    = "Filesystem"
	retain        = "Retain"
	recycle       = "Recycle"
	storage       = "storage" // the resource
)

func persistentVolumes() *registry.Kind {
	return registry.Of(registry.Definition[PersistentVolume]{
		Version:    version,
		ShortNames: []string{"pv"},
		Scope:      registry.Cluster,
		Status:     true,
		Columns:    persistentVolumeColumns(),
		Default:    defaultPersistentVolume,
		Prepare: func(w *registry.Change[PersistentVolume]) {
			if w.Old != nil {
				return
			}
			now := meta.Time{Time: time.Now()}
			w.New.Status = PersistentVolumeStatus{Phase: volumePending, LastPhaseTransitionTime: &now}
		},
		Validate:  validatePersistentVolume,
		Warn:      warnOfPersistentVolume,
		Reference: &compat.Reference{NoGeneration: true, StatusMetadata: compat.CallersMetadata(), AnyNamespace: true},
	})
}

func persistentVolumeColumns() []registry.Column {
	return []registry.Column{
		registry.Text("Capacity", "How much it holds.", "spec", "capacity", storage),
		{Name: "Access Modes", Type: "string", Doc: "How it can be mounted.", Cell: func(o *meta.Object) any { return accessWords(o.Strings("spec", "accessModes")) }},
		registry.Text("Reclaim Policy", "What becomes of it when its claim goes.", "spec", "persistentVolumeReclaimPolicy"),
		{Name: "Status", Type: "string", Doc: "Its phase.", Cell: phaseOrTerminating},
		{Name: "Claim", Type: "string", Doc: "The claim it belongs to.", Cell: func(o *meta.Object) any {
			if o.Map("spec", "claimRef") == nil {
				return ""
			}
			return o.String("spec", "claimRef", "namespace") + "/" + o.String("spec", "claimRef", "name")
		}},
		{Name: "StorageClass", Type: "string", Doc: "The class it is of.", Cell: storageClassOf},
		{Name: "VolumeAttributesClass", Type: "string", Doc: "The class of its attributes.", Cell: orUnset("spec", "volumeAttributesClassName")},
		registry.Text("Reason", "Why it is in that phase.", "status", "reason"),
		registry.Age(),
		{Name: "VolumeMode", Type: "string", Doc: "Whether it has a file system.", Priority: 1, Cell: orUnset("spec", "volumeMode")},
	}
}

// accessWords lists access modes in short, each once.
func accessWords(modes []string) string {
	text := ""
	for _, m := range [][2]string{{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"}, {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}} {
		for _, mode := range modes {
			if mode != m[0] {
				continue
			}
			if text != "" {
				text += ","
			}
			text += m[1]
			break
		}
	}
	return text
}

// phaseOrTerminating is the phase of an object that is not being deleted.
func phaseOrTerminating(o *meta.Object) any {
	if o.String("metadata", "deletionTimestamp") != "" {
		return NamespaceTerminating
	}
	return o.String("status", "phase")
}

// storageClassOf returns the class that a volume or claim names, in the old way or the
// new.
func storageClassOf(o *meta.Object) any {
	for key, value := range o.Annotations() {
		if names.Same(key, names.StorageClassBeta) {
			return value
		}
	}
	return o.String("spec", "storageClassName")
}

func orUnset(path ...string) func(o *meta.Object) any {
	return func(o *meta.Object) any {
		if v, ok := o.Get(path...); ok && v != nil {
			return v
		}
		return "<unset>"
	}
}

// defaultPersistentVolume fills in what a volume says of itself; one inside of another
// object need not say so much. Who sets another phase need not say since when.
func defaultPersistentVolume(w *registry.Change[PersistentVolume]) {
	s, state := &w.New.Spec, &w.New.Status
	if s.PersistentVolumeReclaimPolicy == "" {
		s.PersistentVolumeReclaimPolicy = retain
	}
	if s.VolumeMode == nil {
		mode := filesystem
		s.VolumeMode = &mode
	}
	if state.Phase == "" {
		state.Phase = volumePending
	}
	if w.Subresource == "status" && w.Old != nil && state.Phase != w.Old.Status.Phase && sameTime(state.LastPhaseTransitionTime, w.Old.Status.LastPhaseTransitionTime) {
		now := meta.Time{Time: time.Now()}
		state.LastPhaseTransitionTime = &now
	}
}

func sameTime(a, b *meta.Time) bool {
	return a == nil || b != nil && a.Equal(b.Time)
}

// root reports whether a path of a node is all of its files.
func root(p string) bool { return path.Clean(p) == "/" }
