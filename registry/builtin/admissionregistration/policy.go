package admissionregistration

import (
	"regexp"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	expr "orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/conditions"
)

// ValidatingAdmissionPolicy rejects requests by CEL expressions. It has no effect without a binding.
type ValidatingAdmissionPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the policy.
	Spec ValidatingAdmissionPolicySpec `json:"spec,omitempty" protobuf:"2"`
	// Status is the result of type checking.
	Status ValidatingAdmissionPolicyStatus `json:"status,omitempty" protobuf:"3"`
}

// ValidatingAdmissionPolicySpec is a validating policy. At least one validation or audit annotation is
// required.
type ValidatingAdmissionPolicySpec struct {
	// ParamKind is the kind of the parameter objects. Without it the policy has no parameters.
	ParamKind *ParamKind `json:"paramKind,omitempty" protobuf:"1"`
	// MatchConstraints select the requests.
	MatchConstraints *MatchResources `json:"matchConstraints,omitempty" protobuf:"2" schema:"required,optional"`
	// Validations are expressions that must be true; at most 1000.
	Validations []Validation `json:"validations,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=1000"`
	// FailurePolicy decides about a request if an expression cannot be evaluated: Fail (default)
	// rejects it, Ignore admits it.
	FailurePolicy *string `json:"failurePolicy,omitempty" protobuf:"4" schema:"default=Fail,enum=Fail|Ignore"`
	// AuditAnnotations are added to the audit event of the request; at most 20.
	AuditAnnotations []AuditAnnotation `json:"auditAnnotations,omitempty" protobuf:"5" schema:"listType=atomic"`
	// MatchConditions are CEL expressions, at most 64; the policy applies only to requests for which
	// all are true.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
	// Variables are named expressions for use in other expressions; at most 1000. A variable can use
	// earlier variables.
	Variables []Variable `json:"variables,omitempty" protobuf:"7" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=1000"`
}

// ParamKind is the kind of parameter objects.
type ParamKind struct {
	_ struct{} `schema:"mapType=atomic"`

	// APIVersion of the kind, as group/version.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"1" schema:"required,optional"`
	// Kind of the parameters.
	Kind string `json:"kind,omitempty" protobuf:"2" schema:"required,optional"`
}

// MatchResources selects requests.
type MatchResources struct {
	_ struct{} `schema:"mapType=atomic"`

	// NamespaceSelector selects the namespace of the object by label. Empty selects all requests, also
	// for cluster-scoped objects.
	NamespaceSelector *meta.LabelSelector `json:"namespaceSelector,omitempty" protobuf:"1" schema:"format=label-selector"`
	// ObjectSelector selects the object by label; the old or the new object must match. Empty selects
	// all objects.
	ObjectSelector *meta.LabelSelector `json:"objectSelector,omitempty" protobuf:"2" schema:"format=label-selector"`
	// ResourceRules select requests; any of them suffices.
	ResourceRules []NamedRuleWithOperations `json:"resourceRules,omitempty" protobuf:"3" schema:"listType=atomic"`
	// ExcludeResourceRules exclude requests, and take precedence over resourceRules.
	ExcludeResourceRules []NamedRuleWithOperations `json:"excludeResourceRules,omitempty" protobuf:"4" schema:"listType=atomic"`
	// MatchPolicy decides about requests in another version of a selected resource: Equivalent
	// (default) selects them, too, Exact does not.
	MatchPolicy *string `json:"matchPolicy,omitempty" protobuf:"7" schema:"default=Equivalent,enum=Equivalent|Exact"`
}

// NamedRuleWithOperations selects operations on resources, optionally restricted to named objects.
type NamedRuleWithOperations struct {
	_ struct{} `schema:"mapType=atomic"`

	// ResourceNames restricts the rule to objects of these names. Empty means all names.
	ResourceNames []string `json:"resourceNames,omitempty" protobuf:"1" schema:"listType=atomic,uniqueItems,items.format=path-segment"`
	// RuleWithOperations selects operations and resources.
	RuleWithOperations `json:",inline" protobuf:"2"`
}

