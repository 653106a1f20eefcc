package core

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// WarnOfPod warns of what is accepted in the spec of a pod at a path, and not
// what its author should want. A spec that stays as it was is not worth a
// warning.
func WarnOfPod(write *registry.Change[meta.Object], path ...string) []string {
	spec := write.New.Map(path...)
	if write.Old != nil && meta.Equal(spec, write.Old.Map(path...)) {
		return nil
	}
	w := podWarnings{names: write.Names, spec: meta.NewObject(spec), at: check.At(path...)}
	w.profiles(write.New.Map(append(slices.Clone(path[:len(path)-1]), "metadata", "annotations")...), check.At(path[:len(path)-1]...), len(path) == 1)
	w.nodes()
	w.selectors()
	w.volumes()
	w.pullSecrets(w.at.Field("imagePullSecrets"))
	for _, list := range []string{"initContainers", "containers"} {
		for i, c := range containersOf(w.spec.Tree(), list) {
			w.container(w.at.Field(list).Index(i), meta.NewObject(c))
		}
	}
	if w.spec.Int("terminationGracePeriodSeconds") < 0 {
		w.warn(w.at.Field("terminationGracePeriodSeconds"), "must be >= 0; negative values are invalid and will be treated as 1")
	}
	return w.texts
}

type podWarnings struct {
	names names.Profile
	spec  *meta.Object
	at    *check.Path
	texts []string
}

func (w *podWarnings) warn(at *check.Path, why string) {
	w.texts = append(w.texts, at.String()+": "+why)
}

// profiles warns of annotations that name profiles where there are fields for that: those
// of seccomp are not looked at any more, those of AppArmor fill in the fields of pods.
func (w *podWarnings) profiles(annotations map[string]any, owner *check.Path, pod bool) {
	warn := func(key, why string) {
		if _, said := annotations[key]; said {
			w.warn(owner.Field("metadata").Field("annotations").Key(key), why)
		}
	}
	const seccomp, appArmor = `non-functional in v1.27+; use the "seccompProfile" field instead`, `deprecated since v1.30; use the "appArmorProfile" field instead`
	if w.spec.Map("securityContext", "seccompProfile") == nil {
		warn(w.names.Wire(names.SeccompPod), seccomp)
	}
	for _, fields := range containersOf(w.spec.Tree(), "initContainers", "containers") {
		c := meta.NewObject(fields)
		if c.Map("securityContext", "seccompProfile") == nil {
			warn(w.names.Wire(names.SeccompContainer)+c.String("name"), seccomp)
		}
		if pod || c.Map("securityContext", "appArmorProfile") == nil {
			warn(w.names.Wire(names.AppArmorProfile)+c.String("name"), appArmor)
		}
	}
}

// nodes warns of old names of node labels.
func (w *podWarnings) nodes() {
	for _, old := range w.names.OldNodeLabels() {
		if _, ok := w.spec.Map("nodeSelector")[old.Before]; ok {
			w.warn(w.at.Field("nodeSelector").Key(old.Before), fmt.Sprintf("deprecated; use %q instead", old.Now))
		}
		for i, v := range w.spec.List("topologySpreadConstraints") {
			if m, _ := v.(map[string]any); m["topologyKey"] == old.Before {
				w.warn(w.at.Field("topologySpreadConstraints").Index(i).Field("topologyKey"), fmt.Sprintf("%s is deprecated; use %q instead", old.Before, old.Now))
			}
		}
	}
}

// selectors warns of missing selectors, which choose no pod.
func (w *podWarnings) selectors() {
	const why = "a null labelSelector results in matching no pod"
	missing := func(at *check.Path, v any) {
		if m, ok := v.(map[string]any); ok && m["labelSelector"] == nil {
			w.warn(at.Field("labelSelector"), why)
		}
	}
	for i, v := range w.spec.List("topologySpreadConstraints") {
		missing(w.at.Field("topologySpreadConstraints").Index(i), v)
	}
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		at := w.at.Field("affinity").Field(kind)
		for i, v := range w.spec.List("affinity", kind, required) {
			missing(at.Field(required).Index(i), v)
		}
		for i, v := range w.spec.List("affinity", kind, preferred) {
			m, _ := v.(map[string]any)
			missing(at.Field(preferred).Index(i).Field("podAffinityTerm"), m["podAffinityTerm"])
		}
	}
}

// volumes warns of deprecated sources.
func (w *podWarnings) volumes() {
	deprecated := []string{
		"gitRepo", "cloudEPersistentDisk", "storeEVolume", "storeGVolume", "storeFVolume",
		"storeDfs", "storeBfs", "storeAblock", "storeAfs",
	}
	for i, v := range w.spec.List("volumes") {
		m, _ := v.(map[string]any)
		if p, ok := m["projected"].(map[string]any); ok {
			sources, _ := p["sources"].([]any)
			for _, s := range sources {
				if s, _ := s.(map[string]any); len(s) == 0 {
					w.texts = append(w.texts, fmt.Sprintf("volume %q (Projected) has no sources provided", m["name"]))
				}
			}
		}
		for _, source := range deprecated {
			if field := w.names.Field(source); m[field] != nil {
				w.warn(w.at.Field("volumes").Index(i).Field(field), "deprecated")
			}
		}
	}
}

// pullSecrets warns of names that are empty or stand twice.
func (w *podWarnings) pullSecrets(at *check.Path) {
	seen := map[string]bool{}
	for i, v := range w.spec.List("imagePullSecrets") {
		m, _ := v.(map[string]any)
		name, _ := m["name"].(string)
		if seen[name] {
			w.warn(at.Index(i).Field("name"), fmt.Sprintf("duplicate name %q", name))
		}
		if seen[name] = true; name == "" {
			w.warn(at.Index(i).Field("name"), "invalid empty name \"\"")
		}
	}
}

// container warns of what hides something else of its kind, and of parts of
// bytes.
func (w *podWarnings) container(at *check.Path, c *meta.Object) {
	seen := map[string]bool{}
	for i, v := range c.List("env") {
		m, _ := v.(map[string]any)
		name, _ := m["name"].(string)
		if seen[name] {
			w.warn(at.Field("env").Index(i), fmt.Sprintf("hides previous definition of %q, which may be dropped when using apply", name))
		}
		seen[name] = true
	}
	type port struct{ number, host, protocol, ip any }
	var ports []port
	for i, v := range c.List("ports") {
		m, _ := v.(map[string]any)
		p := port{m["containerPort"], m["hostPort"], m["protocol"], m["hostIP"]}
		if j := slices.Index(ports, p); j >= 0 {
			w.warn(at.Field("ports").Index(i), "duplicate port definition with "+at.Field("ports").Index(j).String())
		}
		if p.ip != nil && p.ip != "" && p.host == nil {
			w.warn(at.Field("ports").Index(i), "hostIP set without hostPort")
		}
		ports = append(ports, p)
	}
	for _, list := range []string{"requests", "limits"} {
		for _, name := range []string{"memory", "ephemeral-storage"} {
			text := c.String("resources", list, name)
			if q, err := meta.ParseQuantity(text); text != "" && err == nil && !q.Whole() {
				w.warn(at.Field("resources").Field(list).Key(name), fmt.Sprintf("fractional byte value %q is invalid, must be an integer", text))
			}
		}
	}
}
