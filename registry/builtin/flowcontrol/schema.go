// Package flowcontrol defines the kinds of API priority and fairness: FlowSchema, which classifies
// requests, and PriorityLevelConfiguration, which limits the concurrency of each class.
package flowcontrol

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// FlowSchema assigns requests to a priority level, and divides them into flows that are served fairly.
type FlowSchema struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the classification.
	Spec FlowSchemaSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is the state of the flow schema.
	Status FlowSchemaStatus `json:"status,omitempty" protobuf:"3"`
}

// FlowSchemaSpec classifies requests.
type FlowSchemaSpec struct {
	// MatchingPrecedence orders the flow schemas: among matching schemas, the lowest number
	// wins. 1 to 10000, default 1000; only the schema exempt may have 1.
	MatchingPrecedence int32 `json:"matchingPrecedence" protobuf:"2" schema:"optional,min=1,reason.min=must be a positive value,max=10000,reason.max=must not be greater than 10000"`
	// DistinguisherMethod divides the matching requests into flows. Without it they are a single flow.
	DistinguisherMethod *FlowDistinguisherMethod `json:"distinguisherMethod,omitempty" protobuf:"3"`
	// PriorityLevelConfiguration is the level that serves the requests. While it does not exist, the
	// flow schema matches no request.
	PriorityLevelConfiguration PriorityLevelConfigurationReference `json:"priorityLevelConfiguration" protobuf:"1"`
	// Rules select requests; any of them suffices. Without rules the flow schema matches no request.
	Rules []PolicyRulesWithSubjects `json:"rules,omitempty" protobuf:"4" schema:"listType=atomic"`
}

// PriorityLevelConfigurationReference refers to a priority level.
type PriorityLevelConfigurationReference struct {
	// Name of the level.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=must reference a priority level,format=dns-subdomain"`
}

// FlowDistinguisherMethod divides requests into flows.
type FlowDistinguisherMethod struct {
	// Type is ByUser or ByNamespace.
	Type string `json:"type" protobuf:"1" schema:"enum=ByNamespace|ByUser"`
}

