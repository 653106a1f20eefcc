package core

import (
	"fmt"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
)

// deprecatedVolume is a deprecated volume source with its warning.
type deprecatedVolume struct{ source, why string }

// deprecatedVolumes lists the deprecated sources of pods and persistent volumes.
var deprecatedVolumes = []deprecatedVolume{
	{"cloudEPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
	{"gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
	{"storeEVolume", "deprecated in v1.16, non-functional in v1.22+"},
	{"storeGVolume", "deprecated in v1.22, non-functional in v1.25+"},
	{"storeFVolume", "deprecated in v1.22, non-functional in v1.25+"},
	{"storeDfs", "deprecated in v1.22, non-functional in v1.25+"},
	{"storeBfs", "deprecated in v1.25, non-functional in v1.26+"},
	{"storeAfs", "deprecated in v1.28, non-functional in v1.31+"},
	{"storeAblock", "deprecated in v1.28, non-functional in v1.31+"},
}

// volumes warns about deprecated sources, fractional bytes in claims, and overlapping files of a
// volume.
func (w *podWarnings) volumes() {
	list := w.spec.Objects("volumes")
	for i, v := range list {
		at := w.at.Field("volumes").Index(i)
		for _, d := range deprecatedVolumes {
			if field := w.names.Field(d.source); v.Map(field) != nil {
				w.warn(at.Field(field), d.why)
			}
		}
		claim := at.Field("ephemeral").Field("volumeClaimTemplate").Field("spec")
		w.claim(claim, meta.NewObject(v.Map("ephemeral", "volumeClaimTemplate", "spec")))
	}
	for _, v := range list {
		w.files(v)
	}
}

// claim warns about fractional bytes in the spec of a claim.
func (w *podWarnings) claim(at *check.Path, spec *meta.Object) {
	for _, list := range []string{"requests", "limits"} {
		w.fractionalBytes(at.Field("resources").Field(list), spec.Map("resources", list), "storage")
	}
}

// files warns about overlapping paths of files in a volume.
func (w *podWarnings) files(v *meta.Object) {
	volume := func(source string) string { return fmt.Sprintf("volume %q (%s)", v.String("name"), source) }
	if m := v.Map("configMap"); m != nil {
		w.overlaps(volume(fmt.Sprintf("ConfigMap %q", m["name"])), filesOf(meta.NewObject(m), ""))
	}
	if m := v.Map("secret"); m != nil {
		w.overlaps(volume(fmt.Sprintf("Secret %q", m["secretName"])), filesOf(meta.NewObject(m), ""))
	}
	if m := v.Map("downwardAPI"); m != nil {
		w.overlaps(volume("DownwardAPI"), filesOf(meta.NewObject(m), ""))
	}
	var files []volumeFile
	for _, source := range v.Objects("projected", "sources") {
		if len(source.Tree()) == 0 {
			w.texts = append(w.texts, volume("Projected")+" has no sources provided")
		}
		files = append(files, projectedFiles(source)...)
	}
	w.overlaps(volume("Projected"), files)
}

// volumeFile is the path of a file in a volume and, if the volume has several sources, the source.
type volumeFile struct{ path, source string }

func (f volumeFile) String() string {
	if f.source == "" {
		return fmt.Sprintf("%q", f.path)
	}
	return fmt.Sprintf("%q (%s)", f.path, f.source)
}

// filesOf returns the files of the items of a volume source.
func filesOf(source *meta.Object, name string) (files []volumeFile) {
	for _, item := range source.Objects("items") {
		files = append(files, volumeFile{item.String("path"), name})
	}
	return files
}

// projectedFiles returns the files of a source of a projected volume.
func projectedFiles(source *meta.Object) (files []volumeFile) {
	for kind, v := range source.Tree() {
		m, _ := v.(map[string]any)
		o := meta.NewObject(m)
		switch kind {
		case "configMap":
			files = append(files, filesOf(o, fmt.Sprintf("ConfigMap %q", o.String("name")))...)
		case "secret":
			files = append(files, filesOf(o, fmt.Sprintf("Secret %q", o.String("name")))...)
		case "downwardAPI":
			files = append(files, filesOf(o, "DownwardAPI")...)
		case "serviceAccountToken":
			files = append(files, volumeFile{o.String("path"), "ServiceAccountToken"})
		case "clusterTrustBundle":
			name := o.String("name")
			if name == "" {
				name = o.String("signerName")
			}
			files = append(files, volumeFile{o.String("path"), fmt.Sprintf("ClusterTrustBundle %q", name)})
		case "podCertificate":
			files = append(files, volumeFile{o.String("certificateChainPath"), "PodCertificate chain"},
				volumeFile{o.String("keyPath"), "PodCertificate key"}, volumeFile{o.String("credentialBundlePath"), "PodCertificate credential bundle"})
		}
	}
	return files
}

// overlaps warns about each file whose path equals, contains or is within the path of an earlier file.
func (w *podWarnings) overlaps(volume string, files []volumeFile) {
	for i := range files {
		f := &files[i]
		if f.path = strings.TrimRight(f.path, "/"); f.path == "" {
			continue
		}
		for _, other := range files[:i] {
			if other.path != "" && (strings.HasPrefix(other.path+"/", f.path+"/") || strings.HasPrefix(f.path+"/", other.path+"/")) {
				w.texts = append(w.texts, fmt.Sprintf("%s: overlapping paths: %s with %s", volume, f, other))
			}
		}
	}
}
