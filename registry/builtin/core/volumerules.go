package core

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// podVolumes checks the volumes: one source in each, that source. Only those without
// faults can be mounted.
func (r *podRules) podVolumes(at *check.Path) {
	for i := range r.spec.Volumes {
		v, p, before := &r.spec.Volumes[i], at.Index(i), len(r.Faults)
		r.source(p, v)
		if r.volumes[v.Name] != nil {
			r.Duplicate(p.Field("name"), v.Name)
		}
		if len(r.Faults) == before && !r.found.In(p) {
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
		switch c := s.source.(type) {
		case validator:
			c.validate(&r.specRules, r.sourceAt(at, s.field))
		case podValidator:
			c.validate(r, p)
		}
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
	field  string // spec name
	source any    // nil: not set
}

// validator is a source that the schema does not know all rules of.
type validator interface {
	validate(r *specRules, at *check.Path)
}

// podValidator is one whose rules look at the pod around it.
type podValidator interface {
	validate(r *podRules, at *check.Path)
}

// set returns a source that is set, nil for one that is not.
func set[T any](source *T) any {
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

// sourceAt returns the place at which clients know the faults of a source.
func (r *specRules) sourceAt(at *check.Path, field string) *check.Path {
	if field == "cloudCPersistentDisk" {
		return at.Field("persistentDisk")
	}
	return at.Field(r.names.Field(field))
}

func (s *CloudCPersistentDiskVolumeSource) validate(r *specRules, at *check.Path) {
	if s.PDName == "" {
		r.Required(at.Field("pdName"), "")
	}
	r.Range(at.Field("partition"), int64(s.Partition), 0, 255)
}

// mode checks the permission bits of a file.
func (r *podRules) mode(at *check.Path, mode *int32) {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		r.Invalid(at, *mode, "must be a number between 0 and 0777 (octal), both inclusive")
	}
}

func (s *EmptyDirVolumeSource) validate(r *specRules, at *check.Path) {
	if s.SizeLimit != nil && s.SizeLimit.Sign() < 0 {
		r.Forbidden(at.Field("sizeLimit"), "SizeLimit field must be a valid resource quantity")
	}
}

func (s *ImageVolumeSource) validate(r *podRules, at *check.Path) {
	if r.pod != nil {
		r.Needs(at, "reference", s.Reference)
	}
}

func (s *DownwardAPIVolumeSource) validate(r *podRules, at *check.Path) {
	for i := range s.Items {
		r.downward(at, &s.Items[i])
	}
}

// downward checks a file with a field of the pod. Causes name the field without
// its place in the list, as clients know them.
func (r *podRules) downward(at *check.Path, f *DownwardAPIVolumeFile) {
	r.file(at, f.Path)
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

func (s *ProjectedVolumeSource) validate(r *podRules, at *check.Path) {
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
		if src.validate(r, at, p, claim) > 1 {
			r.Forbidden(p, "may not specify more than 1 volume type per source")
		}
	}
}

// validate checks what a projected volume has at a place of its list, and returns
// of how many kinds that is.
func (s *VolumeProjection) validate(r *podRules, at, p *check.Path, claim func(string)) (n int) {
	keys := func(items []KeyToPath) {
		n++
		for _, k := range items {
			claim(k.Path)
		}
	}
	if s.Secret != nil {
		keys(s.Secret.Items)
	}
	if s.ConfigMap != nil {
		keys(s.ConfigMap.Items)
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
		r.file(at, t.Path) // clients know the cause by this place
	}
	if t := s.ClusterTrustBundle; t != nil {
		n++
		t.validate(r, p.Field("clusterTrustBundle"))
		claim(t.Path)
	}
	if c := s.PodCertificate; c != nil {
		n++
		c.validate(r, p.Field("podCertificate"))
		for _, path := range []string{c.CredentialBundlePath, c.KeyPath, c.CertificateChainPath} {
			claim(path)
		}
	}
	return n
}

func (t *ClusterTrustBundleProjection) validate(r *podRules, at *check.Path) {
	switch {
	case t.Name != nil && t.SignerName != nil:
		r.Invalid(at, t, "only one of name and signerName may be used")
	case t.Name != nil:
		r.Needs(at, "name", *t.Name)
		r.Format(at.Field("name"), *t.Name, checkBundleName(*t.Name))
		if t.LabelSelector != nil {
			r.Invalid(at.Field("labelSelector"), t.LabelSelector, "labelSelector must be unset if name is specified")
		}
	case t.SignerName != nil:
		r.Needs(at, "signerName", *t.SignerName)
	default:
		r.Required(at, "either name or signerName must be specified")
	}
}

// checkBundleName says what is wrong with the name of a ClusterTrustBundle: a domain name, after the
// name of its signer if it has one, in which colons stand for slashes.
func checkBundleName(name string) (reasons []string) {
	if signer := strings.LastIndexByte(name, ':'); signer >= 0 {
		name = name[signer+1:]
	}
	for _, why := range meta.CheckDNSSubdomain(name) {
		reasons = append(reasons, "not a valid clustertrustbundlename: "+why)
	}
	return reasons
}

// Bounds of maxExpirationSeconds.
const (
	shortestCertificate = 60 * 60
	longestCertificate  = 91 * 24 * 60 * 60
	longestOfOwnSigners = 24 * 60 * 60 // for signers in the server's own domain
)

func (c *PodCertificateProjection) validate(r *podRules, at *check.Path) {
	const types = "RSA3072 RSA4096 ECDSAP256 ECDSAP384 ECDSAP521 ED25519"
	r.OneOf(at.Field("keyType"), c.KeyType, strings.Fields(types)...)
	for key := range c.UserAnnotations {
		if domain, _, ok := strings.Cut(key, "/"); !ok || domain == "" {
			r.Invalid(at.Field("userAnnotations"), key, "must be a domain-prefixed key, such as 'example.com/name'")
			continue
		}
		r.Format(at.Field("userAnnotations"), key, meta.CheckQualifiedName(strings.ToLower(key)))
	}
	longest := int32(longestCertificate)
	own := r.names.Domains()[0]
	if domain, _, _ := strings.Cut(c.SignerName, "/"); domain == own || strings.HasSuffix(domain, "."+own) {
		longest = longestOfOwnSigners
	}
	switch most := c.MaxExpirationSeconds; {
	case most == nil:
	case *most < shortestCertificate:
		r.Invalid(at.Field("maxExpirationSeconds"), *most, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", shortestCertificate))
	case *most > longest:
		r.Invalid(at.Field("maxExpirationSeconds"), *most, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", longest))
	}
	paths := 0
	for _, file := range [][2]string{{"credentialBundlePath", c.CredentialBundlePath}, {"keyPath", c.KeyPath}, {"certificateChainPath", c.CertificateChainPath}} {
		if file[1] != "" {
			paths++
			r.Format(at.Field(file[0]), file[1], check.FilePath(file[1]))
		}
	}
	if paths == 0 {
		r.Required(at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
	}
}

// file checks the path of a file whose causes name another place than its own.
func (r *podRules) file(at *check.Path, path string) {
	r.Needs(at, "path", path)
	r.Format(at.Field("path"), path, check.FilePath(path))
}

func (s *EphemeralVolumeSource) validate(r *podRules, at *check.Path) {
	at = at.Field("volumeClaimTemplate")
	t := s.VolumeClaimTemplate
	if t == nil {
		return
	}
	r.Faults = append(r.Faults, CheckClaimMetadata(at.Field("metadata"), &t.ObjectMeta)...)
	r.claimSpec(at.Field("spec"), &t.Spec)
}

// CheckClaimMetadata returns what is wrong with the metadata in the template of a claim,
// which has labels and annotations and nothing else.
func CheckClaimMetadata(at *check.Path, m *meta.ObjectMeta) (f check.Faults) {
	checkAnnotations(&f, at.Field("annotations"), m.Annotations)
	f.Labels(at.Field("labels"), m.Labels)
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"name", m.Name != ""}, {"generateName", m.GenerateName != ""}, {"namespace", m.Namespace != ""}, {"selfLink", m.SelfLink != ""},
		{"uid", m.UID != ""}, {"resourceVersion", m.ResourceVersion != ""}, {"generation", m.Generation != 0},
		{"creationTimestamp", !m.CreationTimestamp.IsZero()}, {"deletionTimestamp", m.DeletionTimestamp != nil},
		{"deletionGracePeriodSeconds", m.DeletionGracePeriodSeconds != nil}, {"ownerReferences", len(m.OwnerReferences) > 0},
		{"finalizers", len(m.Finalizers) > 0}, {"managedFields", len(m.ManagedFields) > 0},
	} {
		if field.set {
			f.Forbidden(at.Field(field.name), "cannot be set")
		}
	}
	return f
}