// Validation is an expression that must be true.
type Validation struct {
	// Expression is a CEL expression about the request.
	Expression string `json:"expression" protobuf:"1"`
	// Message is the text of the violation, without line breaks.
	Message string `json:"message,omitempty" protobuf:"2"`
	// Reason of the rejection: Forbidden, Invalid (default) or RequestEntityTooLarge.
	Reason *string `json:"reason,omitempty" protobuf:"3" schema:"enum=Forbidden|Invalid|RequestEntityTooLarge"`
	// MessageExpression is a CEL expression for the text of the violation. If it fails, message is
	// used.
	MessageExpression string `json:"messageExpression,omitempty" protobuf:"4"`
}

// Variable is a named expression.
type Variable struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name of the variable; expressions use it as variables.NAME. It must be a CEL identifier.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=name is not specified"`
	// Expression is a CEL expression for the value.
	Expression string `json:"expression" protobuf:"2"`
}

// AuditAnnotation is an expression whose value is added to the audit event.
type AuditAnnotation struct {
	// Key of the annotation. In the audit event it is preceded by the name of the policy and a slash.
	Key string `json:"key" protobuf:"1"`
	// ValueExpression is a CEL expression for a string. null adds no annotation.
	ValueExpression string `json:"valueExpression" protobuf:"2"`
}

// ValidatingAdmissionPolicyStatus is the result of type checking.
type ValidatingAdmissionPolicyStatus struct {
	// ObservedGeneration is the generation that the status was computed for.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"1"`
	// TypeChecking lists expressions that do not type-check against the schemas of the selected
	// resources.
	TypeChecking *TypeChecking `json:"typeChecking,omitempty" protobuf:"2"`
	// Conditions of the policy.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"3" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
}

