// Package rbac holds the kinds of role-based access control: roles that list
// rights, and bindings that give a role to subjects.
package rbac

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

const version = "v1"

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{roles(), clusterRoles(), roleBindings(), clusterRoleBindings()}
}

// Role is a list of rights in one namespace.
type Role struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Rules are the rights; there are no denials, so they add up.
	Rules []PolicyRule `json:"rules" protobuf:"2" schema:"optional,listType=atomic"`
}

// PolicyRule gives verbs on resources, or on paths that are no resource.
type PolicyRule struct {
	// Verbs that are given; * is all.
	Verbs []string `json:"verbs" protobuf:"1" schema:"required,reason.required=verbs must contain at least one value,listType=atomic"`

	// APIGroups of the resources; "" is the core group, * all.
	APIGroups []string `json:"apiGroups,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Resources in these groups, or sub-resources as resource/sub; * is all,
	// */sub that sub-resource of all.
	Resources []string `json:"resources,omitempty" protobuf:"3" schema:"listType=atomic"`

	// ResourceNames limits the rule to objects of these names; empty: any.
	ResourceNames []string `json:"resourceNames,omitempty" protobuf:"4" schema:"listType=atomic"`

	// NonResourceURLs are paths that are no resource; * is allowed as the last
	// part. Only cluster roles have them, in rules of their own.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty" protobuf:"5" schema:"listType=atomic"`
}

// ClusterRole is a list of rights that can be given for the whole cluster or,
// by a RoleBinding, for one namespace.
type ClusterRole struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Rules are the rights; there are no denials, so they add up.
	Rules []PolicyRule `json:"rules" protobuf:"2" schema:"optional,listType=atomic"`

	// AggregationRule, if set, lets the server fill rules from other cluster
	// roles; rules written by others are replaced.
	AggregationRule *AggregationRule `json:"aggregationRule,omitempty" protobuf:"3"`
}

// AggregationRule says which cluster roles another one is made of.
type AggregationRule struct {
	// ClusterRoleSelectors select the cluster roles by label; one match is enough.
	ClusterRoleSelectors []meta.Selector `json:"clusterRoleSelectors,omitempty" protobuf:"1" schema:"listType=atomic,unchecked"`
}

func roles() *registry.Kind {
	return registry.Of(registry.Definition[Role]{
		Group:   names.GroupRBAC,
		Version: version,
		Versions: []registry.VersionOf[Role]{
			older.Same[Role]("v1beta1", "1.6", "1.17", "1.22", names.GroupRBAC+"/v1"),
		},
		Columns:      []registry.Column{createdAt()},
		Validate:     validateRole,
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Behavior:     registry.Behavior{Prepare: unsetRules},
		Reference:    reference(),
	})
}

func clusterRoles() *registry.Kind {
	return registry.Of(registry.Definition[ClusterRole]{
		Group:   names.GroupRBAC,
		Version: version,
		Versions: []registry.VersionOf[ClusterRole]{
			older.Same[ClusterRole]("v1beta1", "1.6", "1.17", "1.22", names.GroupRBAC+"/v1"),
		},
		Scope:        registry.Cluster,
		Columns:      []registry.Column{createdAt()},
		Validate:     validateClusterRole,
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Behavior:     registry.Behavior{Prepare: unsetRules},
		Reference:    reference(),
	})
}

// reference is what the four kinds imitate.
func reference() *compat.Reference {
	return &compat.Reference{
		NoGeneration:        true,
		CreateOnPut:         true,
		DeleteAnswersStatus: true,
		AnyNamespace:        true,
	}
}

// unsetRules shows no rules as null, the form that clients know.
func unsetRules(w *registry.Change[meta.Object]) {
	if rules, ok := w.New.Get("rules"); ok && len(w.New.List("rules")) == 0 && rules != nil {
		w.New.Set(nil, "rules")
	}
}

func createdAt() registry.Column {
	c := registry.Text("Created At", "When it was created.", "metadata", "creationTimestamp")
	c.Type = "date"
	return c
}

func validateRole(w *registry.Change[Role]) {
	for i, r := range w.New.Rules {
		r.validate(&w.Faults, check.At("rules").Index(i), true)
	}
}

func validateClusterRole(w *registry.Change[ClusterRole]) {
	for i, r := range w.New.Rules {
		r.validate(&w.Faults, check.At("rules").Index(i), false)
	}
	if a := w.New.AggregationRule; a != nil {
		at := check.At("aggregationRule", "clusterRoleSelectors")
		if len(a.ClusterRoleSelectors) == 0 {
			w.Required(at, "at least one selector is needed")
		}
		for i := range a.ClusterRoleSelectors {
			before := len(w.Faults)
			if w.Selector(at.Index(i), &a.ClusterRoleSelectors[i]); len(w.Faults) > before {
				w.Invalid(at.Index(i), a.ClusterRoleSelectors[i], "is no label selector")
			}
		}
	}
}

func (r *PolicyRule) validate(f *check.Faults, at *check.Path, namespaced bool) {
	if len(r.NonResourceURLs) > 0 {
		if namespaced {
			f.Invalid(at.Field("nonResourceURLs"), r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs")
		}
		if len(r.APIGroups)+len(r.Resources)+len(r.ResourceNames) > 0 {
			f.Invalid(at.Field("nonResourceURLs"), r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs")
		}
		return
	}
	if len(r.APIGroups) == 0 {
		f.Required(at.Field("apiGroups"), "resource rules must supply at least one api group")
	}
	if len(r.Resources) == 0 {
		f.Required(at.Field("resources"), "resource rules must supply at least one resource")
	}
}
