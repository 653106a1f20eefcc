package storage

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/core"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// VolumeAttachment requests that a driver attaches a volume to a node. Deleting it requests the
// detachment.
type VolumeAttachment struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the request. Immutable.
	Spec VolumeAttachmentSpec `json:"spec" protobuf:"2"`
	// Status is the result.
	Status VolumeAttachmentStatus `json:"status,omitempty" protobuf:"3"`
}

// VolumeAttachmentSpec is the request to attach a volume.
type VolumeAttachmentSpec struct {
	// Attacher is the name of the driver that attaches the volume.
	Attacher string `json:"attacher" protobuf:"1" schema:"required,maxLength=63,format=csi-driver"`
	// Source is the volume.
	Source VolumeAttachmentSource `json:"source" protobuf:"2"`
	// NodeName is the node to attach the volume to.
	NodeName string `json:"nodeName" protobuf:"3" schema:"format=dns-subdomain"`
}

// VolumeAttachmentSource identifies a volume. Exactly 1 field must be set.
type VolumeAttachmentSource struct {
	// PersistentVolumeName is the name of a PersistentVolume.
	PersistentVolumeName *string `json:"persistentVolumeName,omitempty" protobuf:"1" schema:"format=dns-subdomain,unchecked"`
	// InlineVolumeSpec is an inline volume of a pod, translated from an in-tree plugin to its CSI
	// driver.
	InlineVolumeSpec *core.PersistentVolumeSpec `json:"inlineVolumeSpec,omitempty" protobuf:"2" schema:"gate=CSIMigration"`
}

// VolumeAttachmentStatus is the result of an attachment. Only the attacher writes it.
type VolumeAttachmentStatus struct {
	// Attached is true while the volume is attached.
	Attached bool `json:"attached" protobuf:"1"`
	// AttachmentMetadata is passed from the attachment to the mount of the volume; at most 256 KiB.
	AttachmentMetadata map[string]string `json:"attachmentMetadata,omitempty" protobuf:"2"`
	// AttachError is the last error of attaching.
	AttachError *VolumeError `json:"attachError,omitempty" protobuf:"3"`
	// DetachError is the last error of detaching.
	DetachError *VolumeError `json:"detachError,omitempty" protobuf:"4"`
}

// VolumeError is an error of a volume operation.
type VolumeError struct {
	// Time of the error.
	Time meta.Time `json:"time,omitempty" protobuf:"1"`
	// Message explains the error to people, in at most 1024 bytes. It must not contain secrets.
	Message string `json:"message,omitempty" protobuf:"2" schema:"maxLength=1024"`
	// ErrorCode is the gRPC code of the error.
	ErrorCode *int32 `json:"errorCode,omitempty" protobuf:"3" schema:"range=0|2147483647"`
}

func attachments() *registry.Kind {
	beta := older.Same[VolumeAttachment]("v1beta1", "1.10", "1.19", "1.22", wellknown.GroupStorage+"/v1")
	beta.MissingSubresources = []string{"status"} // v1beta1 has no status subresource
	return registry.Of(registry.Definition[VolumeAttachment]{
		Group: wellknown.GroupStorage, Version: "v1", Scope: registry.Cluster, Status: true,
		Versions: []registry.VersionOf[VolumeAttachment]{beta},
		Columns: []registry.Column{
			{Name: "Attacher", Type: "string", Format: "name", Doc: "The driver that attaches the volume.", JSONPath: ".spec.attacher"},
			registry.TextColumn("PV", "The PersistentVolume.", "spec", "source", "persistentVolumeName"),
			registry.TextColumn("Node", "The node.", "spec", "nodeName"),
			{Name: "Attached", Type: "boolean", Doc: "Whether the volume is attached.", Cell: func(o *meta.Object) any { return o.Bool("status", "attached") }},
			registry.AgeColumn(),
		},
		Validate: validateAttachment,
		Reference: &compat.Reference{
			AnyNamespace: true, NoGeneration: true, PutWithVersion: true,
		},
	})
}

// validateAttachment checks the source, the immutability of the spec, and the size of the metadata.
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

// checkAttachmentSource checks that exactly 1 source is set, and its form.
func checkAttachmentSource(w *registry.Change[VolumeAttachment]) {
	s, at := &w.New.Spec.Source, check.At("spec", "source")
	name, inline := s.PersistentVolumeName, s.InlineVolumeSpec
	switch {
	case name == nil && inline == nil:
		w.Required(at, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case name != nil && inline != nil:
		w.Forbidden(at, "must specify exactly one of inlineVolumeSpec and persistentVolumeName")
	case inline != nil:
		w.Violations = append(w.Violations, core.InlineVolume(w.Names, w.SchemaViolations, at.Field("inlineVolumeSpec"), inline)...)
	default:
		p := at.Field("persistentVolumeName")
		if *name == "" {
			w.Required(p, "must specify non empty persistentVolumeName")
		}
		w.Format(p, *name, meta.CheckDNSSubdomain(*name))
	}
}