// TypeChecking lists expressions that do not type-check.
type TypeChecking struct {
	// ExpressionWarnings are the errors found.
	ExpressionWarnings []ExpressionWarning `json:"expressionWarnings,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// ExpressionWarning describes an error in an expression.
type ExpressionWarning struct {
	// Warning explains the error to people.
	Warning string `json:"warning" protobuf:"3" schema:"required"`
	// FieldRef is the path of the expression in the policy.
	FieldRef string `json:"fieldRef" protobuf:"2" schema:"required"`
}

func policies() *registry.Kind {
	return registry.Of(registry.Definition[ValidatingAdmissionPolicy]{
		Group: wellknown.GroupRegistration, Version: "v1", Plural: "validatingadmissionpolicies", Scope: registry.Cluster, Status: true, Categories: []string{category},
		Lifetime: registry.Lifetime{Introduced: "1.30"},
		Columns: []registry.Column{
			{Name: "Validations", Type: "integer", Doc: "The number of validations.", Cell: func(o *meta.Object) any { return int64(len(o.List("spec", "validations"))) }},
			paramKindColumn(), registry.AgeColumn(),
		},
		Default:   func(w *registry.Change[ValidatingAdmissionPolicy]) { w.New.Spec.MatchConstraints.setDefaults() },
		Validate:  validatePolicy,
		Reference: reference(),
	})
}

func paramKindColumn() registry.Column {
	return registry.Column{Name: "ParamKind", Type: "string", Doc: "The kind of the parameter objects.", Cell: func(o *meta.Object) any {
		if o.Map("spec", "paramKind") == nil {
			return "<unset>"
		}
		return o.String("spec", "paramKind", "apiVersion") + "/" + o.String("spec", "paramKind", "kind")
	}}
}

// setDefaults makes nil selectors empty, so that they select everything.
func (m *MatchResources) setDefaults() {
	if m == nil {
		return
	}
	defaultSelectors(&m.NamespaceSelector, &m.ObjectSelector)
	for _, list := range [][]NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range list {
			list[i].setDefaults()
		}
	}
}

func (m *MatchResources) validate(f *check.Violations, at *check.Path) {
	if m == nil {
		return
	}
	for i := range m.ResourceRules {
		m.ResourceRules[i].validate(f, at.Field("resourceRules").Index(i))
	}
	for i := range m.ExcludeResourceRules {
		m.ExcludeResourceRules[i].validate(f, at.Field("excludeResourceRules").Index(i))
	}
}

// validatePolicy checks match conditions before variables are declared: conditions cannot use
// variables, and validations can. Of the status only the conditions are checked.
func validatePolicy(w *registry.Change[ValidatingAdmissionPolicy]) {
	if w.Subresource == "status" {
		conditions.Check(&w.Violations, check.At("status", "conditions"), w.New.Status.Conditions)
		return
	}
	s, at := &w.New.Spec, check.At("spec")
	validateRules(&w.Violations, s.ParamKind, s.MatchConstraints)
	e := newExpressions(&w.Violations, w.Names, expr.Sees{Asks: true, Namespace: true, Params: s.ParamKind != nil, Variables: true})
	e.conditions(at.Field("matchConditions"), s.MatchConditions) // before any variable is declared
	for i, v := range s.Variables {
		v.validate(e, at.Field("variables").Index(i))
	}
	if len(s.Validations)+len(s.AuditAnnotations) == 0 {
		const why = "validations or auditAnnotations must contain at least one item"
		w.Required(at.Field("validations"), why)
		w.Required(at.Field("auditAnnotations"), why)
	}
	for i, v := range s.Validations {
		v.validate(e, at.Field("validations").Index(i))
	}
	s.checkAnnotations(e, at.Field("auditAnnotations"), w.New.Name)
}

// validateRules checks the parameter kind and the constraints of a policy.
func validateRules(f *check.Violations, params *ParamKind, m *MatchResources) {
	at := check.At("spec")
	if params != nil {
		params.validate(f, at.Field("paramKind"))
	}
	if at := at.Field("matchConstraints"); m != nil {
		m.validate(f, at)
		if len(m.ResourceRules) == 0 {
			f.Required(at.Field("resourceRules"), "")
		}
	}
}

func (k *ParamKind) validate(f *check.Violations, at *check.Path) {
	if k.Kind != "" {
		for _, why := range meta.CheckDNS1035Label(strings.ToLower(k.Kind)) {
			f.Invalid(at.Field("kind"), k.Kind, "may have mixed case, but should otherwise match: "+why)
		}
	}
	at = at.Field("apiVersion")
	group, version, ok := strings.Cut(k.APIVersion, "/")
	switch {
	case k.APIVersion == "":
		return
	case strings.Contains(version, "/"):
		f.Invalid(at, k.APIVersion, "unexpected GroupVersion string: "+k.APIVersion)
		return
	case !ok:
		group, version = "", group
	}
	f.Subdomain(at, group)
	f.Format(at, version, meta.CheckDNS1035Label(version))
}

func (v *Variable) validate(e expressions, at *check.Path) {
	if v.Name != "" && !regexp.MustCompile(`^[_a-zA-Z][_a-zA-Z0-9]*$`).MatchString(v.Name) {
		e.faults.Invalid(at.Field("name"), v.Name, "must be a valid CEL identifier")
	}
	e.variable(at.Field("expression"), v.Name, v.Expression, "expression is not specified")
}

func (v *Validation) validate(e expressions, at *check.Path) {
	f := e.faults
	e.check(at.Field("expression"), v.Expression, "expression is not specified", expr.Boolean)
	if v.Message != "" && strings.TrimSpace(v.Message) == "" {
		f.Invalid(at.Field("message"), v.Message, "must be non-empty if specified")
	} else if strings.ContainsAny(v.Message, "\n\r") {
		f.Invalid(at.Field("message"), v.Message, "must not contain line breaks")
	}
	if v.MessageExpression == "" {
		return
	}
	if at := at.Field("messageExpression"); strings.TrimSpace(v.MessageExpression) == "" {
		f.Invalid(at, v.MessageExpression, "must be non-empty if specified")
	} else {
		e.check(at, v.MessageExpression, "", expr.Text)
	}
}

// checkAnnotations checks the audit annotations. A key is checked together with the name of the policy,
// because that is its form in the audit event.
func (s *ValidatingAdmissionPolicySpec) checkAnnotations(e expressions, at *check.Path, policy string) {
	f := e.faults
	const maxAnnotations = 20
	if len(s.AuditAnnotations) > maxAnnotations {
		f.Invalid(at, s.AuditAnnotations, "must not have more than 20 auditAnnotations")
	}
	seen := map[string]bool{}
	for i, a := range s.AuditAnnotations {
		key := policy + "/" + a.Key
		f.Format(at.Index(i).Field("key"), key, meta.CheckQualifiedName(key))
		e.check(at.Index(i).Field("valueExpression"), a.ValueExpression, "valueExpression is not specified", expr.TextOrNull)
		if seen[a.Key] {
			f.Duplicate(at.Index(i).Field("key"), a.Key)
		}
		seen[a.Key] = true
	}
}
