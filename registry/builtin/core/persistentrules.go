package core

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/diff"
)

// validatePersistentVolume checks the spec. On update the violations come twice, followed by changes of
// immutable fields, as at kube-apiserver.
func validatePersistentVolume(w *registry.Change[PersistentVolume]) {
	if w.Subresource == "status" {
		return
	}
	at := check.At("spec")
	r := &specRules{names: w.Names, found: w.SchemaViolations}
	r.persistentVolume(at, &w.New.Spec, w.New.Name, false)
	w.Violations = append(w.Violations, r.Violations...)
	if w.Old != nil {
		w.Violations = slices.Concat(w.Violations, w.SchemaViolations, r.Violations) // repeated, as at kube-apiserver
		checkVolumeUpdate(w, at)
	}
}

// InlineVolume returns the violations of a volume within another object, which cannot be claimed, that
// the schema has not reported in found.
func InlineVolume(p names.Profile, found check.Violations, at *check.Path, s *PersistentVolumeSpec) check.Violations {
	r := &specRules{names: p, found: found}
	r.persistentVolume(at, s, "", true)
	return r.Violations
}

// persistentVolume checks the spec of a PersistentVolume with the given name, or of an inline volume.
func (r *specRules) persistentVolume(at *check.Path, s *PersistentVolumeSpec, name string, inline bool) {
	if inline {
		r.inlineVolume(at, s)
	}
	r.accessModes(at.Field("accessModes"), s.AccessModes)
	if !inline {
		r.capacity(at.Field("capacity"), s.Capacity)
	}
	if a := s.NodeAffinity; a != nil && !inline {
		r.nodeSelector(at.Field("nodeAffinity").Field("required"), a.Required)
	}
	r.persistentSource(at, s)
	if i := s.ISCSI; i != nil && i.InitiatorName != nil && len(name+":"+i.TargetPortal) > maxInitiated {
		r.Invalid(at.Field("iscsi").Field("targetportal"), i.TargetPortal, "with the volume's name it must be under 64 characters if there is an initiator's name")
	}
	if s.HostPath != nil && isRoot(s.HostPath.Path) && s.PersistentVolumeReclaimPolicy == recycle {
		r.Forbidden(at.Field("persistentVolumeReclaimPolicy"), "may not be 'recycle' for a hostPath mount of '/'")
	}
	r.attributesClass(at, s)
}

// inlineVolume checks that an inline volume uses a CSI driver and has no fields for claims.
func (r *specRules) inlineVolume(at *check.Path, s *PersistentVolumeSpec) {
	const why = "may not be specified in the context of inline volumes"
	if s.ClaimRef != nil {
		r.Forbidden(at.Field("claimRef"), why)
	}
	if len(s.Capacity) > 0 {
		r.Forbidden(at.Field("capacity"), why)
	}
	if s.CSI == nil {
		r.Required(at.Field("csi"), "has to be specified in the context of inline volumes")
	}
	if p := s.PersistentVolumeReclaimPolicy; p != "" && p != retain {
		r.Forbidden(at.Field("persistentVolumeReclaimPolicy"), "may only be "+retain+" in the context of inline volumes")
	}
	if s.StorageClassName != "" {
		r.Forbidden(at.Field("storageClassName"), why)
	}
	if m := s.VolumeMode; m != nil && *m != filesystem {
		r.Forbidden(at.Field("volumeMode"), "may not specify volumeMode other than "+filesystem+" in the context of inline volumes")
	}
	if s.NodeAffinity != nil {
		r.Forbidden(at.Field("nodeAffinity"), why)
	}
}

