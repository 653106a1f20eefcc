package admissionregistration

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	expr "orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// MutatingAdmissionPolicy changes objects of requests by CEL expressions. It has no effect without a
// binding.
type MutatingAdmissionPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the policy.
	Spec MutatingAdmissionPolicySpec `json:"spec,omitempty" protobuf:"2"`
}

// MutatingAdmissionPolicySpec is a mutating policy.
type MutatingAdmissionPolicySpec struct {
	// ParamKind is the kind of the parameter objects. Without it the policy has no parameters.
	ParamKind *ParamKind `json:"paramKind,omitempty" protobuf:"1"`
	// MatchConstraints select the requests. DELETE is never selected.
	MatchConstraints *MatchResources `json:"matchConstraints,omitempty" protobuf:"2" schema:"required,optional"`
	// Variables are named expressions for use in the mutations; at most 1000.
	Variables []Variable `json:"variables,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=1000"`
	// Mutations are applied in order; at most 1000.
	Mutations []Mutation `json:"mutations,omitempty" protobuf:"4" schema:"required,optional,reason.required=mutations must contain at least one item,listType=atomic,maxItems=1000"`
	// FailurePolicy decides about a request if an expression cannot be evaluated: Fail (default)
	// rejects it, Ignore admits it.
	FailurePolicy *string `json:"failurePolicy,omitempty" protobuf:"5" schema:"default=Fail,enum=Fail|Ignore"`
	// MatchConditions are CEL expressions, at most 64; the policy applies only to requests for which
	// all are true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
	// ReinvocationPolicy decides whether the mutations run again if a later plugin changed the object:
	// Never or IfNeeded.
	ReinvocationPolicy string `json:"reinvocationPolicy,omitempty" protobuf:"7" schema:"required,optional,enum=IfNeeded|Never"`
}

// Mutation changes the object of a request. Exactly the field that patchType names must be set.
type Mutation struct {
	// PatchType is ApplyConfiguration or JSONPatch.
	PatchType string `json:"patchType" protobuf:"2" schema:"required,enum=ApplyConfiguration|JSONPatch"`
	// ApplyConfiguration computes fields that are merged into the object.
	ApplyConfiguration *ApplyConfiguration `json:"applyConfiguration,omitempty" protobuf:"3"`
	// JSONPatch computes a JSON patch of the object.
	JSONPatch *JSONPatch `json:"jsonPatch,omitempty" protobuf:"4"`
}

// ApplyConfiguration computes fields that are merged into the object as by server-side apply.
type ApplyConfiguration struct {
	// Expression in CEL returns the fields, such as Object{spec: Object.spec{replicas: 2}}. It must not
	// set atomic lists, maps or structs.
	Expression string `json:"expression,omitempty" protobuf:"1"`
}

// JSONPatch computes a JSON patch of the object.
type JSONPatch struct {
	// Expression in CEL returns the operations, such as [JSONPatch{op: "add", path: "/spec/replicas",
	// value: 2}].
	Expression string `json:"expression,omitempty" protobuf:"1"`
}

// MutatingAdmissionPolicyBinding activates a MutatingAdmissionPolicy, optionally with parameters.
type MutatingAdmissionPolicyBinding struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec selects the policy, the parameters and the requests.
	Spec MutatingAdmissionPolicyBindingSpec `json:"spec,omitempty" protobuf:"2"`
}

// MutatingAdmissionPolicyBindingSpec selects a policy, its parameters and the requests that it applies
// to.
type MutatingAdmissionPolicyBindingSpec struct {
	// PolicyName is the name of the policy. While it does not exist, the binding has no effect.
	PolicyName string `json:"policyName,omitempty" protobuf:"1" schema:"required,optional,format=dns-subdomain"`
	// ParamRef selects the parameter objects. The mutations run for each of them.
	ParamRef *ParamRef `json:"paramRef,omitempty" protobuf:"2"`
	// MatchResources restricts the requests in addition to the policy's own constraints.
	MatchResources *MatchResources `json:"matchResources,omitempty" protobuf:"3"`
}

