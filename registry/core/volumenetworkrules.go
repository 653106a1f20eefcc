package core

import (
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
	switch {
	case s.IQN == "":
		r.Required(at.Field("iqn"), "")
	case !strings.HasPrefix(s.IQN, "iqn.") && !strings.HasPrefix(s.IQN, "eui.") && !strings.HasPrefix(s.IQN, "naa."):
		r.Invalid(at.Field("iqn"), s.IQN, "must be valid format starting with iqn, eui, or naa")
	}
	r.unit(at.Field("lun"), s.Lun)
	if (s.DiscoveryCHAPAuth || s.SessionCHAPAuth) && s.SecretRef == nil {
		r.Required(at.Field("secretRef"), "")
	}
	if s.SecretRef != nil {
		r.Needs(at.Field("secretRef"), "name", s.SecretRef.Name)
	}
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
	case targets != 0 && s.Lun == nil:
		r.Required(at.Field("lun"), "lun is required if targetWWNs is specified")
	case targets != 0:
		r.unit(at.Field("lun"), *s.Lun)
	}
}

func (s *FlexVolumeSource) check(r *podRules, at *check.Path) {
	r.Needs(at, "driver", s.Driver)
}

func (s *CSIVolumeSource) check(r *podRules, at *check.Path) {
	r.csiDriver(at.Field("driver"), s.Driver)
	if ref := s.NodePublishSecretRef; ref != nil {
		r.Needs(at.Field("nodePublishSecretRef"), "name", ref.Name)
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
	case strings.Contains(s.DatasetName, "/"):
		r.Invalid(at.Field("datasetName"), s.DatasetName, "must not contain '/'")
	}
}