// PolicyRulesWithSubjects matches a request if one of the subjects made it and any of the rules covers
// it.
type PolicyRulesWithSubjects struct {
	// Subjects are the callers; at least one.
	Subjects []Subject `json:"subjects" protobuf:"1" schema:"required,reason.required=subjects must contain at least one value,listType=atomic"`
	// ResourceRules cover requests for resources. At least one resource rule or non-resource rule is
	// required.
	ResourceRules []ResourcePolicyRule `json:"resourceRules,omitempty" protobuf:"2" schema:"listType=atomic"`
	// NonResourceRules cover requests for other paths.
	NonResourceRules []NonResourcePolicyRule `json:"nonResourceRules,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// Subject is a user, a group or a service account. Exactly the field that kind names must be set.
type Subject struct {
	// Kind is User, Group or ServiceAccount.
	Kind string `json:"kind" protobuf:"1" schema:"enum=Group|ServiceAccount|User"`
	// User is set if the kind is User.
	User *UserSubject `json:"user,omitempty" protobuf:"2"`
	// Group is set if the kind is Group.
	Group *GroupSubject `json:"group,omitempty" protobuf:"3"`
	// ServiceAccount is set if the kind is ServiceAccount.
	ServiceAccount *ServiceAccountSubject `json:"serviceAccount,omitempty" protobuf:"4"`
}

// UserSubject matches users by name.
type UserSubject struct {
	// Name of the user; * matches every user.
	Name string `json:"name" protobuf:"1" schema:"required"`
}

// GroupSubject matches the members of a group.
type GroupSubject struct {
	// Name of the group; * matches every group.
	Name string `json:"name" protobuf:"1" schema:"required"`
}

// ServiceAccountSubject matches service accounts of a namespace.
type ServiceAccountSubject struct {
	// Name of the service account; * matches every service account of the namespace.
	Name string `json:"name" protobuf:"2" schema:"required"`
	// Namespace of the account.
	Namespace string `json:"namespace" protobuf:"1" schema:"required,reason.required=must specify namespace for service account,format=dns-label"`
}

// ResourcePolicyRule covers requests by verb, API group, resource and namespace. The entry * matches
// everything and must be the only entry of its list.
type ResourcePolicyRule struct {
	// Verbs such as get, list or watch.
	Verbs []string `json:"verbs" protobuf:"1" schema:"required,reason.required=verbs must contain at least one value,listType=set,repeats"`
	// APIGroups of the resources; the empty string is the core group.
	APIGroups []string `json:"apiGroups" protobuf:"2" schema:"required,reason.required=resource rules must supply at least one api group,listType=set,repeats"`
	// Resources by plural name; a subresource is a resource of its own, such as nodes/status.
	Resources []string `json:"resources" protobuf:"3" schema:"required,reason.required=resource rules must supply at least one resource,listType=set,repeats"`
	// ClusterScope covers requests without a namespace, too.
	ClusterScope bool `json:"clusterScope,omitempty" protobuf:"4"`
	// Namespaces of the requests. Required unless clusterScope is true.
	Namespaces []string `json:"namespaces" protobuf:"5" schema:"optional,listType=set,repeats"`
}

// NonResourcePolicyRule covers requests for paths outside the resource API. The entry * matches
// everything and must be the only entry of its list.
type NonResourcePolicyRule struct {
	// Verbs such as get or post.
	Verbs []string `json:"verbs" protobuf:"1" schema:"required,reason.required=verbs must contain at least one value,listType=set,repeats"`
	// NonResourceURLs are paths such as /healthz. A path that ends in /* matches all paths below it.
	NonResourceURLs []string `json:"nonResourceURLs" protobuf:"6" schema:"required,reason.required=nonResourceURLs must contain at least one value,listType=set,repeats"`
}

// FlowSchemaStatus is the state of a flow schema.
type FlowSchemaStatus struct {
	// Conditions of the flow schema, without repeated types. Dangling is True while its priority
	// level does not exist.
	Conditions []FlowSchemaCondition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// FlowSchemaCondition is an aspect of a flow schema's state.
type FlowSchemaCondition struct {
	// Type identifies the condition.
	Type string `json:"type,omitempty" protobuf:"1" schema:"required,optional"`
	// Status is True, False or Unknown.
	Status string `json:"status,omitempty" protobuf:"2"`
	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`
	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`
	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

// Kinds returns the kinds of the flow control group.
func Kinds() []*registry.Kind { return []*registry.Kind{schemas(), levels()} }

func schemas() *registry.Kind {
	return registry.Of(registry.Definition[FlowSchema]{
		Group: wellknown.GroupFlowControl, Version: "v1", Scope: registry.Cluster, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.29"},
		Versions: []registry.VersionOf[FlowSchema]{
			older.Same[FlowSchema]("v1beta1", "1.20", "1.23", "1.26", wellknown.GroupFlowControl+"/v1beta2"),
			older.Same[FlowSchema]("v1beta2", "1.23", "1.26", "1.29", wellknown.GroupFlowControl+"/v1beta3"),
			older.Same[FlowSchema]("v1beta3", "1.26", "1.29", "1.32", wellknown.GroupFlowControl+"/v1"),
		},
		Columns: []registry.Column{
			registry.TextColumn("PriorityLevel", "The level that serves the requests.", "spec", "priorityLevelConfiguration", "name"),
			{Name: "MatchingPrecedence", Type: "string", Doc: "Of the matching flow schemas, the lowest precedence wins.", Cell: func(o *meta.Object) any { return o.Int("spec", "matchingPrecedence") }},
			cell("DistinguisherMethod", "How requests are divided into flows.", "spec", "distinguisherMethod", "type"),
			registry.AgeColumn(),
			{Name: "MissingPL", Type: "string", Doc: "True if the priority level does not exist.", Cell: func(o *meta.Object) any {
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

// reference returns the compatibility settings of both kinds.
func reference() *compat.Reference {
	return &compat.Reference{AnyNamespace: true, DeleteAnswersStatus: true}
}

// cell returns a column that shows the value at path, or <none>.
func cell(name, doc string, path ...string) registry.Column {
	return registry.Column{Name: name, Type: "string", Doc: doc, Cell: func(o *meta.Object) any {
		if v, ok := o.Get(path...); ok && v != nil {
			return v
		}
		return "<none>"
	}}
}

// defaultSchema sets the precedence. It works on the tree instead of the typed object, as defaultLevel
// does, because a server writes its default objects at each start and a typed view costs more.
func defaultSchema(w *registry.Change[meta.Object]) {
	const defaultPrecedence = int64(1000)
	if v, there := w.New.Get("spec", "matchingPrecedence"); !there || v == int64(0) {
		w.New.Set(defaultPrecedence, "spec", "matchingPrecedence")
	}
}
