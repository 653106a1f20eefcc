package library

import (
	"errors"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types/ref"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
)

// Action is an action of a user to authorize.
type Action struct {
	User    *meta.User
	Account meta.Key // the service account to check instead of the user; empty if there is none

	Verb, Path                            string
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
	Fields, Labels                        string // selectors
}

// Ask authorizes an action with the server's authorizer. It must respect the deadline of the
// request.
type Ask func(Action) (allowed bool, reason string, err error)

// question is an authorization check under construction.
type question struct {
	ask    Ask
	action Action
}

// decision is the result of an authorization check.
type decision struct {
	allowed bool
	reason  string
	err     error
}

type authorizationKinds struct {
	authorizer, path, group, resource binding[question]
	decision                          binding[decision]
}

func newAuthorizationKinds(p names.Profile) authorizationKinds {
	named := func(name string) binding[question] {
		return newBinding(p, "authorization."+name, func(a, b question) bool { return a.action == b.action })
	}
	return authorizationKinds{
		authorizer: named("Authorizer"), path: named("PathCheck"), group: named("GroupCheck"), resource: named("ResourceCheck"),
		decision: newBinding(p, "authorization.Decision", func(a, b decision) bool { return a == b }),
	}
}

// Authorization constructs the values that expressions use for authorization checks.
type Authorization struct{ kinds authorizationKinds }

// NewAuthorization returns the Authorization of a profile, which determines the names of types.
func NewAuthorization(p names.Profile) *Authorization {
	return &Authorization{newAuthorizationKinds(p)}
}

// AuthorizerType returns the type of Authorizer.
func (a *Authorization) AuthorizerType() *cel.Type { return a.kinds.authorizer.of }

// Authorizer returns a value that checks the permissions of user with ask.
func (a *Authorization) Authorizer(user *meta.User, ask Ask) ref.Val {
	return a.kinds.authorizer.to(question{ask, Action{User: user}})
}

// ResourceType returns the type of Resource.
func (a *Authorization) ResourceType() *cel.Type { return a.kinds.resource.of }

// Resource returns a value that checks permissions for the resource in action.
func (a *Authorization) Resource(action Action, ask Ask) ref.Val {
	return a.kinds.resource.to(question{ask, action})
}

// checkCost is the cost of a check. The limit of an expression allows two checks.
const checkCost = 350_000

// authorization returns the functions for authorization checks.
func (k kinds) authorization() []function {
	check := cost.Const(checkCost)
	rows := []function{
		function2("path", k.authorizer, text(), k.path, set("path", func(a *Action, s string) { a.Path = "/" + strings.TrimPrefix(s, "/") }), lookCost()).asMethod(),
		function2("group", k.authorizer, text(), k.group, set("", func(a *Action, s string) { a.Group, a.Version = s, "*" }), lookCost()).asMethod(),
		function2("resource", k.group, text(), k.resource, set("resource", func(a *Action, s string) { a.Resource = s }), lookCost()).asMethod(),
		function2("subresource", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Subresource = s }), lookCost()).asMethod(),
		function2("namespace", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Namespace = s }), lookCost()).asMethod(),
		function2("name", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Name = s }), lookCost()).asMethod(),
		function2("fieldSelector", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Fields = s }), readCost(cost.Arg(0))).asMethod(),
		function2("labelSelector", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Labels = s }), readCost(cost.Arg(0))).asMethod(),
		function3("serviceAccount", k.authorizer, text(), text(), k.authorizer, serviceAccount, lookCost()).asMethod(),
		function2("check", k.resource, text(), k.decision, infallible2(question.check), check).asMethod(),
		function2("check", k.path, text(), k.decision, infallible2(question.check), check).asMethod(),
		function1("allowed", k.decision, boolean(), infallible(func(d decision) bool { return d.allowed }), lookCost()).asMethod(),
		function1("reason", k.decision, text(), infallible(func(d decision) string { return d.reason }), lookCost()).asMethod(),
		function1("errored", k.decision, boolean(), infallible(func(d decision) bool { return d.err != nil }), lookCost()).asMethod(),
		function1("error", k.decision, text(), infallible(func(d decision) string {
			if d.err == nil {
				return ""
			}
			return d.err.Error()
		}), lookCost()).asMethod(),
	}
	return rows
}

// set returns a function that sets a part of a check. If name is not empty, the value must not
// be empty.
func set(name string, part func(*Action, string)) func(question, string) (question, error) {
	return func(q question, s string) (question, error) {
		if name != "" && strings.TrimSpace(s) == "" {
			return q, errors.New(name + " must not be empty")
		}
		part(&q.action, s)
		return q, nil
	}
}

func serviceAccount(q question, namespace, name string) (question, error) {
	switch {
	case len(meta.CheckDNSSubdomain(name)) > 0:
		//lint:ignore ST1005 as clients know it
		return q, errors.New("Invalid service account name")
	case len(meta.CheckDNSLabel(namespace)) > 0:
		//lint:ignore ST1005 as clients know it
		return q, errors.New("Invalid service account namespace")
	}
	q.action.Account = meta.Key{Namespace: namespace, Name: name}
	return q, nil
}

// check calls the authorizer.
func (q question) check(verb string) decision {
	q.action.Verb = verb
	allowed, reason, err := q.ask(q.action)
	return decision{allowed, reason, err}
}
