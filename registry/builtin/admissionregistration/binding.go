package admissionregistration

import (
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// ValidatingAdmissionPolicyBinding puts a policy into effect, with parameters.
type ValidatingAdmissionPolicyBinding struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec says which policy, for which requests.
	Spec ValidatingAdmissionPolicyBindingSpec `json:"spec,omitempty" protobuf:"2"`
}

// ValidatingAdmissionPolicyBindingSpec says which policy, for which requests.
type ValidatingAdmissionPolicyBindingSpec struct {
	// PolicyName is the policy. While there is none of that name the binding does nothing.
	PolicyName string `json:"policyName,omitempty" protobuf:"1" schema:"required,optional,format=dns-subdomain"`
	// ParamRef are the objects with the parameters; the policy is asked once for each.
	ParamRef *ParamRef `json:"paramRef,omitempty" protobuf:"2"`
	// MatchResources narrows the requests that the policy looks at.
	MatchResources *MatchResources `json:"matchResources,omitempty" protobuf:"3"`
	// ValidationActions are what happens if a validation is not true: Deny or Warn, and Audit.
	ValidationActions []string `json:"validationActions,omitempty" protobuf:"4" schema:"required,optional,reason.required=at least one validation action is required,listType=set,items.enum=Audit|Deny|Warn"`
}

// ParamRef names parameters, or selects them.
type ParamRef struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the one object.
	Name string `json:"name,omitempty" protobuf:"1" schema:"format=path-segment"`
	// Namespace of the objects; by default that of the request.
	Namespace string `json:"namespace,omitempty" protobuf:"2"`
	// Selector selects objects by their labels.
	Selector *meta.Selector `json:"selector,omitempty" protobuf:"3" schema:"format=label-selector"`
	// ParameterNotFoundAction says what becomes of a request if there is no such object: Allow or Deny.
	ParameterNotFoundAction *string `json:"parameterNotFoundAction,omitempty" protobuf:"4" schema:"required,optional,enum=Deny|Allow"`
}

func bindings() *registry.Kind {
	return registry.Of(registry.Definition[ValidatingAdmissionPolicyBinding]{
		Group: names.GroupRegistration, Version: "v1", Scope: registry.Cluster, Categories: []string{category}, Columns: bindingColumns(),
		Lifetime:  registry.Lifetime{Introduced: "1.30"},
		Default:   func(w *registry.Change[ValidatingAdmissionPolicyBinding]) { w.New.Spec.MatchResources.setDefaults() },
		Validate:  validateBinding,
		Reference: reference(),
	})
}

func bindingColumns() []registry.Column {
	return []registry.Column{
		registry.Text("PolicyName", "The policy.", "spec", "policyName"),
		{Name: "ParamRef", Type: "string", Doc: "The parameters.", Cell: func(o *meta.Object) any {
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
		registry.Age(),
	}
}

func validateBinding(w *registry.Change[ValidatingAdmissionPolicyBinding]) {
	s, at := &w.New.Spec, check.At("spec")
	s.ParamRef.validate(&w.Faults, at.Field("paramRef"))
	s.MatchResources.validate(&w.Faults, at.Field("matchResources"))
	if slices.Contains(s.ValidationActions, "Deny") && slices.Contains(s.ValidationActions, "Warn") {
		w.Invalid(at.Field("validationActions"), s.ValidationActions,
			"must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)")
	}
}

func (r *ParamRef) validate(f *check.Faults, at *check.Path) {
	switch {
	case r == nil:
	case r.Name != "" && r.Selector != nil:
		f.Forbidden(at.Field("name"), "name and selector are mutually exclusive")
		f.Forbidden(at.Field("selector"), "name and selector are mutually exclusive")
	case r.Name == "" && r.Selector == nil:
		f.Required(at, "one of name or selector must be specified")
	}
}
