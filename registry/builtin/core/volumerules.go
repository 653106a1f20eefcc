package core

import (
	"strings"

	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
)

// podVolumes checks the volumes. Only those without faults can be mounted.
func (r *podRules) podVolumes(at *check.Path) {
	for i := range r.spec.Volumes {
		v, p, before := &r.spec.Volumes[i], at.Index(i), len(r.Faults)
		r.source(p, v)
		r.Label(p.Field("name"), v.Name)
		if r.volumes[v.Name] != nil {
			r.Duplicate(p.Field("name"), v.Name)
		}
		if len(r.Faults) == before {
			r.volumes[v.Name] = v
		}
	}
}

// maxInitiated bounds what names the connection of a volume's own initiator.
const maxInitiated = 64

// source checks that a volume has one source, and that source.
func (r *podRules) source(at *check.Path, v *Volume) {
	found := false
	for _, s := range v.sources() {
		if s.source == nil {
			continue
		}
		p := at.Field(r.names.Field(s.field))
		if found {
			r.Forbidden(p, "may not specify more than 1 volume type")
			continue
		}
		found = true
		s.source.check(r, p)
		if s.field == "ephemeral" && v.Name != "" && r.pod != nil && r.pod.Name != "" {
			r.Format(at.Field("name"), v.Name, meta.CheckDNSSubdomain(r.pod.Name+"-"+v.Name)) // the claim's name
		}
		if i := v.ISCSI; i != nil && i.InitiatorName != nil && len(v.Name+":"+i.TargetPortal) > maxInitiated {
			r.Invalid(at.Field("name"), v.Name, "with the portal it must be under 64 characters if there is an initiator's name")
		}
	}
	if !found {
		r.Required(at, "must specify a volume type")
	}
}

// volumeSource is one kind of source that a volume may have.
type volumeSource struct {
	field  string  // spec name
	source checker // nil: not set
}

type checker interface {
	check(r *podRules, at *check.Path)
}

// set returns a source that is set, nil for one that is not.
func set[T any, P interface {
	*T
	checker
}](source P) checker {
	if source == nil {
		return nil
	}
	return source
}

// sources lists all kinds of sources, in the order in which they are checked.
func (v *Volume) sources() []volumeSource {
	return []volumeSource{
		{"emptyDir", set(v.EmptyDir)},
		{"hostPath", set(v.HostPath)},
		{"gitRepo", set(v.GitRepo)},
		{"cloudCPersistentDisk", set(v.CloudCPersistentDisk)},
		{"cloudAElasticBlockStore", set(v.CloudAElasticBlockStore)},
		{"secret", set(v.Secret)},
		{"nfs", set(v.NFS)},
		{"iscsi", set(v.ISCSI)},
		{"storeBfs", set(v.StoreBfs)},
		{"storeGVolume", set(v.StoreGVolume)},
		{"persistentVolumeClaim", set(v.PersistentVolumeClaim)},
		{"storeAblock", set(v.StoreAblock)},
		{"blockSvcVolume", set(v.BlockSvcVolume)},
		{"storeAfs", set(v.StoreAfs)},
		{"storeDfs", set(v.StoreDfs)},
		{"downwardAPI", set(v.DownwardAPI)},
		{"fc", set(v.FC)},
		{"flexVolume", set(v.FlexVolume)},
		{"configMap", set(v.ConfigMap)},
		{"cloudBFile", set(v.CloudBFile)},
		{"cloudDVolume", set(v.CloudDVolume)},
		{"cloudEPersistentDisk", set(v.CloudEPersistentDisk)},
		{"storeCVolume", set(v.StoreCVolume)},
		{"cloudBDisk", set(v.CloudBDisk)},
		{"storeFVolume", set(v.StoreFVolume)},
		{"projected", set(v.Projected)},
		{"storeEVolume", set(v.StoreEVolume)},
		{"csi", set(v.CSI)},
		{"ephemeral", set(v.Ephemeral)},
		{"image", set(v.Image)},
	}
}

// below checks a relative path that may not even begin with dots.
func (r *podRules) below(at *check.Path, path string) {
	r.relative(at, path)
	if strings.HasPrefix(path, "..") && !strings.HasPrefix(path, "../") {
		r.Invalid(at, path, "must not start with '..'")
	}
}

// mode checks the permission bits of a file.
func (r *podRules) mode(at *check.Path, mode *int32) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		r.Invalid(at, *mode, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

func (r *podRules) keys(at *check.Path, items []KeyToPath) {
	for i, k := range items {
		p := at.Index(i)
		r.Needs(p, "key", k.Key)
		r.Needs(p, "path", k.Path)
		r.below(p.Field("path"), k.Path)
		r.mode(p.Field("mode"), k.Mode)
	}
}

func (s *EmptyDirVolumeSource) check(r *podRules, at *check.Path) {
	if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
		r.Forbidden(at.Field("sizeLimit"), "SizeLimit field must be a valid resource quantity")
	}
}

