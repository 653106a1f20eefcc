package storage

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// VolumeAttachment asks a driver to attach a volume to a node, for as long as it is there.
type VolumeAttachment struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what to attach where. It cannot change.
	Spec VolumeAttachmentSpec `json:"spec" protobuf:"2"`
	// Status is what the driver did.
	Status VolumeAttachmentStatus `json:"status,omitempty" protobuf:"3"`
}

// VolumeAttachmentSpec is what to attach where.
type VolumeAttachmentSpec struct {
	// Attacher is the driver that shall do it.
	Attacher string `json:"attacher" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// Source is the volume.
	Source VolumeAttachmentSource `json:"source" protobuf:"2"`
	// NodeName is the node.
	NodeName string `json:"nodeName" protobuf:"3" schema:"format=dns-subdomain"`
}

// VolumeAttachmentSource is a volume to attach. Exactly one of the fields is set.
type VolumeAttachmentSource struct {
	// PersistentVolumeName is the volume by name.
	PersistentVolumeName *string `json:"persistentVolumeName,omitempty" protobuf:"1" schema:"format=dns-subdomain,unchecked"`
	// InlineVolumeSpec is a volume that has no object: one that a pod describes in the words
	// of an older plugin, in those of the driver that took its place.
	InlineVolumeSpec *core.PersistentVolumeSpec `json:"inlineVolumeSpec,omitempty" protobuf:"2" schema:"gate=CSIMigration"`
}

// VolumeAttachmentStatus is what the driver did. Only who attaches and detaches writes it.
type VolumeAttachmentStatus struct {
	// Attached says that the volume is attached.
	Attached bool `json:"attached" protobuf:"1"`
	// AttachmentMetadata is what attaching gave, for those who mount the volume next, in at
	// most 256 KiB.
	AttachmentMetadata map[string]string `json:"attachmentMetadata,omitempty" protobuf:"2"`
	// AttachError is why attaching failed last.
	AttachError *VolumeError `json:"attachError,omitempty" protobuf:"3"`
	// DetachError is why detaching failed last.
	DetachError *VolumeError `json:"detachError,omitempty" protobuf:"4"`
}

// VolumeError is what went wrong with a volume.
type VolumeError struct {
	// Time when it did.
	Time meta.Time `json:"time,omitempty" protobuf:"1"`
	// Message is a text for people, of at most 1024 bytes, without secrets.
	Message string `json:"message,omitempty" protobuf:"2" schema:"maxLength=1024"`
	// ErrorCode is the gRPC code that the driver answered.
	ErrorCode *int32 `json:"errorCode,omitempty" protobuf:"3" schema:"range=0|2147483647"`
}

func attachments() *registry.Kind {
	former := older.Same[VolumeAttachment]("v1beta1", "1.10", "1.19", "1.22", names.GroupStorage+"/v1")
	former.Lacks = []string{"status"} // which is written with the rest
	return registry.Of(registry.Definition[VolumeAttachment]{
		Group: names.GroupStorage, Version: "v1", Scope: registry.Cluster, Status: true,
		Versions: []registry.VersionOf[VolumeAttachment]{former},
		Columns: []registry.Column{
			{Name: "Attacher", Type: "string", Format: "name", Doc: "The driver that attaches.", JSONPath: ".spec.attacher"},
			registry.Text("PV", "The volume, if it has an object.", "spec", "source", "persistentVolumeName"),
			registry.Text("Node", "The node.", "spec", "nodeName"),
			{Name: "Attached", Type: "boolean", Doc: "Whether the volume is attached.", Cell: func(o *meta.Object) any { return o.Bool("status", "attached") }},
			registry.Age(),
		},
		Validate: validateAttachment,
		Reference: &compat.Reference{
			AnyNamespace: true, NoGeneration: true, PutWithVersion: true,
		},
	})
}

func validateAttachment(w *registry.Change[VolumeAttachment]) {
	checkAttachmentSource(w)
	if w.Old != nil {
		w.Unchanged(check.At("spec"), w.New.Spec, w.Old.Spec)
	}
	const maxBytes = 256 << 10
	size := 0
	for k, v := range w.New.Status.AttachmentMetadata {
		size += len(k) + len(v)
	}
	if size > maxBytes {
		w.TooLong(check.At("status", "attachmentMetadata"), maxBytes)
	}
}

// checkAttachmentSource checks that there is one volume, and what is wrong with it. A
// name that is empty is told of before its form is.
func checkAttachmentSource(w *registry.Change[VolumeAttachment]) {
	s, at := &w.New.Spec.Source, check.At("spec", "source")
	name, inline := s.PersistentVolumeName, s.InlineVolumeSpec
	switch {
	case name == nil && inline == nil:
		w.Required(at, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case name != nil && inline != nil:
		w.Forbidden(at, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case inline != nil:
		w.Faults = append(w.Faults, core.InlineVolume(w.Names, w.Found, at.Field("inlineVolumeSpec"), inline)...)
	default:
		p := at.Field("persistentVolumeName")
		if *name == "" {
			w.Required(p, "must specify non empty persistentVolumeName")
		}
		w.Format(p, *name, meta.CheckDNSSubdomain(*name))
	}
}
