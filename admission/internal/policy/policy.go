// Package policy holds the admission plugins that evaluate ValidatingAdmissionPolicies and
// MutatingAdmissionPolicies.
//
// source.go has the policies and their bindings, compiled once, calls.go says which of them
// a request concerns, types.go what is wrong with them by the types of what they see, params.go finds the objects by which a binding sets parameters,
// evaluate.go decides about a request, and mutate.go changes its object.
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
		Setup: func(p *admission.Plugin, env admission.Env) error {
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
		Setup: func(p *admission.Plugin, env admission.Env) error {
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

// policy is a policy of either sort, compiled. It never changes.
type policy struct {
	name       string
	fault      error // of its selectors
	about      matcher.Constraints
	conditions matcher.Conditions
	env        *cel.RequestEnv
	params     *meta.GroupVersionKind // nil: it has none

	validations []validation
	annotations []annotation
	mutations   []mutation
	reinvoked   bool // the mutations are made again after others changed the object
	ignore      bool // what fails lets the request pass
}

// validation is an expression that has to be true.
type validation struct {
	text    string
	holds   *cel.Program
	made    *cel.Program // makes the message; nil: none
	message string
	reason  meta.Reason
	fault   error // why it cannot be evaluated
}

// annotation is an expression whose value the audit is told.
type annotation struct {
	key   string
	value *cel.Program
	fault error
}

// mutation is an expression that changes the object.
type mutation struct {
	text  string
	made  *cel.Program
	patch bool  // it makes a JSON patch, and no fields to be merged
	fault error // why it cannot be evaluated
}

// binding puts a policy into effect.
type binding struct {
	name, policy     string
	fault            error
	narrows          bool
	about            matcher.Constraints
	params           *meta.Object // where the parameters are; nil: there are none
	deny, warn, note bool         // what becomes of a request that is not valid
}

// compile makes a policy of its object.
func compile(o *meta.Object, profile names.Profile) *policy {
	spec := sub(o, "spec")
	p := &policy{name: o.Name(), ignore: spec.String("failurePolicy") == "Ignore", reinvoked: spec.String("reinvocationPolicy") == "IfNeeded"}
	p.about, p.fault = matcher.New(sub(spec, "matchConstraints"), "resourceRules", "excludeResourceRules")
	if kind := spec.Map("paramKind"); kind != nil {
		gv := meta.ParseAPIVersion(spec.String("paramKind", "apiVersion"))
		p.params = &meta.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: spec.String("paramKind", "kind")}
	}
	var err error
	if p.env, err = cel.NewRequestEnv(profile, cel.Sees{Params: p.params != nil, Namespace: true, Asks: true, Variables: true, Makes: true}); err != nil {
		p.fault = errors.Join(p.fault, err)
		return p
	}
	p.conditions = matcher.NewConditions(func() (*cel.RequestEnv, error) { return p.env, nil }, spec) // they see no variables
	for _, v := range spec.Objects("variables") {
		_ = p.env.Variable(v.String("name"), v.String("expression")) // who uses it is told
	}
	for _, v := range spec.Objects("validations") {
		one := validation{text: v.String("expression"), message: v.String("message"), reason: meta.Reason(cmp.Or(v.String("reason"), string(meta.ReasonInvalid)))}
		one.holds, one.fault = p.env.Compile(one.text, cel.Boolean)
		if text := v.String("messageExpression"); text != "" {
			one.made, _ = p.env.Compile(text, cel.Text)
		}
		p.validations = append(p.validations, one)
	}
	for _, a := range spec.Objects("auditAnnotations") {
		one := annotation{key: a.String("key")}
		one.value, one.fault = p.env.Compile(a.String("valueExpression"), cel.TextOrNull)
		p.annotations = append(p.annotations, one)
	}
	for _, m := range spec.Objects("mutations") {
		field, of := "applyConfiguration", cel.Configuration
		patch := m.String("patchType") == "JSONPatch"
		if patch {
			field, of = "jsonPatch", cel.Patch
		}
		one := mutation{text: m.String(field, "expression"), patch: patch}
		one.made, one.fault = p.env.Compile(one.text, of)
		p.mutations = append(p.mutations, one)
	}
	return p
}

func bind(o *meta.Object) *binding {
	spec := sub(o, "spec")
	b := &binding{name: o.Name(), policy: spec.String("policyName")}
	if spec.Map("matchResources") != nil {
		b.narrows = true
		b.about, b.fault = matcher.New(sub(spec, "matchResources"), "resourceRules", "excludeResourceRules")
		b.about.OrAll()
	}
	if spec.Map("paramRef") != nil {
		b.params = sub(spec, "paramRef")
	}
	for _, action := range spec.Strings("validationActions") {
		b.deny, b.warn, b.note = b.deny || action == "Deny", b.warn || action == "Warn", b.note || action == "Audit"
	}
	return b
}

// sub returns an object in a field, an empty one if there is none.
func sub(o *meta.Object, field string) *meta.Object { return meta.NewObject(o.Map(field)) }

// says evaluates what a broken validation tells.
func (v *validation) says(ctx context.Context, vars map[string]any, left *int64) string {
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