func (s *HostPathVolumeSource) check(r *podRules, at *check.Path) {
	if s.Path == "" {
		r.Required(at.Field("path"), "")
		return
	}
	r.inside(at.Field("path"), s.Path)
	r.OptionalOneOf(at.Field("type"), s.Type, "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
}

func (s *GitRepoVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "repository", s.Repository)
	r.relative(at.Field("directory"), s.Directory)
}

func (s *ImageVolumeSource) check(r *podRules, at *check.Path) {
	if r.pod != nil {
		r.Needs(at, "reference", s.Reference)
	}
	if s.PullPolicy != "" {
		r.OneOf(at.Field("pullPolicy"), s.PullPolicy, "Always", "IfNotPresent", "Never")
	}
}

func (s *SecretVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "secretName", s.SecretName)
	r.mode(at.Field("defaultMode"), s.DefaultMode)
	r.keys(at.Field("items"), s.Items)
}

func (s *ConfigMapVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "name", s.Name)
	r.mode(at.Field("defaultMode"), s.DefaultMode)
	r.keys(at.Field("items"), s.Items)
}

func (s *DownwardAPIVolumeSource) check(r *podRules, at *check.Path) {
	r.mode(at.Field("defaultMode"), s.DefaultMode)
	for i := range s.Items {
		r.downward(at, &s.Items[i])
	}
}

// downward checks a file with a field of the pod. Causes name the field without
// its place in the list, as clients know them.
func (r *podRules) downward(at *check.Path, f *DownwardAPIVolumeFile) {
	r.Needs(at, "path", f.Path)
	r.below(at.Field("path"), f.Path)
	switch {
	case f.FieldRef != nil:
		r.fieldRef(at.Field("fieldRef"), f.FieldRef, true)
		if f.ResourceFieldRef != nil {
			r.Invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
		}
	case f.ResourceFieldRef != nil:
		r.resourceRef(at.Field("resourceFieldRef"), f.ResourceFieldRef, true)
	default:
		r.Required(at, "one of fieldRef and resourceFieldRef is required")
	}
	r.mode(at.Field("mode"), f.Mode)
}

func (s *ProjectedVolumeSource) check(r *podRules, at *check.Path) {
	r.mode(at.Field("defaultMode"), s.DefaultMode)
	taken := map[string]bool{}
	// claim notes a path that a source fills.
	claim := func(path string) {
		if path != "" && taken[path] {
			r.Invalid(at, path, "conflicting duplicate paths")
		}
		taken[path] = true
	}
	for i := range s.Sources {
		src, p := &s.Sources[i], at.Field("sources").Index(i)
		if src.check(r, at, p, claim) > 1 {
			r.Forbidden(p, "may not specify more than 1 volume type per source")
		}
	}
}

// check checks what a projected volume has at a place of its list, and returns
// of how many kinds that is.
func (s *VolumeProjection) check(r *podRules, at, p *check.Path, claim func(string)) (n int) {
	keys := func(p *check.Path, name string, items []KeyToPath) {
		n++
		r.Needs(p, "name", name)
		r.keys(p.Field("items"), items)
		for _, k := range items {
			claim(k.Path)
		}
	}
	if s.Secret != nil {
		keys(p.Field("secret"), s.Secret.Name, s.Secret.Items)
	}
	if s.ConfigMap != nil {
		keys(p.Field("configMap"), s.ConfigMap.Name, s.ConfigMap.Items)
	}
	if s.DownwardAPI != nil {
		n++
		for i := range s.DownwardAPI.Items {
			r.downward(p.Field("downwardAPI"), &s.DownwardAPI.Items[i])
			claim(s.DownwardAPI.Items[i].Path)
		}
	}
	if t := s.ServiceAccountToken; t != nil {
		n++
		if e, p := t.ExpirationSeconds, p.Field("serviceAccountToken").Field("expirationSeconds"); e != nil {
			if *e < 600 {
				r.Invalid(p, *e, "may not specify a duration less than 10 minutes")
			}
			if *e > 1<<32 {
				r.Invalid(p, *e, "may not specify a duration larger than 2^32 seconds")
			}
		}
		r.file(at, t.Path) // clients know the cause by this place
	}
	if t := s.ClusterTrustBundle; t != nil {
		n++
		t.check(r, p.Field("clusterTrustBundle"))
		claim(t.Path)
	}
	if c := s.PodCertificate; c != nil {
		n++
		r.Needs(p.Field("podCertificate"), "signerName", c.SignerName)
		r.Needs(p.Field("podCertificate"), "keyType", c.KeyType)
		for _, path := range []string{c.CredentialBundlePath, c.KeyPath, c.CertificateChainPath} {
			claim(path)
		}
	}
	return n
}

