package core

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/address"
)

func nodes() *registry.Kind {
	return registry.Of(registry.Definition[Node]{
		Version:      version,
		ShortNames:   []string{"no"},
		Scope:        registry.Cluster,
		Status:       true,
		Subresources: []registry.Subresource{nodeProxy()},
		Columns:      nodeColumns(),
		Fields:       []registry.SelectableField{{Name: "spec.unschedulable", Absent: "false"}},
		Default:      defaultNode,
		Prepare:      prepareNode,
		Validate:     validateNode,
		Warn: func(w *registry.Change[Node]) (texts []string) {
			if w.New.Spec.DoNotUseExternalID != "" {
				texts = append(texts, "spec.externalID: this field is deprecated, and is unused")
			}
			return texts
		},
		Reference: &compat.Reference{
			NoGeneration: true, StatusOnCreate: true, StatusMetadata: compat.CallersMetadata(), DeleteAnswersStatus: true,
		},
	})
}

func nodeColumns() []registry.Column {
	address := func(kind string) func(o *meta.Object) any {
		return func(o *meta.Object) any {
			for _, a := range o.Objects("status", "addresses") {
				if a.String("type") == kind {
					return a.String("address")
				}
			}
			return none
		}
	}
	info := func(field string) func(o *meta.Object) any {
		return func(o *meta.Object) any { return cmp.Or(o.String("status", "nodeInfo", field), unknown) }
	}
	return []registry.Column{
		{Name: "Status", Type: "string", Doc: "Whether the node is ready, and whether scheduling is disabled.", Cell: nodeState},
		{Name: "Roles", Type: "string", Doc: "The roles of the node.", Cell: nodeRoles},
		registry.AgeColumn(),
		registry.TextColumn("Version", "The version of the kubelet.", "status", "nodeInfo", "kubeletVersion"),
		{Name: "Internal-IP", Type: "string", Doc: "The first internal IP address.", Priority: 1, Cell: address("InternalIP")},
		{Name: "External-IP", Type: "string", Doc: "The first external IP address.", Priority: 1, Cell: address("ExternalIP")},
		{Name: "OS-Image", Type: "string", Doc: "The operating system.", Priority: 1, Cell: info("osImage")},
		{Name: "Kernel-Version", Type: "string", Doc: "The kernel of the operating system.", Priority: 1, Cell: func(o *meta.Object) any {
			kernel, processor := o.String("status", "nodeInfo", "kernelVersion"), o.String("status", "nodeInfo", "architecture")
			if kernel != "" && processor != "" {
				kernel += " (" + processor + ")"
			}
			return cmp.Or(kernel, unknown)
		}},
		{Name: "Container-Runtime", Type: "string", Doc: "The container runtime.", Priority: 1, Cell: info("containerRuntimeVersion")},
	}
}

func nodeState(o *meta.Object) any {
	state := "Unknown"
	for _, c := range o.Objects("status", "conditions") {
		if c.String("type") != "Ready" {
			continue
		}
		if state = "NotReady"; c.String("status") == "True" {
			state = "Ready"
		}
	}
	if o.Bool("spec", "unschedulable") {
		state += ",SchedulingDisabled"
	}
	return state
}

// nodeRoles shows the roles of a node: the suffixes of role labels, and the value of the older label.
func nodeRoles(o *meta.Object) any {
	var roles []string
	for key, value := range o.Labels() {
		slash := strings.LastIndex(key, "/") + 1
		switch {
		case names.Same(key[:slash], wellknown.NodeRole) && key[slash:] != "":
			roles = append(roles, key[slash:])
		case names.Same(key, wellknown.OldNodeRole) && value != "":
			roles = append(roles, value)
		}
	}
	if len(roles) == 0 {
		return none
	}
	slices.Sort(roles)
	return strings.Join(slices.Compact(roles), ",")
}

// defaultNode synchronizes the two forms of the pod range, sets the allocatable resources, and drops
// the deprecated configuration status.
func defaultNode(w *registry.Change[Node]) {
	s := &w.New.Spec
	if s.PodCIDR != "" && (len(s.PodCIDRs) == 0 || s.PodCIDRs[0] != s.PodCIDR) {
		s.PodCIDRs = []string{s.PodCIDR}
	}
	if len(s.PodCIDRs) > 0 {
		s.PodCIDR = s.PodCIDRs[0]
	}
	if w.New.Status.Allocatable == nil {
		w.New.Status.Allocatable = w.New.Status.Capacity
	}
	w.New.Status.Config = nil
}

