package core

import (
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
)

func (s *NFSVolumeSource) validate(r *specRules, at *check.Path) {
	if !strings.HasPrefix(s.Path, "/") {
		r.Invalid(at.Field("path"), s.Path, "must be an absolute path")
	}
}

func (s *ISCSIVolumeSource) validate(r *specRules, at *check.Path) {
	s.validateDisk(r, at, s.SecretRef != nil)
}

// validateDisk checks a disk. hasSecret is whether its source refers to a Secret.
func (d *ISCSIDisk) validateDisk(r *specRules, at *check.Path, hasSecret bool) {
	if d.IQN != "" && !iscsiName(d.IQN) {
		r.Invalid(at.Field("iqn"), d.IQN, "must be valid format")
	}
	if (d.DiscoveryCHAPAuth || d.SessionCHAPAuth) && !hasSecret {
		r.Required(at.Field("secretRef"), "")
	}
	if d.InitiatorName != nil && !iscsiName(*d.InitiatorName) {
		r.Invalid(at.Field("initiatorname"), *d.InitiatorName, "must be valid format") // the field of kube-apiserver
	}
}

// iscsiName reports whether a name has one of the forms iqn.yyyy-mm.domain:name, eui. with 16 or naa.
// with 32 letters and digits.
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

func (s *FCVolumeSource) validate(r *specRules, at *check.Path) {
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
		r.Range(at.Field("lun"), int64(*s.Lun), 0, 255)
	}
}

func (d *FlexDriver) validate(r *specRules, at *check.Path) {
	at = at.Field("options")
	for _, k := range slices.Sorted(maps.Keys(d.Options)) {
		domain, _, _ := strings.Cut(strings.ToLower(k), "/")
		for _, own := range r.names.Domains() {
			if strings.HasSuffix("."+domain, "."+own) {
				r.Invalid(at.Key(k), k, strings.Join(r.names.Domains(), " and ")+" namespaces are reserved")
				break
			}
		}
	}
}

func (s *CSIVolumeSource) validate(r *specRules, at *check.Path) {
	if ref := s.NodePublishSecretRef; ref != nil {
		r.Subdomain(at.Field("name"), ref.Name) // the field of kube-apiserver
	}
}

func (s *CloudBDiskVolumeSource) validate(r *specRules, at *check.Path) {
	form := "https://"
	if s.Kind != nil && *s.Kind == "Managed" {
		form = "/subscriptions/"
	}
	if s.Kind != nil && !strings.HasPrefix(s.DiskURI, form) {
		r.NotSupported(at.Field("diskURI"), s.DiskURI, form+"...")
	}
}

func (s *StoreDfsVolumeSource) validate(r *specRules, at *check.Path) {
	switch {
	case s.Registry == "":
	case len(s.Tenant) >= 65:
		r.Required(at.Field("tenant"), "must be a UUID and may not exceed a length of 64 characters")
	default:
		for pair := range strings.SplitSeq(s.Registry, ",") {
			if host, port, ok := strings.Cut(pair, ":"); !ok || host == "" || port == "" {
				r.Invalid(at.Field("registry"), s.Registry, "must be a host:port pair or multiple pairs separated by commas")
			}
		}
	}
}

func (s *StoreGVolumeSource) validate(r *specRules, at *check.Path) {
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