// accessModes checks access modes of volumes and claims.
func (r *specRules) accessModes(at *check.Path, modes []string) {
	for _, m := range modes {
		r.OneOf(at, m, "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
	}
	exclusive := func(m string) bool { return m == "ReadWriteOncePod" }
	if slices.ContainsFunc(modes, exclusive) && slices.ContainsFunc(modes, func(m string) bool { return !exclusive(m) }) {
		r.Forbidden(at, "may not use ReadWriteOncePod with other access modes")
	}
}

// capacity checks that storage is the only resource, with a positive amount.
func (r *specRules) capacity(at *check.Path, capacity map[string]meta.Quantity) {
	if len(capacity) == 0 {
		r.Required(at, "")
	}
	if _, ok := capacity[storage]; !ok || len(capacity) > 1 {
		r.NotSupported(at, capacity, storage)
	}
	r.amounts(at, capacity)
	for _, name := range sortedNames(capacity) {
		if q := capacity[name]; q.Sign() <= 0 {
			r.Invalid(at.Key(name), q.String(), "must be greater than zero")
		}
	}
}

// amounts checks that no amount is negative.
func (r *specRules) amounts(at *check.Path, amounts map[string]meta.Quantity) {
	for _, name := range sortedNames(amounts) {
		if q := amounts[name]; q.Sign() < 0 {
			r.Invalid(at.Key(name), q.Value(), "must be a valid resource quantity")
		}
	}
}

// persistentSource checks that exactly 1 source is set, and that source.
func (r *specRules) persistentSource(at *check.Path, s *PersistentVolumeSpec) {
	found := false
	for _, src := range s.sources() {
		if src.source == nil {
			continue
		}
		p := at.Field(r.names.Field(src.field))
		if found {
			r.Forbidden(p, "may not specify more than 1 volume type")
			continue
		}
		found = true
		if c, ok := src.source.(validator); ok {
			c.validate(r, r.sourceAt(at, src.field))
		}
		if src.field == "local" && s.NodeAffinity == nil {
			r.Required(at.Field("nodeAffinity"), "Local volume requires node affinity")
		}
	}
	if !found {
		r.Required(at, "must specify a volume type")
	}
}

// sources returns all sources in the order of their validation.
func (s *PersistentVolumeSource) sources() []volumeSource {
	return []volumeSource{
		{"hostPath", orNil(s.HostPath)},
		{"cloudCPersistentDisk", orNil(s.CloudCPersistentDisk)},
		{"cloudAElasticBlockStore", orNil(s.CloudAElasticBlockStore)},
		{"storeBfs", orNil(s.StoreBfs)},
		{"storeGVolume", orNil(s.StoreGVolume)},
		{"nfs", orNil(s.NFS)},
		{"storeAblock", orNil(s.StoreAblock)},
		{"storeDfs", orNil(s.StoreDfs)},
		{"storeAfs", orNil(s.StoreAfs)},
		{"iscsi", orNil(s.ISCSI)},
		{"blockSvcVolume", orNil(s.BlockSvcVolume)},
		{"fc", orNil(s.FC)},
		{"flexVolume", orNil(s.FlexVolume)},
		{"cloudBFile", orNil(s.CloudBFile)},
		{"cloudDVolume", orNil(s.CloudDVolume)},
		{"cloudEPersistentDisk", orNil(s.CloudEPersistentDisk)},
		{"storeCVolume", orNil(s.StoreCVolume)},
		{"cloudBDisk", orNil(s.CloudBDisk)},
		{"storeEVolume", orNil(s.StoreEVolume)},
		{"local", orNil(s.Local)},
		{"storeFVolume", orNil(s.StoreFVolume)},
		{"csi", orNil(s.CSI)},
	}
}

func (s *ISCSIPersistentVolumeSource) validate(r *specRules, at *check.Path) {
	s.validateDisk(r, at, s.SecretRef != nil)
}

func (s *StoreBfsPersistentVolumeSource) validate(r *specRules, at *check.Path) {
	switch ns := s.EndpointsNamespace; {
	case ns == nil:
	case *ns == "":
		r.Invalid(at.Field("endpointsNamespace"), *ns, "must be the name of a namespace, or unset")
	default:
		r.Format(at.Field("endpointsNamespace"), *ns, meta.CheckDNSLabel(*ns))
	}
}

func (s *CSIPersistentVolumeSource) validate(r *specRules, at *check.Path) {
	for _, secret := range []struct {
		field string
		ref   *SecretReference
	}{
		{"controllerPublishSecretRef", s.ControllerPublishSecretRef}, {"controllerExpandSecretRef", s.ControllerExpandSecretRef},
		{"nodePublishSecretRef", s.NodePublishSecretRef}, {"nodeExpandSecretRef", s.NodeExpandSecretRef},
	} {
		if secret.ref == nil {
			continue
		}
		p := at.Field(secret.field)
		r.Subdomain(p.Field("name"), secret.ref.Name)
		if ns := secret.ref.Namespace; ns != "" {
			r.Format(p.Field("namespace"), ns, meta.CheckDNSLabel(ns))
		}
	}
}

func (s *CloudBFilePersistentVolumeSource) validate(r *specRules, at *check.Path) {
	if ns := s.SecretNamespace; ns != nil {
		r.RequiredField(at, "secretNamespace", *ns)
	}
}

// attributesClass checks the attributes class, which requires a CSI volume.
func (r *specRules) attributesClass(at *check.Path, s *PersistentVolumeSpec) {
	class := s.VolumeAttributesClassName
	if class == nil {
		return
	}
	p := at.Field("volumeAttributesClassName")
	if *class == "" {
		r.Required(p, "an empty string is disallowed")
	}
	r.Subdomain(p, *class)
	if s.CSI == nil {
		r.Required(at.Field("csi"), "has to be specified when using volumeAttributesClassName")
	}
}

// checkVolumeUpdate reports changes of a volume. The source is immutable, except that
// controllerExpandSecretRef can be added to CSI volumes.
func checkVolumeUpdate(w *registry.Change[PersistentVolume], at *check.Path) {
	spec, old := &w.New.Spec, &w.Old.Spec
	source := spec.PersistentVolumeSource
	if oldCSI, newCSI := old.CSI, source.CSI; oldCSI != nil && newCSI != nil && oldCSI.ControllerExpandSecretRef == nil {
		csi := *newCSI
		csi.ControllerExpandSecretRef = nil
		source.CSI = &csi
	}
	if !check.SemanticEqual(source, old.PersistentVolumeSource) {
		w.Forbidden(at.Field("persistentvolumesource"), "spec.persistentvolumesource is immutable after creation\n"+
			diff.Lines(old.PersistentVolumeSource, source)) // the field name of kube-apiserver
	}
	w.Unchanged(check.At("volumeMode"), spec.VolumeMode, old.VolumeMode)
	if old.NodeAffinity != nil && !check.SemanticEqual(spec.NodeAffinity, old.NodeAffinity) && !check.SemanticEqual(spec.NodeAffinity, withCurrentLabels(w.Names, old.NodeAffinity)) {
		w.Invalid(check.At("nodeAffinity"), spec.NodeAffinity, "field is immutable, except for updating from beta label to GA")
	}
	if old.VolumeAttributesClassName != nil && spec.VolumeAttributesClassName == nil {
		w.Forbidden(at.Field("volumeAttributesClassName"), "update from non-nil value to nil is forbidden")
	}
}

// withCurrentLabels returns a copy of the node affinity with the deprecated labels replaced by the
// current ones.
func withCurrentLabels(p names.Profile, a *VolumeNodeAffinity) *VolumeNodeAffinity {
	if a.Required == nil {
		return a
	}
	terms := slices.Clone(a.Required.NodeSelectorTerms)
	for i := range terms {
		terms[i].MatchExpressions = slices.Clone(terms[i].MatchExpressions)
		for j := range terms[i].MatchExpressions {
			e := &terms[i].MatchExpressions[j]
			for _, label := range p.OldNodeLabels() {
				if e.Key == label.Before {
					e.Key = label.Now
				}
			}
		}
	}
	return &VolumeNodeAffinity{Required: &NodeSelector{NodeSelectorTerms: terms}}
}

// warnOfPersistentVolume returns warnings about deprecated fields and labels.
func warnOfPersistentVolume(w *registry.Change[PersistentVolume]) []string {
	texts := warnOfOldClass(w.Names, w.New.Annotations)
	if w.New.Spec.PersistentVolumeReclaimPolicy == recycle {
		texts = append(texts, "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.")
	}
	for _, src := range w.New.Spec.sources() {
		i := slices.IndexFunc(deprecatedVolumes, func(d deprecatedVolume) bool { return d.source == src.field })
		podsOnly := src.field == "storeDfs" || src.field == "storeGVolume" // deprecated in pods only
		if i >= 0 && src.source != nil && !podsOnly {
			texts = append(texts, "spec."+w.Names.Field(src.field)+": "+deprecatedVolumes[i].why)
		}
	}
	a := w.New.Spec.NodeAffinity
	if a == nil || a.Required == nil {
		return texts
	}
	for i, t := range a.Required.NodeSelectorTerms {
		for j, e := range t.MatchExpressions {
			if why := w.Names.NodeLabelDeprecation(e.Key); why != "" {
				at := check.At("spec", "nodeAffinity", "required", "nodeSelectorTerms").Index(i).Field("matchExpressions").Index(j).Field("key")
				texts = append(texts, fmt.Sprintf("%s: %s is %s", at, e.Key, why))
			}
		}
	}
	return texts
}

// warnOfOldClass returns a warning about the annotation for the storage class.
func warnOfOldClass(p names.Profile, annotations map[string]string) []string {
	key := p.Wire(wellknown.StorageClassBeta)
	if _, ok := annotations[key]; !ok {
		return nil
	}
	return []string{check.At("metadata", "annotations").Key(key).String() + `: deprecated since v1.8; use "storageClassName" attribute instead`}
}
