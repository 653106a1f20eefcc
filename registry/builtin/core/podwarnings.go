package core

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// WarnOfPod returns warnings about valid but questionable fields of the pod spec at path. It returns
// none for an update that keeps the object's generation.
func WarnOfPod(write *registry.Change[meta.Object], path ...string) []string {
	if write.Old != nil && write.New.Generation() == write.Old.Generation() {
		return nil
	}
	owner := path[:len(path)-1]
	w := podWarnings{
		names: write.Names, pod: len(owner) == 0, spec: meta.NewObject(write.New.Map(path...)), at: check.At(path...),
		annotations:   write.New.Map(append(slices.Clone(owner), "metadata", "annotations")...),
		annotationsAt: check.At(append(slices.Clone(owner), "metadata", "annotations")...),
	}
	w.nodes()
	w.oldAnnotations()
	w.volumes()
	w.duplicates("hostAliases", "ip")
	w.pullSecrets(w.at.Field("imagePullSecrets"))
	w.fractionalBytes(w.at.Field("overhead"), w.spec.Map("overhead"), "memory", "ephemeral-storage")
	w.containers()
	if w.spec.Int("terminationGracePeriodSeconds") < 0 {
		w.warn(w.at.Field("terminationGracePeriodSeconds"), "must be >= 0; negative values are invalid and will be treated as 1")
	}
	w.affinities()
	w.addresses()
	return w.texts
}

// podWarnings collects warnings about a pod spec, in the order of kube-apiserver.
type podWarnings struct {
	names         names.Profile
	pod           bool // a Pod, not a template
	spec          *meta.Object
	at            *check.Path
	annotations   map[string]any // annotations of the pod or the template
	annotationsAt *check.Path
	texts         []string
}

func (w *podWarnings) warn(at *check.Path, why string) {
	w.texts = append(w.texts, at.String()+": "+why)
}

// oldAnnotations warns about annotations that fields replaced.
func (w *podWarnings) oldAnnotations() {
	w.annotation(w.names.Wire(wellknown.CriticalPod), `non-functional in v1.16+; use the "priorityClassName" field instead`)
	for _, name := range []string{wellknown.Sysctls, wellknown.UnsafeSysctls} {
		w.annotation(w.names.Wire(name), `non-functional in v1.11+; use the "sysctls" field instead`)
	}
	if w.spec.Map("securityContext", "seccompProfile") == nil {
		w.annotation(w.names.Wire(wellknown.SeccompPod), seccompReplaced)
	}
}

const (
	seccompReplaced  = `non-functional in v1.27+; use the "seccompProfile" field instead`
	appArmorReplaced = `deprecated since v1.30; use the "appArmorProfile" field instead`
)

// annotation warns about an annotation if it is set.
func (w *podWarnings) annotation(key, why string) {
	if _, ok := w.annotations[key]; ok {
		w.warn(w.annotationsAt.Key(key), why)
	}
}

// nodes warns about deprecated node labels, invalid values in preferred terms, and topology spread
// constraints that match no pod.
func (w *podWarnings) nodes() {
	for _, label := range slices.Sorted(maps.Keys(w.spec.Map("nodeSelector"))) {
		if why := w.names.NodeLabelDeprecation(label); why != "" {
			w.warn(w.at.Field("nodeSelector").Key(label), why)
		}
	}
	at := w.at.Field("affinity").Field("nodeAffinity")
	for i, term := range w.spec.Objects("affinity", "nodeAffinity", required, "nodeSelectorTerms") {
		w.nodeTerm(at.Field(required).Field("nodeSelectorTerms").Index(i), term, false)
	}
	for i, term := range w.spec.Objects("affinity", "nodeAffinity", preferred) {
		w.nodeTerm(at.Field(preferred).Index(i).Field("preference"), meta.NewObject(term.Map("preference")), true)
	}
	for i, c := range w.spec.Objects("topologySpreadConstraints") {
		at := w.at.Field("topologySpreadConstraints").Index(i)
		w.nodeLabel(at.Field("topologyKey"), c.String("topologyKey"))
		w.selector(at, c)
	}
}

func (w *podWarnings) nodeTerm(at *check.Path, term *meta.Object, values bool) {
	for i, e := range term.Objects("matchExpressions") {
		at := at.Field("matchExpressions").Index(i)
		w.nodeLabel(at.Field("key"), e.String("key"))
		if !values {
			continue
		}
		for j, v := range e.List("values") {
			text, _ := v.(string)
			for _, why := range meta.CheckLabelValue(text) {
				w.warn(at.Field("values").Index(j), text+" is invalid, "+why)
			}
		}
	}
}

func (w *podWarnings) nodeLabel(at *check.Path, label string) {
	if why := w.names.NodeLabelDeprecation(label); why != "" {
		w.warn(at, label+" is "+why)
	}
}

// affinities warns about pod affinity terms that match no pod.
func (w *podWarnings) affinities() {
	for _, kind := range []string{"podAffinity", "podAntiAffinity"} {
		at := w.at.Field("affinity").Field(kind)
		for i, term := range w.spec.Objects("affinity", kind, required) {
			w.selector(at.Field(required).Index(i), term)
		}
		for i, term := range w.spec.Objects("affinity", kind, preferred) {
			w.selector(at.Field(preferred).Index(i).Field("podAffinityTerm"), meta.NewObject(term.Map("podAffinityTerm")))
		}
	}
}

func (w *podWarnings) selector(at *check.Path, term *meta.Object) {
	if term.Map("labelSelector") == nil {
		w.warn(at.Field("labelSelector"), "a null labelSelector results in matching no pod")
	}
}

// duplicates warns about items of a list with the same value of a field.
func (w *podWarnings) duplicates(list, field string) {
	seen := map[string]bool{}
	for i, item := range w.spec.Objects(list) {
		value := item.String(field)
		if seen[value] {
			w.warn(w.at.Field(list).Index(i).Field(field), fmt.Sprintf("duplicate %s %q", field, value))
		}
		seen[value] = true
	}
}

// pullSecrets warns about duplicate and empty names.
func (w *podWarnings) pullSecrets(at *check.Path) {
	w.duplicates("imagePullSecrets", "name")
	for i, secret := range w.spec.Objects("imagePullSecrets") {
		if secret.String("name") == "" {
			w.warn(at.Index(i).Field("name"), `invalid empty name ""`)
		}
	}
}

// fractionalBytes warns about amounts of bytes that are not integers.
func (w *podWarnings) fractionalBytes(at *check.Path, amounts map[string]any, resources ...string) {
	for _, name := range resources {
		text, _ := amounts[name].(string)
		if q, err := meta.ParseQuantity(text); text != "" && err == nil && !q.IsInteger() {
			w.warn(at.Key(name), fmt.Sprintf("fractional byte value %q is invalid, must be an integer", text))
		}
	}
}

// addresses warns about IPv6 addresses that are not in canonical form.
func (w *podWarnings) addresses() {
	for i, v := range w.spec.List("dnsConfig", "nameservers") {
		text, _ := v.(string)
		w.address(w.at.Field("dnsConfig").Field("nameservers").Index(i), text)
	}
	for i, alias := range w.spec.Objects("hostAliases") {
		w.address(w.at.Field("hostAliases").Index(i).Field("ip"), alias.String("ip"))
	}
}

func (w *podWarnings) address(at *check.Path, text string) {
	if a, err := netip.ParseAddr(text); err == nil && a.Is6() && a.String() != text {
		w.warn(at, fmt.Sprintf("IPv6 address %q should be in RFC 5952 canonical format (%q)", text, a))
	}
}
