package admissionregistration

import (
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// ValidatingAdmissionPolicyBinding activates a ValidatingAdmissionPolicy, optionally with parameters.
type ValidatingAdmissionPolicyBinding struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec selects the policy, the parameters and the requests.
	Spec ValidatingAdmissionPolicyBindingSpec `json:"spec,omitempty" protobuf:"2"`
}

// ValidatingAdmissionPolicyBindingSpec selects a policy, its parameters and the requests that it
// applies to.
type ValidatingAdmissionPolicyBindingSpec struct {
	// PolicyName is the name of the policy. While it does not exist, the binding has no effect.
	PolicyName string `json:"policyName,omitempty" protobuf:"1" schema:"required,optional,format=dns-subdomain"`
	// ParamRef selects the parameter objects. The policy is evaluated for each of them.
	ParamRef *ParamRef `json:"paramRef,omitempty" protobuf:"2"`
	// MatchResources restricts the requests in addition to the policy's own constraints.
	MatchResources *MatchResources `json:"matchResources,omitempty" protobuf:"3"`
	// ValidationActions decide about a request that fails a validation: Deny rejects it, Warn adds a
	// warning to the answer, Audit adds an annotation to the audit event. Deny and Warn exclude each
	// other.
	ValidationActions []string `json:"validationActions,omitempty" protobuf:"4" schema:"required,optional,reason.required=at least one validation action is required,listType=set,items.enum=Audit|Deny|Warn"`
}

// ParamRef selects parameter objects. Either name or selector must be set.
type ParamRef struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the parameter object. It excludes selector.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=path-segment"`
	// Namespace of the parameter objects; default the namespace of the request. It must be unset for
	// cluster-scoped kinds.
	Namespace string `json:"namespace,omitempty" protobuf:"2"`
	// Selector selects parameter objects by label. It excludes name.
	Selector *meta.LabelSelector `json:"selector,omitempty" protobuf:"3" schema:"format=label-selector"`
	// ParameterNotFoundAction decides about requests if no parameter object exists: Allow or Deny.
	ParameterNotFoundAction *string `json:"parameterNotFoundAction,omitempty" protobuf:"4" schema:"required,optional,enum=Deny|Allow"`
}

func bindings() *registry.Kind {
	return registry.Of(registry.Definition[ValidatingAdmissionPolicyBinding]{
		Group: wellknown.GroupRegistration, Version: "v1", Scope: registry.Cluster, Categories: []string{category}, Columns: bindingColumns(),
		Lifetime:  registry.Lifetime{Introduced: "1.30"},
		Default:   func(w *registry.Change[ValidatingAdmissionPolicyBinding]) { w.New.Spec.MatchResources.setDefaults() },
		Validate:  validateBinding,
		Reference: reference(),
	})
}

func bindingColumns() []registry.Column {
	return []registry.Column{
		registry.TextColumn("PolicyName", "The name of the policy.", "spec", "policyName"),
		{Name: "ParamRef", Type: "string", Doc: "The parameter object.", Cell: func(o *meta.Object) any {
			ref := meta.NewObject(o.Map("spec", "paramRef"))
			switch name, namespace := ref.String("name"), ref.String("namespace"); {
			case name == "":
				return "<unset>"
			case namespace == "":
				return "*/" + name
			default:
				return namespace + "/" + name
			}
		}},
		registry.AgeColumn(),
	}
}

func validateBinding(w *registry.Change[ValidatingAdmissionPolicyBinding]) {
	s, at := &w.New.Spec, check.At("spec")
	s.ParamRef.validate(&w.Violations, at.Field("paramRef"))
	s.MatchResources.validate(&w.Violations, at.Field("matchResources"))
	if slices.Contains(s.ValidationActions, "Deny") && slices.Contains(s.ValidationActions, "Warn") {
		w.Invalid(at.Field("validationActions"), s.ValidationActions,
			"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)")
	}
}

func (r *ParamRef) validate(f *check.Violations, at *check.Path) {
	switch {
	case r == nil:
	case r.Name != "" && r.Selector != nil:
		f.Forbidden(at.Field("name"), "name and selector are mutually exclusive")
		f.Forbidden(at.Field("selector"), "name and selector are mutually exclusive")
	case r.Name == "" && r.Selector == nil:
		f.Required(at, "one of name or selector must be specified")
	}
}
