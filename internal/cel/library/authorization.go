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

// Action is what a user may do, or may not.
type Action struct {
	User    *meta.User
	Account meta.Key // of the service account that is asked about instead; empty: there is none

	Verb, Path                            string
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
	Fields, Labels                        string // selectors
}

// Ask is how expressions find out what a user may do: by the authorizer of the server,
// within the time of the request.
type Ask func(Action) (allowed bool, reason string, err error)

// question is what an expression asks the authorizer, as far as it is said.
type question struct {
	ask    Ask
	action Action
}

// decision is what the authorizer says.
type decision struct {
	allowed bool
	reason  string
	err     error
}

type authorizationKinds struct {
	authorizer, path, group, resource sort[question]
	decision                          sort[decision]
}

func newAuthorizationKinds(p names.Profile) authorizationKinds {
	named := func(name string) sort[question] {
		return newSort(p, "authorization."+name, func(a, b question) bool { return a.action == b.action })
	}
	return authorizationKinds{
		authorizer: named("Authorizer"), path: named("PathCheck"), group: named("GroupCheck"), resource: named("ResourceCheck"),
		decision: newSort(p, "authorization.Decision", func(a, b decision) bool { return a == b }),
	}
}

// Authorization makes the values through which expressions ask what a user may do.
type Authorization struct{ kinds authorizationKinds }

// NewAuthorization returns the Authorization whose types are named by a profile.
func NewAuthorization(p names.Profile) *Authorization {
	return &Authorization{newAuthorizationKinds(p)}
}

// AuthorizerType is the type of Authorizer.
func (a *Authorization) AuthorizerType() *cel.Type { return a.kinds.authorizer.of }

// Authorizer is the value that asks what a user may do.
func (a *Authorization) Authorizer(user *meta.User, ask Ask) ref.Val {
	return a.kinds.authorizer.to(question{ask, Action{User: user}})
}

// ResourceType is the type of Resource.
func (a *Authorization) ResourceType() *cel.Type { return a.kinds.resource.of }

// Resource is the value that asks about a resource, which an action names.
func (a *Authorization) Resource(action Action, ask Ask) ref.Val {
	return a.kinds.resource.to(question{ask, action})
}

// checkCost is what one question costs: an expression has room for two.
const checkCost = 350_000

// authorization are the functions that ask what a user may do.
func (k kinds) authorization() []function {
	check := cost.Const(checkCost)
	rows := []function{
		function2("path", k.authorizer, text(), k.path, set("path", func(a *Action, s string) { a.Path = "/" + strings.TrimPrefix(s, "/") }), look()).on(),
		function2("group", k.authorizer, text(), k.group, set("", func(a *Action, s string) { a.Group, a.Version = s, "*" }), look()).on(),
		function2("resource", k.group, text(), k.resource, set("resource", func(a *Action, s string) { a.Resource = s }), look()).on(),
		function2("subresource", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Subresource = s }), look()).on(),
		function2("namespace", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Namespace = s }), look()).on(),
		function2("name", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Name = s }), look()).on(),
		function2("fieldSelector", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Fields = s }), read(cost.Arg(0))).on(),
		function2("labelSelector", k.resource, text(), k.resource, set("", func(a *Action, s string) { a.Labels = s }), read(cost.Arg(0))).on(),
		function3("serviceAccount", k.authorizer, text(), text(), k.authorizer, serviceAccount, look()).on(),
		function2("check", k.resource, text(), k.decision, sure2(question.check), check).on(),
		function2("check", k.path, text(), k.decision, sure2(question.check), check).on(),
		function1("allowed", k.decision, boolean(), sure(func(d decision) bool { return d.allowed }), look()).on(),
		function1("reason", k.decision, text(), sure(func(d decision) string { return d.reason }), look()).on(),
		function1("errored", k.decision, boolean(), sure(func(d decision) bool { return d.err != nil }), look()).on(),
		function1("error", k.decision, text(), sure(func(d decision) string {
			if d.err == nil {
				return ""
			}
			return d.err.Error()
		}), look()).on(),
	}
	return rows
}

// set says one more thing of a question; what has a name must not be empty.
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

// check asks the authorizer.
func (q question) check(verb string) decision {
	q.action.Verb = verb
	allowed, reason, err := q.ask(q.action)
	return decision{allowed, reason, err}
}
