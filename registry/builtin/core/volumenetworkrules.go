package core

import (
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/registry/check"
	"orch.io/controlplane/registry/meta"
)

func (s *NFSVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "server", s.Server)
	r.Needs(at, "path", s.Path)
	if !strings.HasPrefix(s.Path, "/") {
		r.Invalid(at.Field("path"), s.Path, "must be an absolute path")
	}
}

func (s *ISCSIVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "targetPortal", s.TargetPortal)
	r.Needs(at, "iqn", s.IQN)
	if s.IQN != "" && !iscsiName(s.IQN) {
		r.Invalid(at.Field("iqn"), s.IQN, "must be valid format")
	}
	r.unit(at.Field("lun"), s.Lun)
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		r.Required(at.Field("secretRef"), "")
	}
	if n := s.InitiatorName; n != nil && !iscsiName(*n) {
		r.Invalid(at.Field("initiatorname"), *n, "must be valid format") // as clients know the field
	}
}

// iscsiName reports whether a name is one of the three kinds that there are:
// iqn.yyyy-mm.domain:rest, or eui. or naa. with 16 or 32 letters and digits.
func iscsiName(name string) bool {
	kind, rest, _ := strings.Cut(name, ".")
	switch kind {
	case "eui":
		return len(rest) == 16 && !strings.ContainsFunc(rest, notAlnum)
	case "naa":
		return len(rest) == 32 && !strings.ContainsFunc(rest, notAlnum)
	case "iqn":
		date, domain, _ := strings.Cut(rest, ".")
		domain, unique, ok := strings.Cut(domain, ":")
		form := strings.Map(func(c rune) rune {
			if '0' <= c && c <= '9' {
				return '0'
			}
			return c
		}, date)
		return ok && form == "0000-00" && domain != "" && unique != "" && !strings.ContainsAny(unique, ",;*&$| \t\n") &&
			!strings.ContainsFunc(domain, func(c rune) bool { return notAlnum(c) && c != '-' && c != '.' })
	}
	return false
}

func notAlnum(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
}

// unit checks the number of a unit or partition.
func (r *podRules) unit(at *check.Path, n int32) { r.Range(at, int64(n), 0, 255) }

func (s *FCVolumeSource) check(r *podRules, at *check.Path) {
	targets, ids := len(s.TargetWWNs), len(s.WWIDs)
	switch {
	case targets == 0 && ids == 0:
		r.Required(at.Field("targetWWNs"), "must specify either targetWWNs or wwids, but not both")
	case targets != 0 && ids != 0:
		r.Invalid(at.Field("targetWWNs"), s.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously")
	}
	switch {
	case targets != 0 && s.Lun == nil:
		r.Required(at.Field("lun"), "lun is required if targetWWNs is specified")
	case targets != 0:
		r.unit(at.Field("lun"), *s.Lun)
	}
}

func (s *FlexVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "driver", s.Driver)
	for _, k := range slices.Sorted(maps.Keys(s.Options)) {
		domain, _, _ := strings.Cut(strings.ToLower(k), "/")
		for _, own := range r.names.Domains() {
			if strings.HasSuffix("."+domain, "."+own) {
				r.Invalid(at.Field("options").Key(k), k, strings.Join(r.names.Domains(), " and ")+" namespaces are reserved")
				break
			}
		}
	}
}

func (s *CSIVolumeSource) check(r *podRules, at *check.Path) {
	r.csiDriver(at.Field("driver"), s.Driver)
	if ref := s.NodePublishSecretRef; ref != nil {
		r.Needs(at.Field("nodePublishSecretRef"), "name", ref.Name)
		r.Subdomain(at.Field("name"), ref.Name) // as clients know the field
	}
}

func (r *podRules) csiDriver(at *check.Path, name string) {
	if name == "" {
		r.Required(at, "")
		return
	}
	if len(name) > 63 {
		r.TooLong(at, 63)
	}
	r.Format(at, strings.ToLower(name), meta.CheckDNSSubdomain(strings.ToLower(name)))
}

func (s *CloudAElasticBlockStoreVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "volumeID", s.VolumeID)
	r.unit(at.Field("partition"), s.Partition)
}

func (s *CloudBDiskVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "diskName", s.DiskName)
	r.Needs(at, "diskURI", s.DiskURI)
	r.OptionalOneOf(at.Field("cachingMode"), s.CachingMode, "None", "ReadOnly", "ReadWrite")
	r.OptionalOneOf(at.Field("kind"), s.Kind, "Dedicated", "Managed", "Shared")
	form := "https://"
	if s.Kind != nil && *s.Kind == "Managed" {
		form = "/subscriptions/"
	}
	if s.Kind != nil && !strings.HasPrefix(s.DiskURI, form) {
		r.NotSupported(at.Field("diskURI"), s.DiskURI, form+"...")
	}
}

func (s *CloudBFileVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "secretName", s.SecretName)
	r.Needs(at, "shareName", s.ShareName)
}

func (s *CloudCPersistentDiskVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "pdName", s.PDName)
	r.unit(at.Field("partition"), s.Partition)
}

func (s *CloudDVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "volumePath", s.VolumePath)
}

func (s *CloudEPersistentDiskVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "pdID", s.PdID)
}

func (s *BlockSvcVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "volumeID", s.VolumeID)
	if s.SecretRef != nil {
		r.Needs(at.Field("secretRef"), "name", s.SecretRef.Name)
	}
}

func (s *StoreAfsVolumeSource) check(r *podRules, at *check.Path) {
	if len(s.Monitors) == 0 {
		r.Required(at.Field("monitors"), "")
	}
}

func (s *StoreAblockVolumeSource) check(r *podRules, at *check.Path) {
	if len(s.Monitors) == 0 {
		r.Required(at.Field("monitors"), "")
	}
	r.Needs(at, "image", s.Image)
}

func (s *StoreBfsVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "endpoints", s.EndpointsName)
	r.Needs(at, "path", s.Path)
}

func (s *StoreCVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "volumeID", s.VolumeID)
}

func (s *StoreDfsVolumeSource) check(r *podRules, at *check.Path) {
	switch {
	case s.Registry == "":
		r.Required(at.Field("registry"), "must be a host:port pair or multiple pairs separated by commas")
	case len(s.Tenant) >= 65:
		r.Required(at.Field("tenant"), "must be a UUID and may not exceed a length of 64 characters")
	default:
		for pair := range strings.SplitSeq(s.Registry, ",") {
			if host, port, ok := strings.Cut(pair, ":"); !ok || host == "" || port == "" {
				r.Invalid(at.Field("registry"), s.Registry, "must be a host:port pair or multiple pairs separated by commas")
			}
		}
	}
	r.Needs(at, "volume", s.Volume)
}

func (s *StoreEVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "gateway", s.Gateway)
	r.Needs(at, "system", s.System)
	r.Needs(at, "volumeName", s.VolumeName)
}

func (s *StoreFVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "volumeName", s.VolumeName)
	for field, name := range map[string]string{"volumeName": s.VolumeName, "volumeNamespace": s.VolumeNamespace} {
		if name != "" {
			r.Format(at.Field(field), name, meta.CheckDNSLabel(name))
		}
	}
	if s.SecretRef != nil {
		r.Needs(at.Field("secretRef"), "name", s.SecretRef.Name)
	}
}

func (s *StoreGVolumeSource) check(r *podRules, at *check.Path) {
	switch {
	case s.DatasetName == "" && s.DatasetUUID == "":
		r.Required(at, "one of datasetName and datasetUUID is required")
	case s.DatasetName != "" && s.DatasetUUID != "":
		r.Invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously")
	}
	if strings.Contains(s.DatasetName, "/") {
		r.Invalid(at.Field("datasetName"), s.DatasetName, "must not contain '/'")
	}
}
