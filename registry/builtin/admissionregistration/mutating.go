package admissionregistration

import (
	"slices"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	expr "orch.io/controlplane/internal/cel"
	"orch.io/controlplane/registry"
)

// MutatingAdmissionPolicy says by expressions how the objects of requests are changed. A
// binding puts it into effect.
type MutatingAdmissionPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the policy.
	Spec MutatingAdmissionPolicySpec `json:"spec,omitempty" protobuf:"2"`
}

// MutatingAdmissionPolicySpec is a policy.
type MutatingAdmissionPolicySpec struct {
	// ParamKind is the kind of objects by which bindings set the policy's parameters.
	ParamKind *ParamKind `json:"paramKind,omitempty" protobuf:"1"`
	// MatchConstraints are the requests that the policy looks at; it never looks at DELETE.
	MatchConstraints *MatchResources `json:"matchConstraints,omitempty" protobuf:"2" schema:"required,optional"`
	// Variables are expressions that others use by name, at most 1000.
	Variables []Variable `json:"variables,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=1000"`
	// Mutations are made one after the other; there are at most 1000.
	Mutations []Mutation `json:"mutations,omitempty" protobuf:"4" schema:"required,optional,reason.required=mutations must contain at least one item,listType=atomic,maxItems=1000"`
	// FailurePolicy says what becomes of a request if a mutation fails: Fail refuses it, Ignore lets it pass.
	FailurePolicy *string `json:"failurePolicy,omitempty" protobuf:"5" schema:"default=Fail,enum=Fail|Ignore"`
	// MatchConditions are expressions, at most 64, that have to be true of a request, or the policy does not look at it.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
	// ReinvocationPolicy says whether the mutations are made again after others changed the object: Never or IfNeeded.
	ReinvocationPolicy string `json:"reinvocationPolicy,omitempty" protobuf:"7" schema:"required,optional,enum=IfNeeded|Never"`
}

// Mutation changes the object of a request.
type Mutation struct {
	// PatchType says which of the two it is: ApplyConfiguration or JSONPatch.
	PatchType string `json:"patchType" protobuf:"2" schema:"required,enum=ApplyConfiguration|JSONPatch"`
	// ApplyConfiguration makes fields that are merged into the object.
	ApplyConfiguration *ApplyConfiguration `json:"applyConfiguration,omitempty" protobuf:"3"`
	// JSONPatch makes a JSON patch of the object.
	JSONPatch *JSONPatch `json:"jsonPatch,omitempty" protobuf:"4"`
}

// ApplyConfiguration makes fields that are merged into the object, as server-side apply does.
type ApplyConfiguration struct {
	// Expression in CEL gives the fields: Object{spec: Object.spec{replicas: 2}}. It may not set atomic lists, maps and structs.
	Expression string `json:"expression,omitempty" protobuf:"1"`
}

// JSONPatch makes a JSON patch of the object.
type JSONPatch struct {
	// Expression in CEL gives the operations: [JSONPatch{op: "add", path: "/spec/replicas", value: 2}].
	Expression string `json:"expression,omitempty" protobuf:"1"`
}

// MutatingAdmissionPolicyBinding puts a policy into effect, with parameters.
type MutatingAdmissionPolicyBinding struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec says which policy, for which requests.
	Spec MutatingAdmissionPolicyBindingSpec `json:"spec,omitempty" protobuf:"2"`
}

// MutatingAdmissionPolicyBindingSpec says which policy, for which requests.
type MutatingAdmissionPolicyBindingSpec struct {
	// PolicyName is the policy. While there is none of that name the binding does nothing.
	PolicyName string `json:"policyName,omitempty" protobuf:"1" schema:"required,optional,format=dns-subdomain"`
	// ParamRef are the objects with the parameters; the mutations are made once for each.
	ParamRef *ParamRef `json:"paramRef,omitempty" protobuf:"2"`
	// MatchResources narrows the requests that the policy looks at.
	MatchResources *MatchResources `json:"matchResources,omitempty" protobuf:"3"`
}

func mutatingPolicies() *registry.Kind {
	return registry.Of(registry.Definition[MutatingAdmissionPolicy]{
		Group: names.GroupRegistration, Version: "v1", Plural: "mutatingadmissionpolicies", Scope: registry.Cluster, Categories: []string{category},
		Lifetime: registry.Lifetime{Introduced: "1.36"},
		Columns: []registry.Column{
			{Name: "Mutations", Type: "integer", Doc: "How many mutations there are.", Cell: func(o *meta.Object) any { return int64(len(o.List("spec", "mutations"))) }},
			paramKindColumn(), registry.Age(),
		},
		Default:   func(w *registry.Change[MutatingAdmissionPolicy]) { w.New.Spec.MatchConstraints.setDefaults() },
		Validate:  validateMutatingPolicy,
		Reference: reference(),
	})
}

func mutatingBindings() *registry.Kind {
	return registry.Of(registry.Definition[MutatingAdmissionPolicyBinding]{
		Group: names.GroupRegistration, Version: "v1", Scope: registry.Cluster, Categories: []string{category}, Columns: bindingColumns(),
		Lifetime: registry.Lifetime{Introduced: "1.36"},
		Default:  func(w *registry.Change[MutatingAdmissionPolicyBinding]) { w.New.Spec.MatchResources.setDefaults() },
		Validate: func(w *registry.Change[MutatingAdmissionPolicyBinding]) {
			s, at := &w.New.Spec, check.At("spec")
			s.ParamRef.validate(&w.Faults, at.Field("paramRef"))
			s.MatchResources.validate(&w.Faults, at.Field("matchResources"))
			s.MatchResources.changes(&w.Faults, at.Field("matchResources"))
		},
		Reference: reference(),
	})
}

// changes checks that there is something to change: no rule is about deletes.
func (m *MatchResources) changes(f *check.Faults, at *check.Path) {
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

func validateMutatingPolicy(w *registry.Change[MutatingAdmissionPolicy]) {
	s, at := &w.New.Spec, check.At("spec")
	e := newExpressions(&w.Faults, w.Names, expr.Sees{Asks: true, Namespace: true, Params: s.ParamKind != nil, Variables: true, Makes: true})
	validateRules(&w.Faults, s.ParamKind, s.MatchConstraints)
	s.MatchConstraints.changes(&w.Faults, at.Field("matchConstraints"))
	e.conditions(at.Field("matchConditions"), s.MatchConditions) // which see no variables
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
