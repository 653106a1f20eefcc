package review

import (
	"context"
	"errors"
	"strings"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin"
)

// Access returns the kinds of access reviews: SubjectAccessReview,
// LocalSubjectAccessReview, SelfSubjectAccessReview and SelfSubjectRulesReview. The
// authorizer a answers them. If it is no auth.RuleLister, SelfSubjectRulesReview
// reports that its rules are incomplete.
func Access(a auth.Authorizer) []*registry.Kind {
	r := reviewer{a}
	return builtin.Reviews(builtin.Answers{
		SubjectAccessReview: r.subject, LocalSubjectAccessReview: r.subject,
		SelfSubjectAccessReview: r.selfSubject, SelfSubjectRulesReview: r.selfSubjectRules,
	})
}

// reviewer answers access reviews. The kinds' validation has checked their specs.
type reviewer struct{ authorizer auth.Authorizer }

// subject answers a SubjectAccessReview. The user has only the groups in the spec.
func (r reviewer) subject(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	u := &auth.User{
		Name:   call.Object.String("spec", "user"),
		UID:    call.Object.String("spec", "uid"),
		Groups: call.Object.Strings("spec", "groups"),
	}
	for k := range call.Object.Map("spec", "extra") {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[k] = call.Object.Strings("spec", "extra", k)
	}
	return r.answer(ctx, call, u), nil
}

// selfSubject answers a SelfSubjectAccessReview about the caller.
func (r reviewer) selfSubject(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	if call.User == nil {
		return nil, meta.BadRequest("no user present on request")
	}
	return r.answer(ctx, call, call.User), nil
}

// answer returns a copy of the review with the authorizer's decision in its status.
func (r reviewer) answer(ctx context.Context, call *registry.Call, u *auth.User) *meta.Object {
	a, ignored := action(call.Object, u)
	d, reason, err := r.authorizer.Authorize(ctx, a)
	status := map[string]any{"allowed": d == auth.Allow}
	if d == auth.Deny {
		status["denied"] = true
	}
	if reason != "" {
		status["reason"] = reason
	}
	var faults []string
	if err != nil {
		faults = append(faults, err.Error())
	}
	if faults = append(faults, ignored...); len(faults) > 0 {
		status["evaluationError"] = strings.Join(faults, "; ")
	}
	out := call.Object.Clone()
	out.Tree()["status"] = status
	return out
}

// action returns the action in a review's spec. If a selector is invalid, the action
// has only its valid requirements, and ignored has a message.
func action(o *meta.Object, u *auth.User) (a auth.Attributes, ignored []string) {
	if o.Map("spec", "nonResourceAttributes") != nil {
		at := func(field string) string { return o.String("spec", "nonResourceAttributes", field) }
		return auth.Attributes{User: u, Verb: at("verb"), Path: at("path")}, nil
	}
	at := func(field string) string { return o.String("spec", "resourceAttributes", field) }
	a = auth.Attributes{
		User: u, Verb: at("verb"), Group: at("group"), Version: at("version"), Resource: at("resource"),
		Subresource: at("subresource"), Namespace: at("namespace"), Name: at("name"),
	}
	for _, s := range []struct {
		field string
		read  func(*meta.Object) (string, error)
		to    *string
	}{{"fieldSelector", fieldSelector, &a.Fields}, {"labelSelector", labelSelector, &a.Labels}} {
		tree := o.Map("spec", "resourceAttributes", s.field)
		if tree == nil {
			continue
		}
		text, err := s.read(meta.NewObject(tree))
		*s.to = text
		switch {
		case err != nil && text != "":
			ignored = append(ignored, "spec.resourceAttributes."+s.field+" partially ignored due to parse error")
		case err != nil:
			ignored = append(ignored, "spec.resourceAttributes."+s.field+" ignored due to parse error")
		}
	}
	return a, ignored
}

// errPart is the error of a selector with an invalid requirement.
var errPart = errors.New("invalid requirement")

// fieldSelector returns a field selector in the format of the query parameter. If a
// requirement is invalid, it returns the others and an error.
func fieldSelector(o *meta.Object) (string, error) {
	if raw := o.String("rawSelector"); raw != "" {
		s, err := meta.ParseFieldSelector(raw)
		return s.String(), err
	}
	var terms []string
	var err error
	for _, part := range o.List("requirements") {
		tree, _ := part.(map[string]any)
		r := meta.NewObject(tree)
		op := map[string]string{"In": "=", "NotIn": "!="}[r.String("operator")]
		values := r.Strings("values")
		if op == "" || len(values) != 1 || strings.ContainsAny(r.String("key"), `=!,\`) {
			err = errPart
			continue
		}
		terms = append(terms, r.String("key")+op+escapeField.Replace(values[0]))
	}
	return strings.Join(terms, ","), err
}

// escapeField escapes characters that end the value of a field selector's term.
var escapeField = strings.NewReplacer(`\`, `\\`, ",", `\,`, "=", `\=`)

// labelSelector returns a label selector in the format of the query parameter. If a
// requirement is invalid, it returns the others and an error.
func labelSelector(o *meta.Object) (string, error) {
	if raw := o.String("rawSelector"); raw != "" {
		s, err := meta.ParseLabelSelector(raw)
		return s.String(), err
	}
	var err error
	var good []any
	for _, part := range o.List("requirements") {
		if _, bad := meta.LabelSelectorAsSelector(map[string]any{"matchExpressions": []any{part}}); bad != nil {
			err = errPart
			continue
		}
		good = append(good, part)
	}
	s, _ := meta.LabelSelectorAsSelector(map[string]any{"matchExpressions": good})
	return s.String(), err
}

// selfSubjectRules answers a SelfSubjectRulesReview with the rules of the caller in a
// namespace.
func (r reviewer) selfSubjectRules(ctx context.Context, call *registry.Call) (*meta.Object, error) {
	if call.User == nil {
		return nil, meta.BadRequest("no user present on request")
	}
	namespace := call.Object.String("spec", "namespace")
	if namespace == "" {
		return nil, meta.BadRequest("no namespace on request")
	}
	rules := auth.Rules{Incomplete: true, Fault: "the authorizer cannot list rules"}
	if l, ok := r.authorizer.(auth.RuleLister); ok {
		rules = l.RulesFor(ctx, call.User, namespace)
	}
	resources, paths := make([]any, 0, len(rules.Resource)), make([]any, 0, len(rules.NonResource))
	for _, x := range rules.Resource {
		resources = append(resources, fields("verbs", x.Verbs, "apiGroups", x.Groups, "resources", x.Resources, "resourceNames", x.Names))
	}
	for _, x := range rules.NonResource {
		paths = append(paths, fields("verbs", x.Verbs, "nonResourceURLs", x.Paths))
	}
	status := map[string]any{"resourceRules": resources, "nonResourceRules": paths, "incomplete": rules.Incomplete}
	if rules.Fault != "" {
		status["evaluationError"] = rules.Fault
	}
	out := empty(call)
	out.Set(map[string]any{}, "spec")
	out.Set(status, "status")
	return out, nil
}

// fields returns a JSON object with pairs of a name and a []string. It omits empty
// lists, except the first.
func fields(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		list := pairs[i+1].([]string)
		if len(list) == 0 && i > 0 {
			continue
		}
		out := make([]any, len(list))
		for j, s := range list {
			out[j] = s
		}
		m[pairs[i].(string)] = out
	}
	return m
}
