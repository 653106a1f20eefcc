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

// ResourceQuota limits the total resources and the number of objects in its namespace.
type ResourceQuota struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec lists the limits.
	Spec ResourceQuotaSpec `json:"spec,omitempty" protobuf:"2"`

	// Status is the usage.
	Status ResourceQuotaStatus `json:"status,omitempty" protobuf:"3"`
}

// ResourceQuotaSpec lists limits, and selects the objects that count.
type ResourceQuotaSpec struct {
	// Hard is the limit of each resource: totals of containers, such as requests.cpu, or numbers of
	// objects, such as pods or count/deployments.apps.
	Hard map[string]meta.Quantity `json:"hard,omitempty" protobuf:"1" schema:"values.milli"`

	// Scopes select the objects that count; all of them must match. Immutable.
	Scopes []string `json:"scopes,omitempty" protobuf:"2" schema:"listType=atomic"`

	// ScopeSelector selects the objects that count, in addition to scopes, by expressions.
	ScopeSelector *ScopeSelector `json:"scopeSelector,omitempty" protobuf:"3"`
}

// ScopeSelector selects objects.
type ScopeSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// MatchExpressions must all match.
	MatchExpressions []ScopedResourceSelectorRequirement `json:"matchExpressions,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// ScopedResourceSelectorRequirement is a requirement on a scope.
type ScopedResourceSelectorRequirement struct {
	// ScopeName is Terminating, NotTerminating, BestEffort, NotBestEffort, CrossNamespacePodAffinity,
	// PriorityClass or VolumeAttributesClass.
	ScopeName string `json:"scopeName" protobuf:"1"`

	// Operator is In, NotIn, Exists or DoesNotExist. Only PriorityClass and VolumeAttributesClass
	// support other operators than Exists.
	Operator string `json:"operator" protobuf:"2"`

	// Values for In and NotIn; empty for the other operators.
	Values []string `json:"values,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// ResourceQuotaStatus is the usage of a quota.
type ResourceQuotaStatus struct {
	// Hard is the limit of each resource that the usage was computed for.
	Hard map[string]meta.Quantity `json:"hard,omitempty" protobuf:"1" schema:"values.milli"`

	// Used is the total of each resource.
	Used map[string]meta.Quantity `json:"used,omitempty" protobuf:"2" schema:"values.milli"`
}

func resourceQuotas() *registry.Kind {
	return registry.Of(registry.Definition[ResourceQuota]{
		Version:    version,
		ShortNames: []string{"quota"},
		Status:     true,
		Columns: []registry.Column{
			{Name: "Request", Type: "string", Doc: "The usage and the limit of requests and object counts.", Cell: func(o *meta.Object) any { return usageCell(o, false) }},
			{Name: "Limit", Type: "string", Doc: "The usage and the limit of limits.", Cell: func(o *meta.Object) any { return usageCell(o, true) }},
			registry.AgeColumn(),
		},
		Validate: validateQuota,
		Reference: &compat.Reference{
			NoGeneration: true, StatusMetadata: compat.CallersMetadata(),
		},
	})
}

// usageCell lists the usage of a quota, either of limits or of all other resources.
func usageCell(o *meta.Object, limits bool) string {
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
	w.Violations = append(w.Violations, r.Violations...)
}

func (r *podRules) quotaAmounts(at *check.Path, amounts map[string]meta.Quantity) {
	for _, name := range sortedNames(amounts) {
		r.standardName(at.Key(name), name)
		if !strings.Contains(name, "/") && !quotaCounts(name) {
			r.Invalid(at.Key(name), name, "must be a standard resource for quota")
		}
		r.quantity(at.Key(name), name, amounts[name])
	}
}

// quotaCounts reports whether quotas support a resource without a domain.
func quotaCounts(name string) bool { return name != "storage" && quotaResource(name) }

// Scopes without and with values.
var (
	plainScopes  = []string{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity"}
	valuedScopes = []string{"PriorityClass", "VolumeAttributesClass"}
)

// opposed reports whether the scopes exclude each other.
func opposed(scopes []string) bool {
	both := func(scope string) bool { return slices.Contains(scopes, scope) && slices.Contains(scopes, "Not"+scope) }
	return both("BestEffort") || both("Terminating")
}

// inScope reports whether objects in a scope can use a resource.
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

// unusableResources returns, for each scope, the number of resources of the quota that objects in the scope
// cannot use, up to 100. The number bounds the violations. Unknown scopes are skipped, because they are
// reported separately.
func (s *ResourceQuotaSpec) unusableResources() map[string]int {
	const maxCount = 100
	count := map[string]int{}
	for _, scope := range slices.Concat(plainScopes, valuedScopes) {
		for resource := range s.Hard {
			if count[scope] < maxCount && !inScope(scope, resource) {
				count[scope]++
			}
		}
	}
	return count
}

func (r *podRules) quotaScopes(at *check.Path, spec *ResourceQuotaSpec) {
	unusable := spec.unusableResources()
	for _, scope := range spec.Scopes {
		if !knownScope(scope) {
			r.Invalid(at, spec.Scopes, "unsupported scope")
		}
		for range unusable[scope] {
			r.Invalid(at, spec.Scopes, "unsupported scope applied to resource")
		}
	}
	if opposed(spec.Scopes) {
		r.Invalid(at, spec.Scopes, "conflicting scopes")
	}
}

func (r *podRules) quotaSelector(at *check.Path, spec *ResourceQuotaSpec) {
	var scopes []string
	unusable := spec.unusableResources()
	for _, e := range spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, e.ScopeName)
		if !knownScope(e.ScopeName) {
			r.Invalid(at.Field("scopeName"), e.ScopeName, "unsupported scope")
		}
		for range unusable[e.ScopeName] {
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
