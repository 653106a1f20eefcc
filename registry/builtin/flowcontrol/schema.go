// Package flowcontrol holds the kinds that say how callers share the server:
// priority levels, and the schemas that sort requests into them.
package flowcontrol

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// FlowSchema sorts requests into a priority level, and into flows that do not
// hold up each other.
type FlowSchema struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec says which requests, and where they go.
	Spec FlowSchemaSpec `json:"spec,omitempty" protobuf:"2"`
	// Status tells whether the level is there.
	Status FlowSchemaStatus `json:"status,omitempty" protobuf:"3"`
}

// FlowSchemaSpec is what a flow schema says.
type FlowSchemaSpec struct {
	// MatchingPrecedence decides among schemas that match a request: the least wins. 1 to 10000, 1000 by default.
	MatchingPrecedence int32 `json:"matchingPrecedence" protobuf:"2" schema:"optional,min=1,reason.min=must be a positive value,max=10000,reason.max=must not be greater than 10000"`
	// DistinguisherMethod tells the flows of the schema apart; without it there is one.
	DistinguisherMethod *FlowDistinguisherMethod `json:"distinguisherMethod,omitempty" protobuf:"3"`
	// PriorityLevelConfiguration is the level. If there is none of that name the schema takes no requests.
	PriorityLevelConfiguration PriorityLevelConfigurationReference `json:"priorityLevelConfiguration" protobuf:"1"`
	// Rules of which one has to match. Without rules the schema takes nothing.
	Rules []PolicyRulesWithSubjects `json:"rules,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// PriorityLevelConfigurationReference names a level.
type PriorityLevelConfigurationReference struct {
	// Name of the level.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=must reference a priority level,format=dns-subdomain"`
}

// FlowDistinguisherMethod tells flows apart.
type FlowDistinguisherMethod struct {
	// Type is ByUser or ByNamespace: each user, or each namespace, is a flow.
	Type string `json:"type" protobuf:"1" schema:"enum=ByNamespace|ByUser"`
}

