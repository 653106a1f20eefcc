package core

import (
	"slices"
	"strings"

	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
	"orch.io/controlplane/registry/names"
)

func (r *podRules) podVolumes(at *check.Path) {
	for i := range r.spec.Volumes {
		v, p := &r.spec.Volumes[i], at.Index(i)
		r.label(p.Field("name"), v.Name)
		if v.Name != "" && r.volumes[v.Name] != nil {
			r.Duplicate(p.Field("name"), v.Name)
		}
		r.volumes[v.Name] = v
		r.source(p, v)
	}
}

// source checks that a volume has one source, and that source.
func (r *podRules) source(at *check.Path, v *Volume) {
	found := false
	for _, s := range v.sources() {
		if !s.set {
			continue
		}
		p := at.Field(r.names.Field(s.field))
		if found {
			r.Forbidden(p, "may not specify more than 1 volume type")
			continue
		}
		found = true
		s.check(r, p)
	}
	if !found {
		r.Required(at, "must specify a volume type")
	}
}

// volumeSource is one kind of source that a volume may have.
type volumeSource struct {
	field string // spec name
	set   bool
	check func(r *podRules, at *check.Path)
}

// sources lists all kinds of sources, in the order in which they are checked.
func (v *Volume) sources() []volumeSource {
	return []volumeSource{
		{"emptyDir", v.EmptyDir != nil, func(r *podRules, at *check.Path) { v.EmptyDir.check(r, at) }},
		{"hostPath", v.HostPath != nil, func(r *podRules, at *check.Path) { v.HostPath.check(r, at) }},
		{"gitRepo", v.GitRepo != nil, func(r *podRules, at *check.Path) { v.GitRepo.check(r, at) }},
		{"cloudCPersistentDisk", v.CloudCPersistentDisk != nil, func(r *podRules, at *check.Path) { v.CloudCPersistentDisk.check(r, at) }},
		{"cloudAElasticBlockStore", v.CloudAElasticBlockStore != nil, func(r *podRules, at *check.Path) { v.CloudAElasticBlockStore.check(r, at) }},
		{"secret", v.Secret != nil, func(r *podRules, at *check.Path) { v.Secret.check(r, at) }},
		{"nfs", v.NFS != nil, func(r *podRules, at *check.Path) { v.NFS.check(r, at) }},
		{"iscsi", v.ISCSI != nil, func(r *podRules, at *check.Path) { v.ISCSI.check(r, at) }},
		{"storeBfs", v.StoreBfs != nil, func(r *podRules, at *check.Path) { v.StoreBfs.check(r, at) }},
		{"storeGVolume", v.StoreGVolume != nil, func(r *podRules, at *check.Path) { v.StoreGVolume.check(r, at) }},
		{"persistentVolumeClaim", v.PersistentVolumeClaim != nil, func(r *podRules, at *check.Path) { v.PersistentVolumeClaim.check(r, at) }},
		{"storeAblock", v.StoreAblock != nil, func(r *podRules, at *check.Path) { v.StoreAblock.check(r, at) }},
		{"blockSvcVolume", v.BlockSvcVolume != nil, func(r *podRules, at *check.Path) { v.BlockSvcVolume.check(r, at) }},
		{"storeAfs", v.StoreAfs != nil, func(r *podRules, at *check.Path) { v.StoreAfs.check(r, at) }},
		{"storeDfs", v.StoreDfs != nil, func(r *podRules, at *check.Path) { v.StoreDfs.check(r, at) }},
		{"downwardAPI", v.DownwardAPI != nil, func(r *podRules, at *check.Path) { v.DownwardAPI.check(r, at) }},
		{"fc", v.FC != nil, func(r *podRules, at *check.Path) { v.FC.check(r, at) }},
		{"flexVolume", v.FlexVolume != nil, func(r *podRules, at *check.Path) { v.FlexVolume.check(r, at) }},
		{"configMap", v.ConfigMap != nil, func(r *podRules, at *check.Path) { v.ConfigMap.check(r, at) }},
		{"cloudBFile", v.CloudBFile != nil, func(r *podRules, at *check.Path) { v.CloudBFile.check(r, at) }},
		{"cloudDVolume", v.CloudDVolume != nil, func(r *podRules, at *check.Path) { v.CloudDVolume.check(r, at) }},
		{"cloudEPersistentDisk", v.CloudEPersistentDisk != nil, func(r *podRules, at *check.Path) { v.CloudEPersistentDisk.check(r, at) }},
		{"storeCVolume", v.StoreCVolume != nil, func(r *podRules, at *check.Path) { v.StoreCVolume.check(r, at) }},
		{"cloudBDisk", v.CloudBDisk != nil, func(r *podRules, at *check.Path) { v.CloudBDisk.check(r, at) }},
		{"storeFVolume", v.StoreFVolume != nil, func(r *podRules, at *check.Path) { v.StoreFVolume.check(r, at) }},
		{"projected", v.Projected != nil, func(r *podRules, at *check.Path) { v.Projected.check(r, at) }},
		{"storeEVolume", v.StoreEVolume != nil, func(r *podRules, at *check.Path) { v.StoreEVolume.check(r, at) }},
		{"csi", v.CSI != nil, func(r *podRules, at *check.Path) { v.CSI.check(r, at) }},
		{"ephemeral", v.Ephemeral != nil, func(r *podRules, at *check.Path) { v.Ephemeral.check(r, at) }},
		{"image", v.Image != nil, func(r *podRules, at *check.Path) { v.Image.check(r, at) }},
	}
}

