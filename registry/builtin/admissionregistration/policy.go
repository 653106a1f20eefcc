package admissionregistration

import (
	"regexp"
	"strings"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	expr "orch.io/controlplane/internal/cel"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/conditions"
)

// ValidatingAdmissionPolicy says by expressions which requests are refused. A binding
// puts it into effect.
type ValidatingAdmissionPolicy struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the policy.
	Spec ValidatingAdmissionPolicySpec `json:"spec,omitempty" protobuf:"2"`
	// Status tells what was found about the expressions.
	Status ValidatingAdmissionPolicyStatus `json:"status,omitempty" protobuf:"3"`
}

// ValidatingAdmissionPolicySpec is a policy.
type ValidatingAdmissionPolicySpec struct {
	// ParamKind is the kind of objects by which bindings set the policy's parameters.
	ParamKind *ParamKind `json:"paramKind,omitempty" protobuf:"1"`
	// MatchConstraints are the requests that the policy looks at.
	MatchConstraints *MatchResources `json:"matchConstraints,omitempty" protobuf:"2" schema:"required,optional"`
	// Validations have to be true of a request; there are at most 1000.
	Validations []Validation `json:"validations,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=1000"`
	// FailurePolicy says what becomes of a request if an expression fails: Fail refuses it, Ignore lets it pass.
	FailurePolicy *string `json:"failurePolicy,omitempty" protobuf:"4" schema:"default=Fail,enum=Fail|Ignore"`
	// AuditAnnotations are written with the request into the audit, at most 20.
	AuditAnnotations []AuditAnnotation `json:"auditAnnotations,omitempty" protobuf:"5" schema:"listType=atomic"`
	// MatchConditions are expressions, at most 64, that have to be true of a request, or the policy does not look at it.
	MatchConditions []MatchCondition `json:"matchConditions,omitempty" protobuf:"6" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=64"`
	// Variables are expressions that others use by name, at most 1000.
	Variables []Variable `json:"variables,omitempty" protobuf:"7" patchStrategy:"merge" patchMergeKey:"name" schema:"listType=map,listMapKeys=name,repeats,maxItems=1000"`
}

// ParamKind is a kind of parameters.
type ParamKind struct {
	_ struct{} `schema:"mapType=atomic"`

	// APIVersion is group/version of the kind.
	APIVersion string `json:"apiVersion,omitempty" protobuf:"1" schema:"required,optional"`
	// Kind of the parameters.
	Kind string `json:"kind,omitempty" protobuf:"2" schema:"required,optional"`
}

// MatchResources selects requests.
type MatchResources struct {
	_ struct{} `schema:"mapType=atomic"`

	// NamespaceSelector selects the namespaces of objects; empty: all, and what is in none.
	NamespaceSelector *meta.Selector `json:"namespaceSelector,omitempty" protobuf:"1" schema:"format=label-selector"`
	// ObjectSelector selects objects by their labels, before or after the change; empty: all.
	ObjectSelector *meta.Selector `json:"objectSelector,omitempty" protobuf:"2" schema:"format=label-selector"`
	// ResourceRules of which one covers the request.
	ResourceRules []NamedRuleWithOperations `json:"resourceRules,omitempty" protobuf:"3" schema:"listType=atomic"`
	// ExcludeResourceRules of which none covers the request.
	ExcludeResourceRules []NamedRuleWithOperations `json:"excludeResourceRules,omitempty" protobuf:"4" schema:"listType=atomic"`
	// MatchPolicy says whether rules hold for the version of the request alone, Exact, or for others of the same objects, Equivalent.
	MatchPolicy *string `json:"matchPolicy,omitempty" protobuf:"7" schema:"default=Equivalent,enum=Equivalent|Exact"`
}

// NamedRuleWithOperations covers what is done with resources, or with some objects of them.
type NamedRuleWithOperations struct {
	_ struct{} `schema:"mapType=atomic"`

	// ResourceNames are the names of the objects; none: all.
	ResourceNames []string `json:"resourceNames,omitempty" protobuf:"1" schema:"listType=atomic,uniqueItems,items.format=path-segment"`
	// RuleWithOperations says what is done with which resources.
	RuleWithOperations `json:",inline" protobuf:"2"`
}