// PolicyRulesWithSubjects matches requests of one of the subjects that one of the rules covers.
type PolicyRulesWithSubjects struct {
	// Subjects are who asks; one at least.
	Subjects []Subject `json:"subjects" protobuf:"1" schema:"required,reason.required=subjects must contain at least one value,listType=atomic"`
	// ResourceRules cover requests for resources.
	ResourceRules []ResourcePolicyRule `json:"resourceRules,omitempty" protobuf:"2" schema:"listType=atomic"`
	// NonResourceRules cover requests for other paths.
	NonResourceRules []NonResourcePolicyRule `json:"nonResourceRules,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// Subject is a user, a group or a service account.
type Subject struct {
	// Kind says which of the other fields is set: User, Group or ServiceAccount.
	Kind string `json:"kind" protobuf:"1" schema:"enum=Group|ServiceAccount|User"`
	// User is a user by name.
	User *UserSubject `json:"user,omitempty" protobuf:"2"`
	// Group is everybody in a group.
	Group *GroupSubject `json:"group,omitempty" protobuf:"3"`
	// ServiceAccount is a service account, or all of a namespace.
	ServiceAccount *ServiceAccountSubject `json:"serviceAccount,omitempty" protobuf:"4"`
}

// UserSubject is a user.
type UserSubject struct {
	// Name of the user; * is everybody.
	Name string `json:"name" protobuf:"1" schema:"required"`
}

// GroupSubject is a group.
type GroupSubject struct {
	// Name of the group; * is all groups.
	Name string `json:"name" protobuf:"1" schema:"required"`
}

// ServiceAccountSubject is a service account.
type ServiceAccountSubject struct {
	// Name of the account; * is all of the namespace.
	Name string `json:"name" protobuf:"2" schema:"required"`
	// Namespace of the account.
	Namespace string `json:"namespace" protobuf:"1" schema:"required,reason.required=must specify namespace for service account,format=dns-label"`
}

// ResourcePolicyRule covers requests by verb, group, resource and namespace. In each list * alone is everything.
type ResourcePolicyRule struct {
	// Verbs of the requests.
	Verbs []string `json:"verbs" protobuf:"1" schema:"required,reason.required=verbs must contain at least one value,listType=set,repeats"`
	// APIGroups of the resources; an empty text is the core group.
	APIGroups []string `json:"apiGroups" protobuf:"2" schema:"required,reason.required=resource rules must supply at least one api group,listType=set,repeats"`
	// Resources by their plural names; sub-resources are named apart, as in nodes/status.
	Resources []string `json:"resources" protobuf:"3" schema:"required,reason.required=resource rules must supply at least one resource,listType=set,repeats"`
	// ClusterScope covers requests that are in no namespace.
	ClusterScope bool `json:"clusterScope,omitempty" protobuf:"4"`
	// Namespaces of the requests that are in one. Only rules with clusterScope may lack them.
	Namespaces []string `json:"namespaces" protobuf:"5" schema:"optional,listType=set,repeats"`
}

// NonResourcePolicyRule covers requests for paths that are no resources. In each list * alone is everything.
type NonResourcePolicyRule struct {
	// Verbs of the requests.
	Verbs []string `json:"verbs" protobuf:"1" schema:"required,reason.required=verbs must contain at least one value,listType=set,repeats"`
	// NonResourceURLs are the paths, such as /healthz; one that ends in /* is all that is below it.
	NonResourceURLs []string `json:"nonResourceURLs" protobuf:"6" schema:"required,reason.required=nonResourceURLs must contain at least one value,listType=set,repeats"`
}

// FlowSchemaStatus is what the server makes of a schema.
type FlowSchemaStatus struct {
	// Conditions of the schema. Dangling is True while its level is not there.
	Conditions []FlowSchemaCondition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// FlowSchemaCondition is one aspect of a schema's state.
type FlowSchemaCondition struct {
	// Type names the aspect.
	Type string `json:"type,omitempty" protobuf:"1" schema:"required,optional"`
	// Status is True, False or Unknown.
	Status string `json:"status,omitempty" protobuf:"2"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`
	// Reason is a word for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`
	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

// Kinds returns the kinds of the flow control group.
func Kinds() []*registry.Kind { return []*registry.Kind{schemas(), levels()} }

func schemas() *registry.Kind {
	return registry.Of(registry.Definition[FlowSchema]{
		Group: names.GroupFlowControl, Version: "v1", Scope: registry.Cluster, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.29"},
		Versions: []registry.VersionOf[FlowSchema]{
			older.Same[FlowSchema]("v1beta1", "1.20", "1.23", "1.26", names.GroupFlowControl+"/v1beta2"),
			older.Same[FlowSchema]("v1beta2", "1.23", "1.26", "1.29", names.GroupFlowControl+"/v1beta3"),
			older.Same[FlowSchema]("v1beta3", "1.26", "1.29", "1.32", names.GroupFlowControl+"/v1"),
		},
		Columns: []registry.Column{
			registry.Text("PriorityLevel", "The level that takes the requests.", "spec", "priorityLevelConfiguration", "name"),
			{Name: "MatchingPrecedence", Type: "string", Doc: "The least of those that match wins.", Cell: func(o *meta.Object) any { return o.Int("spec", "matchingPrecedence") }},
			cell("DistinguisherMethod", "How flows are told apart.", "spec", "distinguisherMethod", "type"),
			registry.Age(),
			{Name: "MissingPL", Type: "string", Doc: "Whether the level is missing.", Cell: func(o *meta.Object) any {
				for _, c := range o.Objects("status", "conditions") {
					if c.String("type") == "Dangling" {
						return c.String("status")
					}
				}
				return "?"
			}},
		},
		Behavior:  registry.Behavior{Default: defaultSchema},
		Validate:  validateSchema,
		Reference: reference(),
	})
}

// reference is what both kinds imitate.
func reference() *compat.Reference {
	return &compat.Reference{AnyNamespace: true, DeleteAnswersStatus: true}
}

// cell is a column of a value that may be missing.
func cell(name, doc string, path ...string) registry.Column {
	return registry.Column{Name: name, Type: "string", Doc: doc, Cell: func(o *meta.Object) any {
		if v, ok := o.Get(path...); ok && v != nil {
			return v
		}
		return "<none>"
	}}
}

// defaultSchema works on the tree, as defaultLevel does: servers write these objects at their
// start, where every step counts.
func defaultSchema(w *registry.Change[meta.Object]) {
	const usual = int64(1000)
	if v, there := w.New.Get("spec", "matchingPrecedence"); !there || v == int64(0) {
		w.New.Set(usual, "spec", "matchingPrecedence")
	}
}