func (t *ClusterTrustBundleProjection) check(r *podRules, at *check.Path) {
	switch {
	case t.Name != nil && t.SignerName != nil:
		r.Invalid(at, t, "only one of name and signerName may be used")
	case t.Name != nil:
		r.Needs(at, "name", *t.Name)
		if t.LabelSelector != nil {
			r.Invalid(at.Field("labelSelector"), t.LabelSelector, "labelSelector must be unset if name is specified")
		}
	case t.SignerName != nil:
		r.Needs(at, "signerName", *t.SignerName)
		r.Selector(at.Field("labelSelector"), t.LabelSelector)
	default:
		r.Required(at, "either name or signerName must be specified")
	}
	r.file(at, t.Path)
}

// file checks the path of a file in a projected volume.
func (r *podRules) file(at *check.Path, path string) {
	r.Needs(at, "path", path)
	r.below(at.Field("path"), path)
}

func (s *PersistentVolumeClaimVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "claimName", s.ClaimName)
}

func (s *EphemeralVolumeSource) check(r *podRules, at *check.Path) {
	at = at.Field("volumeClaimTemplate")
	t := s.VolumeClaimTemplate
	if t == nil {
		r.Required(at, "")
		return
	}
	r.templateMeta(at.Field("metadata"), &t.ObjectMeta)
	r.Labels(at.Field("metadata").Field("labels"), t.Labels)
	r.claimSpec(at.Field("spec"), &t.Spec)
}

// templateMeta forbids what the template of a claim may not say about itself.
func (r *podRules) templateMeta(at *check.Path, m *meta.ObjectMeta) {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"name", m.Name != ""}, {"generateName", m.GenerateName != ""}, {"namespace", m.Namespace != ""}, {"uid", m.UID != ""},
		{"resourceVersion", m.ResourceVersion != ""}, {"generation", m.Generation != 0}, {"finalizers", len(m.Finalizers) > 0},
		{"ownerReferences", len(m.OwnerReferences) > 0}, {"managedFields", len(m.ManagedFields) > 0},
	} {
		if field.set {
			r.Forbidden(at.Field(field.name), "field must be unset")
		}
	}
}

func (r *podRules) claimSpec(at *check.Path, s *PersistentVolumeClaimSpec) {
	if len(s.AccessModes) == 0 {
		r.Required(at.Field("accessModes"), "at least 1 access mode is required")
	}
	r.Selector(at.Field("selector"), s.Selector)
	for _, m := range s.AccessModes {
		r.OneOf(at.Field("accessModes"), m, "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
	}
	storage, ok := s.Resources.Requests["storage"]
	if !ok {
		r.Required(at.Field("resources").Key("storage"), "")
	} else if storage.Sign() <= 0 {
		r.Invalid(at.Field("resources").Key("storage"), storage, "must be greater than zero")
	}
	if c := s.StorageClassName; c != nil && *c != "" {
		r.Format(at.Field("storageClassName"), *c, meta.CheckDNSSubdomain(*c))
	}
	r.OptionalOneOf(at.Field("volumeMode"), s.VolumeMode, "Block", "Filesystem")
	r.dataSources(at, s)
}

// dataSources checks what a claim is filled from: if both are given they are one.
func (r *podRules) dataSources(at *check.Path, s *PersistentVolumeClaimSpec) {
	if d := s.DataSource; d != nil {
		r.dataSource(at.Field("dataSource"), d)
	}
	if d := s.DataSourceRef; d != nil {
		r.dataSource(at.Field("dataSourceRef"), &TypedLocalObjectReference{APIGroup: d.APIGroup, Kind: d.Kind, Name: d.Name})
		if d.Namespace != nil && *d.Namespace != "" {
			r.Format(at.Field("dataSourceRef").Field("namespace"), *d.Namespace, meta.CheckDNSLabel(*d.Namespace))
		}
	}
	if d, ref := s.DataSource, s.DataSourceRef; d != nil && ref != nil && (ref.Namespace == nil || *ref.Namespace == "") &&
		!check.Same(d, &TypedLocalObjectReference{APIGroup: ref.APIGroup, Kind: ref.Kind, Name: ref.Name}) {
		r.Invalid(at, *d, "must match dataSourceRef")
	}
}

func (r *podRules) dataSource(at *check.Path, d *TypedLocalObjectReference) {
	r.Needs(at, "name", d.Name)
	r.Needs(at, "kind", d.Kind)
	group := ""
	if d.APIGroup != nil {
		group = *d.APIGroup
	}
	r.Subdomain(at.Field("apiGroup"), group)
	if group == "" && d.Kind != "PersistentVolumeClaim" {
		r.Invalid(at, d.Kind, "must be 'PersistentVolumeClaim' in the core group")
	}
}