// prepareNode drops the deprecated configSource. It runs after admission, because NodeRestriction
// rejects the field in requests of kubelets.
func prepareNode(w *registry.Change[Node]) { w.New.Spec.ConfigSource = nil }

// validateNode checks a node. On update, the taints are checked twice and immutable fields are
// compared, in the order of kube-apiserver.
func validateNode(w *registry.Change[Node]) {
	r := &podRules{specRules: specRules{names: w.Names}}
	now, old := w.New, w.Old
	if w.Subresource == "" {
		r.taints(now.Spec.Taints)
	}
	r.nodeAmounts("capacity", now.Status.Capacity)
	r.nodeAmounts("allocatable", now.Status.Allocatable)
	if old == nil || !slices.Equal(now.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		r.podRanges(now.Spec.PodCIDRs)
	}
	if old == nil {
		r.features(now.Status.DeclaredFeatures)
		w.Violations = append(w.Violations, r.Violations...)
		return
	}
	seen := map[NodeAddress]bool{}
	for i, a := range now.Status.Addresses {
		if seen[a] {
			r.Duplicate(check.At("status", "addresses").Index(i), a)
		}
		seen[a] = true
	}
	if len(old.Spec.PodCIDRs) > 0 && !slices.Equal(now.Spec.PodCIDRs, old.Spec.PodCIDRs) {
		r.Forbidden(check.At("spec", "podCIDRs"), "node updates may not change podCIDR except from \"\" to valid")
	}
	if provider := check.At("spec", "providerID"); old.Spec.ProviderID != "" && now.Spec.ProviderID == "" {
		r.Invalid(provider, nil, "field cannot be cleared once set")
	} else if old.Spec.ProviderID != "" && now.Spec.ProviderID != old.Spec.ProviderID {
		r.Invalid(provider, nil, "field cannot be modified once set")
	}
	r.taints(now.Spec.Taints) // repeated, as at kube-apiserver
	if now.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID {
		r.Forbidden(check.At("spec", "externalID"), "may not be updated")
	}
	r.features(now.Status.DeclaredFeatures)
	w.Violations = append(w.Violations, r.Violations...)
}

// taints checks taints. The path of violations is below metadata, as at kube-apiserver.
func (r *podRules) taints(list []Taint) {
	type taintKey struct{ key, effect string }
	seen := map[taintKey]bool{}
	for i, t := range list {
		at := check.At("metadata", "taints").Index(i)
		r.Format(at.Field("key"), t.Key, meta.CheckQualifiedName(t.Key))
		r.Format(at.Field("value"), t.Value, meta.CheckLabelValue(t.Value))
		r.RequiredOneOf(at.Field("effect"), t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
		if seen[taintKey{t.Key, t.Effect}] {
			r.Duplicate(at, t)
		}
		seen[taintKey{t.Key, t.Effect}] = true
	}
}

func (r *podRules) nodeAmounts(field string, amounts map[string]meta.Quantity) {
	for _, name := range sortedNames(amounts) {
		r.quantity(check.At("status", field, name), name, amounts[name])
	}
}

// podRanges checks the ranges of the pods' IP addresses.
func (r *podRules) podRanges(list []string) {
	at := check.At("spec", "podCIDRs")
	families := map[bool]bool{}
	for i, text := range list {
		p, _ := address.Network(&r.Violations, at.Index(i), text)
		families[p.Addr().Unmap().Is4()] = true
	}
	if len(list) > 1 && (len(list) > 2 || len(families) < 2) {
		r.Invalid(at, list, "may specify no more than one CIDR for each IP family")
	}
}

var featureName = regexp.MustCompile(`\A[A-Z][A-Za-z0-9]*(/[A-Za-z0-9]+)*\z`)

// features checks the declared features: sorted, unique, and in the form of featureName.
func (r *podRules) features(list []string) {
	for i, name := range list {
		at := check.At("status", "declaredFeatures").Index(i)
		switch {
		case i > 0 && name < list[i-1]:
			r.Invalid(at, name, "list must be sorted alphabetically")
		case i > 0 && name == list[i-1]:
			r.Duplicate(at, name)
		}
		if !featureName.MatchString(name) {
			r.Invalid(at, name, "must be words of letters and digits that are separated by '/', the first with a capital (e.g., MyFeature or MyFeature/mySubFeature)")
		}
	}
}
