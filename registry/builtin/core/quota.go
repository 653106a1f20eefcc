package core

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// ResourceQuota bounds how much all objects of its namespace together may ask for,
// and how many there may be.
type ResourceQuota struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what may be used.
	Spec ResourceQuotaSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is what is used.
	Status ResourceQuotaStatus `json:"status,omitempty" protobuf:"3"`
}

// ResourceQuotaSpec says how much of what may be used, by which objects.
type ResourceQuotaSpec struct {
	// Hard is the most of each resource: what containers use (requests.cpu), or the
	// number of objects (pods, count/deployments.apps).
	Hard map[string]meta.Quantity `json:"hard,omitempty" protobuf:"1" schema:"values.milli"`

	// Scopes choose the objects that count: those for which all of them hold. They
	// cannot change.
	Scopes []string `json:"scopes,omitempty" protobuf:"2" schema:"listType=atomic"`

	// ScopeSelector chooses as scopes do, where a scope has values, too.
	ScopeSelector *ScopeSelector `json:"scopeSelector,omitempty" protobuf:"3"`
}

// ScopeSelector chooses objects: all of its expressions hold.
type ScopeSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// MatchExpressions are what must hold.
	MatchExpressions []ScopedResourceSelectorRequirement `json:"matchExpressions,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// ScopedResourceSelectorRequirement is what must hold of one scope.
type ScopedResourceSelectorRequirement struct {
	// ScopeName is Terminating, NotTerminating, BestEffort, NotBestEffort,
	// CrossNamespacePodAffinity, PriorityClass or VolumeAttributesClass.
	ScopeName string `json:"scopeName" protobuf:"1"`

	// Operator is In, NotIn, Exists or DoesNotExist; scopes without values know Exists
	// only.
	Operator string `json:"operator" protobuf:"2"`

	// Values belong to In and NotIn.
	Values []string `json:"values,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// ResourceQuotaStatus is what is used of what may be.
type ResourceQuotaStatus struct {
	// Hard is what may be used, as the controller last saw it.
	Hard map[string]meta.Quantity `json:"hard,omitempty" protobuf:"1" schema:"values.milli"`

	// Used is what is used.
	Used map[string]meta.Quantity `json:"used,omitempty" protobuf:"2" schema:"values.milli"`
}

func resourceQuotas() *registry.Kind {
	return registry.Of(registry.Definition[ResourceQuota]{
		Version:    version,
		ShortNames: []string{"quota"},
		Status:     true,
		Columns: []registry.Column{
			{Name: "Request", Type: "string", Doc: "What is used of what may be asked for.", Cell: func(o *meta.Object) any { return used(o, false) }},
			{Name: "Limit", Type: "string", Doc: "What is used of what limits may be.", Cell: func(o *meta.Object) any { return used(o, true) }},
			registry.Age(),
		},
		Validate: validateQuota,
		Reference: &compat.Reference{
			NoGeneration: true, StatusMetadata: compat.CallersMetadata(),
		},
	})
}

// used lists what is used of what a quota allows, of limits or of all else.
func used(o *meta.Object, limits bool) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(o.Map("status", "hard"))) {
		if strings.HasPrefix(name, "limits.") == limits {
			now := cmp.Or(o.String("status", "used", name), "0")
			list = append(list, name+": "+now+"/"+o.String("status", "hard", name))
		}
	}
	return strings.Join(list, ", ")
}

func validateQuota(w *registry.Change[ResourceQuota]) {
	r := &podRules{specRules: specRules{names: w.Names}}
	if w.Subresource == "status" {
		r.quotaAmounts(check.At("status", "hard"), w.New.Status.Hard)
		r.quotaAmounts(check.At("status", "used"), w.New.Status.Used)
	} else {
		spec := &w.New.Spec
		r.quotaAmounts(check.At("spec", "hard"), spec.Hard)
		r.quotaScopes(check.At("spec", "scopes"), spec)
		if spec.ScopeSelector != nil {
			r.quotaSelector(check.At("spec", "scopeSelector", "matchExpressions"), spec)
		}
		if w.Old != nil && !slices.Equal(slices.Sorted(slices.Values(spec.Scopes)), slices.Sorted(slices.Values(w.Old.Spec.Scopes))) {
			r.Invalid(check.At("spec", "scopes"), spec.Scopes, "field is immutable")
		}
	}
	w.Faults = append(w.Faults, r.Faults...)
}

