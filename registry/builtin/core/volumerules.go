package core

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// podVolumes checks the volumes. Only volumes without violations can be mounted.
func (r *podRules) podVolumes(at *check.Path) {
	for i := range r.spec.Volumes {
		v, p, before := &r.spec.Volumes[i], at.Index(i), len(r.Violations)
		r.source(p, v)
		if r.volumes[v.Name] != nil {
			r.Duplicate(p.Field("name"), v.Name)
		}
		if len(r.Violations) == before && !r.found.In(p) {
			r.volumes[v.Name] = v
		}
	}
}

// maxInitiated limits the length of the initiator's connection name, which contains the name of the
// volume.
const maxInitiated = 64

// source checks that a volume has exactly 1 source, and that source.
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
			r.Format(at.Field("name"), v.Name, meta.CheckDNSSubdomain(r.pod.Name+"-"+v.Name)) // the name of the claim
		}
		if i := v.ISCSI; i != nil && i.InitiatorName != nil && len(v.Name+":"+i.TargetPortal) > maxInitiated {
			r.Invalid(at.Field("name"), v.Name, "with the portal it must be under 64 characters if there is an initiator's name")
		}
	}
	if !found {
		r.Required(at, "must specify a volume type")
	}
}

// volumeSource is a source in the list of possible sources.
type volumeSource struct {
	field  string // field name by spec names
	source any    // nil if the source is not set
}

// validator is a source with rules beyond the schema.
type validator interface {
	validate(r *specRules, at *check.Path)
}

// podValidator is a source whose rules need the pod.
type podValidator interface {
	validate(r *podRules, at *check.Path)
}

// orNil converts a typed nil pointer to an untyped nil.
func orNil[T any](source *T) any {
	if source == nil {
		return nil
	}
	return source
}

// sources returns all possible sources in the order of their validation.
func (v *Volume) sources() []volumeSource {
	return []volumeSource{
		{"emptyDir", orNil(v.EmptyDir)},
		{"hostPath", orNil(v.HostPath)},
		{"gitRepo", orNil(v.GitRepo)},
		{"cloudCPersistentDisk", orNil(v.CloudCPersistentDisk)},
		{"cloudAElasticBlockStore", orNil(v.CloudAElasticBlockStore)},
		{"secret", orNil(v.Secret)},
		{"nfs", orNil(v.NFS)},
		{"iscsi", orNil(v.ISCSI)},
		{"storeBfs", orNil(v.StoreBfs)},
		{"storeGVolume", orNil(v.StoreGVolume)},
		{"persistentVolumeClaim", orNil(v.PersistentVolumeClaim)},
		{"storeAblock", orNil(v.StoreAblock)},
		{"blockSvcVolume", orNil(v.BlockSvcVolume)},
		{"storeAfs", orNil(v.StoreAfs)},
		{"storeDfs", orNil(v.StoreDfs)},
		{"downwardAPI", orNil(v.DownwardAPI)},
		{"fc", orNil(v.FC)},
		{"flexVolume", orNil(v.FlexVolume)},
		{"configMap", orNil(v.ConfigMap)},
		{"cloudBFile", orNil(v.CloudBFile)},
		{"cloudDVolume", orNil(v.CloudDVolume)},
		{"cloudEPersistentDisk", orNil(v.CloudEPersistentDisk)},
		{"storeCVolume", orNil(v.StoreCVolume)},
		{"cloudBDisk", orNil(v.CloudBDisk)},
		{"storeFVolume", orNil(v.StoreFVolume)},
		{"projected", orNil(v.Projected)},
		{"storeEVolume", orNil(v.StoreEVolume)},
		{"csi", orNil(v.CSI)},
		{"ephemeral", orNil(v.Ephemeral)},
		{"image", orNil(v.Image)},
	}
}

// sourceAt returns the path of violations in a source. The disk of cloud C has a path of its own at
// kube-apiserver.
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
		r.RequiredField(at, "reference", s.Reference)
	}
}

func (s *DownwardAPIVolumeSource) validate(r *podRules, at *check.Path) {
	for i := range s.Items {
		r.downward(at, &s.Items[i])
	}
}

// downward checks a file with a field of the pod. The path of violations omits the index, as at
// kube-apiserver.
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
	// claim reports a path that another source uses.
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

// validate checks a source of a projected volume and returns the number of fields that are set. at is
// the path of the volume, and p the path of the source.
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
		r.file(at, t.Path) // the path of kube-apiserver
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
		r.RequiredField(at, "name", *t.Name)
		r.Format(at.Field("name"), *t.Name, checkBundleName(*t.Name))
		if t.LabelSelector != nil {
			r.Invalid(at.Field("labelSelector"), t.LabelSelector, "labelSelector must be unset if name is specified")
		}
	case t.SignerName != nil:
		r.RequiredField(at, "signerName", *t.SignerName)
	default:
		r.Required(at, "either name or signerName must be specified")
	}
}

// checkBundleName returns the violations in the name of a ClusterTrustBundle: a domain name, preceded
// by the signer and a colon if the bundle has a signer. Slashes of the signer are written as colons.
func checkBundleName(name string) (reasons []string) {
	if signer := strings.LastIndexByte(name, ':'); signer >= 0 {
		name = name[signer+1:]
	}
	for _, why := range meta.CheckDNSSubdomain(name) {
		reasons = append(reasons, "not a valid clustertrustbundlename: "+why)
	}
	return reasons
}

// Limits of maxExpirationSeconds.
const (
	shortestCertificate = 60 * 60
	longestCertificate  = 91 * 24 * 60 * 60
	longestOfOwnSigners = 24 * 60 * 60 // for signers in the domain of Kubernetes
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
	ownDomain := r.names.Domains()[0]
	if domain, _, _ := strings.Cut(c.SignerName, "/"); domain == ownDomain || strings.HasSuffix(domain, "."+ownDomain) {
		longest = longestOfOwnSigners
	}
	switch seconds := c.MaxExpirationSeconds; {
	case seconds == nil:
	case *seconds < shortestCertificate:
		r.Invalid(at.Field("maxExpirationSeconds"), *seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be >= %d", shortestCertificate))
	case *seconds > longest:
		r.Invalid(at.Field("maxExpirationSeconds"), *seconds, fmt.Sprintf("if provided, maxExpirationSeconds must be <= %d", longest))
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

// file checks the path of a file, whose violations have the path of the parent.
func (r *podRules) file(at *check.Path, path string) {
	r.RequiredField(at, "path", path)
	r.Format(at.Field("path"), path, check.FilePath(path))
}

func (s *EphemeralVolumeSource) validate(r *podRules, at *check.Path) {
	at = at.Field("volumeClaimTemplate")
	t := s.VolumeClaimTemplate
	if t == nil {
		return
	}
	r.Violations = append(r.Violations, CheckClaimMetadata(at.Field("metadata"), &t.ObjectMeta)...)
	r.claimSpec(at.Field("spec"), &t.Spec)
}

// CheckClaimMetadata returns the violations in the metadata of a claim template, which may only have
// labels and annotations.
func CheckClaimMetadata(at *check.Path, m *meta.ObjectMeta) (f check.Violations) {
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
