// Package policy has the admission plugins that evaluate ValidatingAdmissionPolicies and
// MutatingAdmissionPolicies.
//
// source.go compiles policies and bindings once, calls.go selects the policies that match a request, params.go
// finds the parameter objects of a binding, evaluate.go validates a request, mutate.go changes its object,
// and types.go checks expressions against schemas.
package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"orch.io/controlplane/admission"
	"orch.io/controlplane/admission/internal/matcher"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/metrics"
)

// Validating returns the plugin ValidatingAdmissionPolicy.
func Validating() admission.Plugin {
	return admission.Plugin{
		Name: "ValidatingAdmissionPolicy",
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			counts, err := newCounts(env.Metrics, "validating", "validate", metrics.Beta, "enforcement_action")
			if err != nil {
				return fmt.Errorf("metrics: %w", err)
			}
			s := open(env, "validatingadmissionpolicies", counts)
			if env.Control != nil {
				env.Control(s.checks())
			}
			p.Validate, p.Close = s.validate, s.close
			return nil
		},
	}
}

// Mutating returns the plugin MutatingAdmissionPolicy.
func Mutating() admission.Plugin {
	return admission.Plugin{
		Name: "MutatingAdmissionPolicy",
		Setup: func(p *admission.Plugin, env admission.PluginContext) error {
			counts, err := newCounts(env.Metrics, "mutating", "admit", metrics.Alpha)
			if err != nil {
				return fmt.Errorf("metrics: %w", err)
			}
			s := open(env, "mutatingadmissionpolicies", counts)
			p.Mutate, p.Close = s.mutate, s.close
			return nil
		},
	}
}

// policy is a compiled policy, validating or mutating. It is immutable.
type policy struct {
	name        string
	fault       error // of its selectors or environment
	constraints matcher.Constraints
	conditions  matcher.Conditions
	env         *cel.RequestEnv
	params      *meta.GroupVersionKind // nil: no parameters

	validations []validation
	annotations []annotation
	mutations   []mutation
	reinvoked   bool // reinvocationPolicy is IfNeeded
	ignore      bool // failurePolicy is Ignore
}

// validation is an expression that must be true.
type validation struct {
	text    string
	holds   *cel.Program
	made    *cel.Program // the message expression; nil: none
	message string
	reason  meta.Reason
	fault   error // compilation error
}

// annotation is an expression whose value is an audit annotation.
type annotation struct {
	key   string
	value *cel.Program
	fault error
}

// mutation is an expression that changes the object.
type mutation struct {
	text  string
	made  *cel.Program
	patch bool  // the value is a JSON patch, not an apply configuration
	fault error // compilation error
}

// binding is a compiled policy binding. It is immutable.
type binding struct {
	name, policy     string
	fault            error
	narrows          bool
	constraints      matcher.Constraints
	params           *meta.Object // spec.paramRef; nil: none
	deny, warn, note bool         // validationActions
}

// compile compiles a policy. Errors are stored in it, so that they are subject to its failure policy.
func compile(o *meta.Object, profile names.Profile) *policy {
	spec := sub(o, "spec")
	p := &policy{name: o.Name(), ignore: spec.String("failurePolicy") == "Ignore", reinvoked: spec.String("reinvocationPolicy") == "IfNeeded"}
	p.constraints, p.fault = matcher.New(sub(spec, "matchConstraints"), "resourceRules", "excludeResourceRules")
	if kind := spec.Map("paramKind"); kind != nil {
		gv := meta.ParseAPIVersion(spec.String("paramKind", "apiVersion"))
		p.params = &meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: spec.String("paramKind", "kind")}
	}
	var err error
	if p.env, err = cel.NewRequestEnv(profile, cel.Sees{Params: p.params != nil, Namespace: true, Asks: true, Variables: true, Makes: true}); err != nil {
		p.fault = errors.Join(p.fault, err)
		return p
	}
	p.conditions = matcher.NewConditions(func() (*cel.RequestEnv, error) { return p.env, nil }, spec) // match conditions see no variables, which are declared below
	for _, v := range spec.Objects("variables") {
		_ = p.env.Variable(v.String("name"), v.String("expression")) // an expression that uses an invalid variable fails to compile
	}
	for _, v := range spec.Objects("validations") {
		compiled := validation{text: v.String("expression"), message: v.String("message"), reason: meta.Reason(cmp.Or(v.String("reason"), string(meta.ReasonInvalid)))}
		compiled.holds, compiled.fault = p.env.Compile(compiled.text, cel.Boolean)
		if text := v.String("messageExpression"); text != "" {
			compiled.made, _ = p.env.Compile(text, cel.Text)
		}
		p.validations = append(p.validations, compiled)
	}
	for _, a := range spec.Objects("auditAnnotations") {
		compiled := annotation{key: a.String("key")}
		compiled.value, compiled.fault = p.env.Compile(a.String("valueExpression"), cel.TextOrNull)
		p.annotations = append(p.annotations, compiled)
	}
	for _, m := range spec.Objects("mutations") {
		field, of := "applyConfiguration", cel.Configuration
		patch := m.String("patchType") == "JSONPatch"
		if patch {
			field, of = "jsonPatch", cel.Patch
		}
		compiled := mutation{text: m.String(field, "expression"), patch: patch}
		compiled.made, compiled.fault = p.env.Compile(compiled.text, of)
		p.mutations = append(p.mutations, compiled)
	}
	return p
}

func bind(o *meta.Object) *binding {
	spec := sub(o, "spec")
	b := &binding{name: o.Name(), policy: spec.String("policyName")}
	if spec.Map("matchResources") != nil {
		b.narrows = true
		b.constraints, b.fault = matcher.New(sub(spec, "matchResources"), "resourceRules", "excludeResourceRules")
		b.constraints.OrAll()
	}
	if spec.Map("paramRef") != nil {
		b.params = sub(spec, "paramRef")
	}
	for _, action := range spec.Strings("validationActions") {
		b.deny, b.warn, b.note = b.deny || action == "Deny", b.warn || action == "Warn", b.note || action == "Audit"
	}
	return b
}

// sub returns the object in a field, or an empty object if the field is missing.
func sub(o *meta.Object, field string) *meta.Object { return meta.NewObject(o.Map(field)) }

// failureMessage returns the message of a failed validation: the value of messageExpression if it is valid, else the
// field message if it is set, else the expression.
func (v *validation) failureMessage(ctx context.Context, vars map[string]any, left *int64) string {
	if v.made != nil {
		text, ok, err := v.made.Text(ctx, vars, left)
		text = strings.TrimSpace(text)
		if err == nil && ok && text != "" && len(text) <= cel.LongestMessage && !strings.Contains(text, "\n") {
			return text
		}
	}
	if text := strings.TrimSpace(v.message); text != "" {
		return text
	}
	return "failed expression: " + strings.TrimSpace(v.text)
}