// needs checks that a text is there.
func (r *podRules) needs(at *check.Path, field, value string) {
	if value == "" {
		r.Required(at.Field(field), "")
	}
}

// relative checks a path that must stay inside a volume.
func (r *podRules) relative(at *check.Path, path string) {
	if strings.HasPrefix(path, "/") {
		r.Invalid(at, path, "must be a relative path")
	}
	r.inside(at, path)
}

// inside checks that a path does not go up.
func (r *podRules) inside(at *check.Path, path string) {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			r.Invalid(at, path, "must not contain '..'")
			return
		}
	}
}

// below checks a relative path that may not even begin with dots.
func (r *podRules) below(at *check.Path, path string) {
	r.relative(at, path)
	if strings.HasPrefix(path, "..") && !strings.HasPrefix(path, "../") && path != ".." {
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
		r.needs(p, "key", k.Key)
		r.needs(p, "path", k.Path)
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
	r.optional(at.Field("type"), s.Type, "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
}

func (s *GitRepoVolumeSource) check(r *podRules, at *check.Path) {
	r.needs(at, "repository", s.Repository)
	r.relative(at.Field("directory"), s.Directory)
}

func (s *ImageVolumeSource) check(r *podRules, at *check.Path) {
	r.needs(at, "reference", s.Reference)
	if s.PullPolicy != "" {
		r.OneOf(at.Field("pullPolicy"), s.PullPolicy, "Always", "IfNotPresent", "Never")
	}
}

func (s *SecretVolumeSource) check(r *podRules, at *check.Path) {
	r.needs(at, "secretName", s.SecretName)
	r.mode(at.Field("defaultMode"), s.DefaultMode)
	r.keys(at.Field("items"), s.Items)
}

func (s *ConfigMapVolumeSource) check(r *podRules, at *check.Path) {
	r.needs(at, "name", s.Name)
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
	r.needs(at, "path", f.Path)
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
		n := 0
		one := func(field string) *check.Path {
			if n++; n > 1 {
				r.Forbidden(p.Field(field), "may not specify more than 1 volume type per source")
			}
			return p.Field(field)
		}
		src.check(r, at, one, claim)
		if n == 0 {
			r.Required(p, "must specify a volume type")
		}
	}
}

func (s *VolumeProjection) check(r *podRules, at *check.Path, one func(string) *check.Path, claim func(string)) {
	keys := func(p *check.Path, name string, items []KeyToPath) {
		r.needs(p, "name", name)
		r.keys(p.Field("items"), items)
		for _, k := range items {
			claim(k.Path)
		}
	}
	if s.Secret != nil {
		keys(one("secret"), s.Secret.Name, s.Secret.Items)
	}
	if s.ConfigMap != nil {
		keys(one("configMap"), s.ConfigMap.Name, s.ConfigMap.Items)
	}
	if s.DownwardAPI != nil {
		p := one("downwardAPI")
		for i := range s.DownwardAPI.Items {
			r.downward(p, &s.DownwardAPI.Items[i])
			claim(s.DownwardAPI.Items[i].Path)
		}
	}
	if t := s.ServiceAccountToken; t != nil {
		p := one("serviceAccountToken")
		if e := t.ExpirationSeconds; e != nil {
			if *e < 600 {
				r.Invalid(p.Field("expirationSeconds"), *e, "may not specify a duration less than 10 minutes")
			}
			if *e > 1<<32 {
				r.Invalid(p.Field("expirationSeconds"), *e, "may not specify a duration larger than 2^32 seconds")
			}
		}
		r.file(at, t.Path, claim)
	}
	if t := s.ClusterTrustBundle; t != nil {
		p := one("clusterTrustBundle")
		if (t.Name == nil) == (t.SignerName == nil) {
			r.Required(p, "exactly one of name and signerName is required")
		}
		r.Selector(p.Field("labelSelector"), t.LabelSelector)
		r.file(p, t.Path, claim)
	}
	if c := s.PodCertificate; c != nil {
		p := one("podCertificate")
		r.needs(p, "signerName", c.SignerName)
		r.needs(p, "keyType", c.KeyType)
		for _, path := range []string{c.CredentialBundlePath, c.KeyPath, c.CertificateChainPath} {
			claim(path)
		}
	}
}

// file checks the path of a file in a projected volume.
func (r *podRules) file(at *check.Path, path string, claim func(string)) {
	if path == "" {
		r.Required(at.Field("path"), "")
		return
	}
	r.below(at.Field("path"), path)
	claim(path)
}

func (s *PersistentVolumeClaimVolumeSource) check(r *podRules, at *check.Path) {
	r.needs(at, "claimName", s.ClaimName)
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
	r.optional(at.Field("volumeMode"), s.VolumeMode, "Block", "Filesystem")
}

// deprecated lists the sources that are accepted with a warning.
func deprecated() []string {
	return []string{
		"gitRepo", "cloudEPersistentDisk", "storeEVolume", "storeGVolume", "storeFVolume",
		"storeDfs", "storeBfs", "storeAblock", "storeAfs",
	}
}

// WarnOfVolumes returns a function that warns of deprecated volume sources in
// the pod spec at a path.
func WarnOfVolumes(p names.Profile, path ...string) func(obj, old *meta.Object) []string {
	return func(obj, _ *meta.Object) []string {
		var texts []string
		for i, v := range obj.List(slices.Concat(path, []string{"volumes"})...) {
			m, _ := v.(map[string]any)
			for _, source := range deprecated() {
				if field := p.Field(source); m[field] != nil {
					texts = append(texts, check.At(path...).Field("volumes").Index(i).Field(field).String()+": deprecated")
				}
			}
		}
		return texts
	}
}