func (r *podRules) quotaAmounts(at *check.Path, amounts map[string]meta.Quantity) {
	for _, name := range sorted(amounts) {
		r.standardName(at.Key(name), name)
		if !strings.Contains(name, "/") && !quotaCounts(name) {
			r.Invalid(at.Key(name), name, "must be a standard resource for quota")
		}
		r.quantity(at.Key(name), name, amounts[name])
	}
}

// quotaCounts reports whether a resource of the product's own is one that quotas
// count: all but plain storage.
func quotaCounts(name string) bool { return name != "storage" && quotaResource(name) }

// The scopes that are no more than a word, those that have values, and those that
// exclude each other.
var (
	plainScopes  = []string{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity"}
	valuedScopes = []string{"PriorityClass", "VolumeAttributesClass"}
)

// opposed reports whether nothing can be in all of the scopes.
func opposed(scopes []string) bool {
	both := func(scope string) bool { return slices.Contains(scopes, scope) && slices.Contains(scopes, "Not"+scope) }
	return both("BestEffort") || both("Terminating")
}

// inScope reports whether objects that use a resource can be in a scope.
func inScope(scope, resource string) bool {
	switch {
	case strings.Contains(resource, "/") || !quotaCounts(resource):
		return true
	case scope == "VolumeAttributesClass":
		return resource == "persistentvolumeclaims" || resource == "requests.storage"
	case scope == "BestEffort":
		return resource == "pods"
	case slices.Contains(plainScopes, scope), slices.Contains(valuedScopes, scope):
		_, of, prefixed := strings.Cut(resource, ".")
		if !prefixed {
			of = resource
		}
		return resource == "pods" || of == "cpu" || of == "memory"
	}
	return true
}

func knownScope(scope string) bool {
	return slices.Contains(plainScopes, scope) || slices.Contains(valuedScopes, scope)
}

// outside counts for each scope the resources of the quota that nothing in it can have,
// of which more than are told of need not be known. Everything is in unknown scopes.
func (s *ResourceQuotaSpec) outside() map[string]int {
	const most = 100
	count := map[string]int{}
	for _, scope := range slices.Concat(plainScopes, valuedScopes) {
		for resource := range s.Hard {
			if count[scope] < most && !inScope(scope, resource) {
				count[scope]++
			}
		}
	}
	return count
}

func (r *podRules) quotaScopes(at *check.Path, spec *ResourceQuotaSpec) {
	outside := spec.outside()
	for _, scope := range spec.Scopes {
		if !knownScope(scope) {
			r.Invalid(at, spec.Scopes, "unsupported scope")
		}
		for range outside[scope] {
			r.Invalid(at, spec.Scopes, "unsupported scope applied to resource")
		}
	}
	if opposed(spec.Scopes) {
		r.Invalid(at, spec.Scopes, "conflicting scopes")
	}
}

func (r *podRules) quotaSelector(at *check.Path, spec *ResourceQuotaSpec) {
	var scopes []string
	outside := spec.outside()
	for _, e := range spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, e.ScopeName)
		if !knownScope(e.ScopeName) {
			r.Invalid(at.Field("scopeName"), e.ScopeName, "unsupported scope")
		}
		for range outside[e.ScopeName] {
			r.Invalid(at, spec.ScopeSelector, "unsupported scope applied to resource")
		}
		if slices.Contains(plainScopes, e.ScopeName) && e.Operator != "Exists" {
			r.Invalid(at.Field("operator"), e.Operator, "must be 'Exists' when scope is any of "+strings.Join(plainScopes, ", "))
			continue
		}
		switch e.Operator {
		case "In", "NotIn":
			if len(e.Values) == 0 {
				r.Required(at.Field("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
			}
		case "Exists", "DoesNotExist":
			if len(e.Values) > 0 {
				r.Invalid(at.Field("values"), e.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector")
			}
		default:
			r.Invalid(at.Field("operator"), e.Operator, "not a valid selector operator")
		}
	}
	if opposed(scopes) {
		r.Invalid(at, nil, "conflicting scopes")
	}
}