// Validation is an expression that has to be true.
type Validation struct {
	// Expression in CEL about the request.
	Expression string `json:"expression" protobuf:"1"`
	// Message for the caller if it is not, in one line.
	Message string `json:"message,omitempty" protobuf:"2"`
	// Reason of the refusal; Invalid by default.
	Reason *string `json:"reason,omitempty" protobuf:"3" schema:"enum=Forbidden|Invalid|RequestEntityTooLarge"`
	// MessageExpression makes the message; if it fails there is Message.
	MessageExpression string `json:"messageExpression,omitempty" protobuf:"4"`
}

// Variable is an expression with a name.
type Variable struct {
	_ struct{} `schema:"mapType=atomic"`

	// Name by which expressions use it, below variables.
	Name string `json:"name" protobuf:"1" schema:"required,reason.required=name is not specified"`
	// Expression in CEL that gives the value.
	Expression string `json:"expression" protobuf:"2"`
}

// AuditAnnotation is an expression whose value is written into the audit.
type AuditAnnotation struct {
	// Key of the annotation, behind the name of the policy.
	Key string `json:"key" protobuf:"1"`
	// ValueExpression in CEL gives a text, or null for no annotation.
	ValueExpression string `json:"valueExpression" protobuf:"2"`
}

// ValidatingAdmissionPolicyStatus is what was found about a policy.
type ValidatingAdmissionPolicyStatus struct {
	// ObservedGeneration is the generation of the policy that this tells about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"1"`
	// TypeChecking tells of expressions that do not fit the types they are about.
	TypeChecking *TypeChecking `json:"typeChecking,omitempty" protobuf:"2"`
	// Conditions of the policy.
	Conditions []meta.Condition `json:"conditions,omitempty" protobuf:"3" schema:"listType=map,listMapKeys=type,repeats,unchecked"`
}

// TypeChecking tells of expressions that do not fit.
type TypeChecking struct {
	// ExpressionWarnings are what was found.
	ExpressionWarnings []ExpressionWarning `json:"expressionWarnings,omitempty" protobuf:"1" schema:"listType=atomic"`
}

// ExpressionWarning tells of one expression.
type ExpressionWarning struct {
	// Warning is a text for people.
	Warning string `json:"warning" protobuf:"3" schema:"required"`
	// FieldRef is the path of the expression in the policy.
	FieldRef string `json:"fieldRef" protobuf:"2" schema:"required"`
}

func policies() *registry.Kind {
	return registry.Of(registry.Definition[ValidatingAdmissionPolicy]{
		Group: names.GroupRegistration, Version: "v1", Plural: "validatingadmissionpolicies", Scope: registry.Cluster, Status: true, Categories: []string{category},
		Lifetime: registry.Lifetime{Introduced: "1.30"},
		Columns: []registry.Column{
			{Name: "Validations", Type: "integer", Doc: "How many validations there are.", Cell: func(o *meta.Object) any { return int64(len(o.List("spec", "validations"))) }},
			paramKindColumn(), registry.Age(),
		},
		Default:   func(w *registry.Change[ValidatingAdmissionPolicy]) { w.New.Spec.MatchConstraints.setDefaults() },
		Validate:  validatePolicy,
		Reference: reference(),
	})
}

func paramKindColumn() registry.Column {
	return registry.Column{Name: "ParamKind", Type: "string", Doc: "The kind of parameters.", Cell: func(o *meta.Object) any {
		if o.Map("spec", "paramKind") == nil {
			return "<unset>"
		}
		return o.String("spec", "paramKind", "apiVersion") + "/" + o.String("spec", "paramKind", "kind")
	}}
}

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

func (m *MatchResources) validate(f *check.Faults, at *check.Path) {
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

func validatePolicy(w *registry.Change[ValidatingAdmissionPolicy]) {
	if w.Subresource == "status" {
		conditions.Check(&w.Faults, check.At("status", "conditions"), w.New.Status.Conditions)
		return
	}
	s, at := &w.New.Spec, check.At("spec")
	validateRules(&w.Faults, s.ParamKind, s.MatchConstraints)
	e := newExpressions(&w.Faults, w.Names, expr.Sees{Asks: true, Namespace: true, Params: s.ParamKind != nil, Variables: true})
	e.conditions(at.Field("matchConditions"), s.MatchConditions) // which see no variables
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

// validateRules checks what a policy is about.
func validateRules(f *check.Faults, params *ParamKind, m *MatchResources) {
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

func (k *ParamKind) validate(f *check.Faults, at *check.Path) {
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

// checkAnnotations checks the keys as the audit has them: with the name of the policy.
func (s *ValidatingAdmissionPolicySpec) checkAnnotations(e expressions, at *check.Path, policy string) {
	f := e.faults
	const most = 20
	if len(s.AuditAnnotations) > most {
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
