package securitypolicy

import (
	"maps"
	"path"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/podspec"
)

func checkVolumes(f *check.Faults, policy, pod *meta.Object, rootCA string) {
	allowed, written := policy.Strings("volumes"), written(pod)
	for i, v := range pod.Objects("volumes") {
		at := check.At("spec", "volumes").Index(i)
		for _, source := range slices.Sorted(maps.Keys(v.Tree())) {
			if source == "name" {
				continue
			}
			kind := source
			if source == "projected" && ownToken(v, rootCA) && !slices.Contains(allowed, source) {
				kind = "secret"
			}
			if !slices.Contains(allowed, kind) && !slices.Contains(allowed, "*") {
				f.Invalid(at, kind, kind+" volumes are not allowed to be used")
				continue
			}
			switch source {
			case "hostPath":
				checkHostPath(f, at, policy, v, written[v.String("name")])
			case "flexVolume":
				checkDriver(f, at.Field("driver"), policy.Objects("allowedFlexVolumes"), "driver", v.String(source, "driver"), "Flexvolume driver is not allowed to be used")
			case "csi":
				checkDriver(f, at.Field(source).Field("driver"), policy.Objects("allowedCSIDrivers"), "name", v.String(source, "driver"), "Inline CSI driver is not allowed to be used")
			}
		}
	}
}

// ownToken reports whether a volume is what pods get of their service account: it was a
// secret once, and where policies allow those they mean it.
func ownToken(v *meta.Object, rootCA string) bool {
	for _, source := range v.Objects("projected", "sources") {
		for kind := range source.Tree() {
			switch kind {
			case "serviceAccountToken":
			case "configMap":
				if source.String(kind, "name") != rootCA {
					return false
				}
			case "downwardAPI":
				for _, item := range source.Objects(kind, "items") {
					if item.String("fieldRef", "fieldPath") != "metadata.namespace" {
						return false
					}
				}
			default:
				return false
			}
		}
	}
	return true
}

func checkDriver(f *check.Faults, at *check.Path, allowed []*meta.Object, field, driver, why string) {
	if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(a *meta.Object) bool { return a.String(field) == driver }) {
		f.Invalid(at, driver, why)
	}
}

// written returns by the names of volumes where containers may write them.
func written(pod *meta.Object) map[string][]*check.Path {
	all := map[string][]*check.Path{}
	for _, list := range []string{podspec.Init, podspec.Containers, podspec.Ephemeral} {
		for i, c := range pod.Objects(list) {
			for k, m := range c.Objects("volumeMounts") {
				if !m.Bool("readOnly") {
					all[m.String("name")] = append(all[m.String("name")], check.At("spec", list).Index(i).Field("volumeMounts").Index(k).Field("readOnly"))
				}
			}
		}
	}
	return all
}

// checkHostPath checks that a path of the node is one of those that are allowed, and that
// nothing is written to what is for reading.
func checkHostPath(f *check.Faults, at *check.Path, policy, v *meta.Object, written []*check.Path) {
	prefixes := policy.Objects("allowedHostPaths")
	if len(prefixes) == 0 {
		return
	}
	of := path.Clean(v.String("hostPath", "path"))
	fits, writable := false, false
	for _, p := range prefixes {
		prefix := strings.TrimSuffix(path.Clean(p.String("pathPrefix")), "/")
		if of == prefix || strings.HasPrefix(of, prefix+"/") {
			fits, writable = true, writable || !p.Bool("readOnly")
		}
	}
	switch {
	case !fits:
		f.Invalid(at.Field("hostPath").Field("pathPrefix"), v.String("hostPath", "path"), "is not allowed to be used")
	case !writable:
		for _, at := range written {
			f.Invalid(at, false, "must be read-only")
		}
	}
}
