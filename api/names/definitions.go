package names

import "strings"

// definitions maps Go types, as package.Type with the package relative to api or
// registry/builtin, to OpenAPI definition names that do not follow from the Go name. Types of
// package scale have no package name here.
var definitions = map[string]string{
	"core.EventView":             "api.events.v1.Event",
	"core.EventViewSeries":       "api.events.v1.EventSeries",
	".Scale":                     "api.autoscaling.v1.Scale",
	".Spec":                      "api.autoscaling.v1.ScaleSpec",
	".Status":                    "api.autoscaling.v1.ScaleStatus",
	"replicas.FormerScale":       "api.extensions.v1beta1.Scale",
	"replicas.FormerScaleStatus": "api.extensions.v1beta1.ScaleStatus",
}

// volumeDefinitions maps Go types of volume sources with neutral vendor names to the names that
// Kubernetes uses.
var volumeDefinitions = map[string]string{
	"CloudAElasticBlockStoreVolumeSource": "AWSElasticBlockStoreVolumeSource",
	"CloudBDiskVolumeSource":              "AzureDiskVolumeSource",
	"CloudBFileVolumeSource":              "AzureFileVolumeSource",
	"CloudCPersistentDiskVolumeSource":    "GCEPersistentDiskVolumeSource",
	"CloudDVolumeSource":                  "VsphereVirtualDiskVolumeSource",
	"CloudEPersistentDiskVolumeSource":    "PhotonPersistentDiskVolumeSource",
	"BlockSvcVolumeSource":                "CinderVolumeSource",
	"StoreAfsVolumeSource":                "CephFSVolumeSource",
	"StoreAblockVolumeSource":             "RBDVolumeSource",
	"StoreBfsVolumeSource":                "GlusterfsVolumeSource",
	"StoreCVolumeSource":                  "PortworxVolumeSource",
	"StoreDfsVolumeSource":                "QuobyteVolumeSource",
	"StoreEVolumeSource":                  "ScaleIOVolumeSource",
	"StoreFVolumeSource":                  "StorageOSVolumeSource",
	"StoreGVolumeSource":                  "FlockerVolumeSource",
}

// definitionPackages maps Go packages to definition prefixes other than api.
var definitionPackages = map[string]string{
	"meta":          "apimachinery.pkg.apis.meta.v1",
	"autoscaling":   "api.autoscaling.v2",
	"autoscalingv1": "api.autoscaling.v1",
	"extensions":    "apiextensions-apiserver.pkg.apis.apiextensions.v1",
	"roles":         "api.rbac.v1",
}

// Definition returns the OpenAPI definition name of a Go type of this module. pkg is the
// package relative to api or registry/builtin, such as "core" or "flow/v1beta3". The name of a
// type of an older version ends with the version, such as IngressV1beta1.
func (p Profile) Definition(pkg, name string) string {
	if i := strings.LastIndexByte(name, 'V'); i > 0 && strings.Contains(name[i:], "beta") {
		place := strings.TrimSuffix(p.Definition(pkg, name[:i]), "."+name[:i])
		return place[:strings.LastIndexByte(place, '.')] + ".v" + name[i+1:] + "." + name[:i]
	}
	if w, ok := definitions[pkg+"."+name]; ok {
		return p.DefinitionName(w)
	}
	if w, ok := volumeDefinitions[name]; ok && p == Kubernetes && pkg == "core" {
		name = w
	}
	if place, ok := definitionPackages[pkg]; ok {
		return p.DefinitionName(place, name)
	}
	group, version, ok := strings.Cut(pkg, "/")
	if !ok {
		version = "v1"
	}
	return p.DefinitionName("api", group, strings.ReplaceAll(version, "/", "."), name)
}

// GroupBase returns the wire name of a group without the domain that the API's own groups
// share.
func (p Profile) GroupBase(wire string) string {
	const base = "x"
	return strings.TrimSuffix(wire, strings.TrimPrefix(p.Group(base+".orch.io"), base))
}
