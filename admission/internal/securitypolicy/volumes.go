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

func checkVolumes(f *check.Violations, policy, pod *meta.Object, rootCA string) {
	allowed, writable := policy.Strings("volumes"), writableMounts(pod)
	for i, v := range pod.Objects("volumes") {
		at := check.At("spec", "volumes").Index(i)
		for _, source := range slices.Sorted(maps.Keys(v.Tree())) {
			if source == "name" {
				continue
			}
			kind := source
			if source == "projected" && isServiceAccountToken(v, rootCA) && !slices.Contains(allowed, source) {
				kind = "secret"
			}
			if !slices.Contains(allowed, kind) && !slices.Contains(allowed, "*") {
				f.Invalid(at, kind, kind+" volumes are not allowed to be used")
				continue
			}
			switch source {
			case "hostPath":
				checkHostPath(f, at, policy, v, writable[v.String("name")])
			case "flexVolume":
				checkDriver(f, at.Field("driver"), policy.Objects("allowedFlexVolumes"), "driver", v.String(source, "driver"), "Flexvolume driver is not allowed to be used")
			case "csi":
				checkDriver(f, at.Field(source).Field("driver"), policy.Objects("allowedCSIDrivers"), "name", v.String(source, "driver"), "Inline CSI driver is not allowed to be used")
			}
		}
	}
}

// isServiceAccountToken reports whether a volume is the projected volume of a service account token.
// That volume was a secret volume when the policies were written, so that a policy that allows secrets
// allows it.
func isServiceAccountToken(v *meta.Object, rootCA string) bool {
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

func checkDriver(f *check.Violations, at *check.Path, allowed []*meta.Object, field, driver, why string) {
	if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(a *meta.Object) bool { return a.String(field) == driver }) {
		f.Invalid(at, driver, why)
	}
}

// writableMounts returns, by volume name, the readOnly fields of the mounts that are writable.
func writableMounts(pod *meta.Object) map[string][]*check.Path {
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

// checkHostPath checks that a host path is below an allowed prefix, and that mounts are read-only if
// all matching prefixes are.
func checkHostPath(f *check.Violations, at *check.Path, policy, v *meta.Object, written []*check.Path) {
	prefixes := policy.Objects("allowedHostPaths")
	if len(prefixes) == 0 {
		return
	}
	hostPath := path.Clean(v.String("hostPath", "path"))
	matches, writable := false, false
	for _, p := range prefixes {
		prefix := strings.TrimSuffix(path.Clean(p.String("pathPrefix")), "/")
		if hostPath == prefix || strings.HasPrefix(hostPath, prefix+"/") {
			matches, writable = true, writable || !p.Bool("readOnly")
		}
	}
	switch {
	case !matches:
		f.Invalid(at.Field("hostPath").Field("pathPrefix"), v.String("hostPath", "path"), "is not allowed to be used")
	case !writable:
		for _, at := range written {
			f.Invalid(at, false, "must be read-only")
		}
	}
}
