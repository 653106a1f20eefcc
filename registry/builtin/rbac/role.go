// Package rbac defines the kinds of role-based access control: roles, which list permissions, and
// bindings, which grant roles to subjects.
package rbac

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

const version = "v1"

// Kinds returns the kinds of the group.
func Kinds() []*registry.Kind {
	return []*registry.Kind{roles(), clusterRoles(), roleBindings(), clusterRoleBindings()}
}

// Role lists permissions within a namespace.
type Role struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Rules are the permissions. They are purely additive: there are no deny rules.
	Rules []PolicyRule `json:"rules" protobuf:"2" schema:"optional,listType=atomic"`
}

// PolicyRule permits verbs on resources or on non-resource paths.
type PolicyRule struct {
	// Verbs that are permitted; * means all.
	Verbs []string `json:"verbs" protobuf:"1" schema:"required,reason.required=verbs must contain at least one value,listType=atomic"`

	// APIGroups of the resources; "" is the core group, * means all.
	APIGroups []string `json:"apiGroups,omitempty" protobuf:"2" schema:"listType=atomic"`

	// Resources in these groups, or subresources as resource/subresource; * means all resources, and
	// */subresource means that subresource of all resources.
	Resources []string `json:"resources,omitempty" protobuf:"3" schema:"listType=atomic"`

	// ResourceNames restricts the rule to objects of these names. Empty means all names.
	ResourceNames []string `json:"resourceNames,omitempty" protobuf:"4" schema:"listType=atomic"`

	// NonResourceURLs are paths outside the resource API; * is allowed as the last segment. Only
	// cluster roles can have them, in rules without resources.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty" protobuf:"5" schema:"listType=atomic"`
}

// ClusterRole lists permissions that can be granted in the whole cluster or, by a RoleBinding, in a
// namespace.
type ClusterRole struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Rules are the permissions. They are purely additive: there are no deny rules.
	Rules []PolicyRule `json:"rules" protobuf:"2" schema:"optional,listType=atomic"`

	// AggregationRule, if set, makes the server compute rules from other cluster roles. The server
	// overwrites other changes of rules.
	AggregationRule *AggregationRule `json:"aggregationRule,omitempty" protobuf:"3"`
}

// AggregationRule selects the cluster roles to aggregate.
type AggregationRule struct {
	// ClusterRoleSelectors select cluster roles by label; any of them suffices. At least one is
	// required.
	ClusterRoleSelectors []meta.LabelSelector `json:"clusterRoleSelectors,omitempty" protobuf:"1" schema:"listType=atomic,unchecked"`
}

func roles() *registry.Kind {
	return registry.Of(registry.Definition[Role]{
		Group:   wellknown.GroupRBAC,
		Version: version,
		Versions: []registry.VersionOf[Role]{
			older.Same[Role]("v1beta1", "1.6", "1.17", "1.22", wellknown.GroupRBAC+"/v1"),
		},
		Columns:      []registry.Column{createdAt()},
		Validate:     validateRole,
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Behavior:     registry.Behavior{Prepare: nullEmptyRules},
		Reference:    reference(),
	})
}

func clusterRoles() *registry.Kind {
	return registry.Of(registry.Definition[ClusterRole]{
		Group:   wellknown.GroupRBAC,
		Version: version,
		Versions: []registry.VersionOf[ClusterRole]{
			older.Same[ClusterRole]("v1beta1", "1.6", "1.17", "1.22", wellknown.GroupRBAC+"/v1"),
		},
		Scope:        registry.Cluster,
		Columns:      []registry.Column{createdAt()},
		Validate:     validateClusterRole,
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Behavior:     registry.Behavior{Prepare: nullEmptyRules},
		Reference:    reference(),
	})
}

// reference returns the compatibility settings of the four kinds.
func reference() *compat.Reference {
	return &compat.Reference{
		NoGeneration:        true,
		CreateOnPut:         true,
		DeleteAnswersStatus: true,
		AnyNamespace:        true,
	}
}

// nullEmptyRules replaces an empty list of rules by null, which is the form at kube-apiserver.
func nullEmptyRules(w *registry.Change[meta.Object]) {
	if rules, ok := w.New.Get("rules"); ok && len(w.New.List("rules")) == 0 && rules != nil {
		w.New.Set(nil, "rules")
	}
}

func createdAt() registry.Column {
	c := registry.TextColumn("Created At", "The time of creation.", "metadata", "creationTimestamp")
	c.Type = "date"
	return c
}

func validateRole(w *registry.Change[Role]) {
	for i, r := range w.New.Rules {
		r.validate(&w.Violations, check.At("rules").Index(i), true)
	}
}

func validateClusterRole(w *registry.Change[ClusterRole]) {
	for i, r := range w.New.Rules {
		r.validate(&w.Violations, check.At("rules").Index(i), false)
	}
	if a := w.New.AggregationRule; a != nil {
		at := check.At("aggregationRule", "clusterRoleSelectors")
		if len(a.ClusterRoleSelectors) == 0 {
			w.Required(at, "at least one selector is needed")
		}
		for i := range a.ClusterRoleSelectors {
			before := len(w.Violations)
			if w.Selector(at.Index(i), &a.ClusterRoleSelectors[i]); len(w.Violations) > before {
				w.Invalid(at.Index(i), a.ClusterRoleSelectors[i], "is no label selector")
			}
		}
	}
}

func (r *PolicyRule) validate(f *check.Violations, at *check.Path, namespaced bool) {
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