func mutatingPolicies() *registry.Kind {
	return registry.Of(registry.Definition[MutatingAdmissionPolicy]{
		Group: wellknown.GroupRegistration, Version: "v1", Plural: "mutatingadmissionpolicies", Scope: registry.Cluster, Categories: []string{category},
		Lifetime: registry.Lifetime{Introduced: "1.36"},
		Columns: []registry.Column{
			{Name: "Mutations", Type: "integer", Doc: "The number of mutations.", Cell: func(o *meta.Object) any { return int64(len(o.List("spec", "mutations"))) }},
			paramKindColumn(), registry.AgeColumn(),
		},
		Default:   func(w *registry.Change[MutatingAdmissionPolicy]) { w.New.Spec.MatchConstraints.setDefaults() },
		Validate:  validateMutatingPolicy,
		Reference: reference(),
	})
}

func mutatingBindings() *registry.Kind {
	return registry.Of(registry.Definition[MutatingAdmissionPolicyBinding]{
		Group: wellknown.GroupRegistration, Version: "v1", Scope: registry.Cluster, Categories: []string{category}, Columns: bindingColumns(),
		Lifetime: registry.Lifetime{Introduced: "1.36"},
		Default:  func(w *registry.Change[MutatingAdmissionPolicyBinding]) { w.New.Spec.MatchResources.setDefaults() },
		Validate: func(w *registry.Change[MutatingAdmissionPolicyBinding]) {
			s, at := &w.New.Spec, check.At("spec")
			s.ParamRef.validate(&w.Violations, at.Field("paramRef"))
			s.MatchResources.validate(&w.Violations, at.Field("matchResources"))
			s.MatchResources.checkOperations(&w.Violations, at.Field("matchResources"))
		},
		Reference: reference(),
	})
}

// checkOperations checks that no rule is for DELETE, because a deleted object cannot be mutated.
func (m *MatchResources) checkOperations(f *check.Violations, at *check.Path) {
	if m == nil {
		return
	}
	known := []string{all, "CONNECT", "CREATE", "UPDATE"}
	for _, r := range m.ResourceRules {
		for _, op := range r.Operations {
			if !slices.Contains(known, op) {
				f.NotSupported(at.Field("resourceRules").Field("operations"), op, known...)
			}
		}
	}
}

// validateMutatingPolicy checks match conditions before variables are declared: conditions cannot use
// variables, and mutations can.
func validateMutatingPolicy(w *registry.Change[MutatingAdmissionPolicy]) {
	s, at := &w.New.Spec, check.At("spec")
	e := newExpressions(&w.Violations, w.Names, expr.Sees{Asks: true, Namespace: true, Params: s.ParamKind != nil, Variables: true, Makes: true})
	validateRules(&w.Violations, s.ParamKind, s.MatchConstraints)
	s.MatchConstraints.checkOperations(&w.Violations, at.Field("matchConstraints"))
	e.conditions(at.Field("matchConditions"), s.MatchConditions) // before any variable is declared
	for i, v := range s.Variables {
		v.validate(e, at.Field("variables").Index(i))
	}
	for i, m := range s.Mutations {
		m.validate(e, at.Field("mutations").Index(i))
	}
}

func (m *Mutation) validate(e expressions, at *check.Path) {
	configuration, patch := at.Field("applyConfiguration"), at.Field("jsonPatch")
	switch m.PatchType {
	case "ApplyConfiguration":
		if m.ApplyConfiguration == nil {
			e.faults.Required(configuration, "must be specified when patchType is ApplyConfiguration")
		} else {
			e.check(configuration.Field("expression"), strings.TrimSpace(m.ApplyConfiguration.Expression), "", expr.Configuration)
		}
		if m.JSONPatch != nil {
			e.faults.Invalid(patch, "{jsonPatch}", "must not be specified when patchType is ApplyConfiguration")
		}
	case "JSONPatch":
		if m.JSONPatch == nil {
			e.faults.Required(patch, "must be specified when patchType is JSONPatch")
		} else {
			e.check(patch.Field("expression"), strings.TrimSpace(m.JSONPatch.Expression), "", expr.Patch)
		}
		if m.ApplyConfiguration != nil {
			e.faults.Invalid(configuration, "{applyConfiguration}", "must not be specified when patchType is JSONPatch")
		}
	}
}
