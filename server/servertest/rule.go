package servertest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"orch.io/controlplane/internal/suggest"
	"orch.io/controlplane/server/internal/requestinfo"
)

// Rule matches requests by their attributes and user, and has the effects for Fail. Create it by On. Its
// methods return a changed copy.
type Rule struct {
	verb, resource, subresource string
	namespace, name             string
	user, agent                 string

	times   int // 0: no limit, but at least one
	strict  bool
	effects []func(http.Handler) http.Handler

	invalid string // why no request can match; empty: valid
}

// On returns a rule for requests with a verb for a resource. The verb is get, list, watch, create, update,
// patch, apply (patch matches it, too), delete or deletecollection; read and write match several verbs. The
// resource is a plural such as deployments, or deployments.apps to name the group. A rule without a
// subresource matches only the object itself; the subresource "*" matches the object and all its
// subresources. "*" matches every verb or resource. No rule matches requests that are not for resources,
// such as /version. If no request can match a rule, its first use ends the test.
func On(verb, resource string, subresource ...string) Rule {
	r := Rule{verb: verb, resource: resource}
	if len(subresource) > 0 {
		r.subresource = subresource[0]
	}
	known := []string{"*", "read", "write", "get", "list", "watch", "create", "update", "patch", "apply", "delete", "deletecollection"}
	main, sub, slash := strings.Cut(resource, "/")
	switch {
	case !slices.Contains(known, verb):
		r.invalid = fmt.Sprintf("unknown verb %q%s", verb, suggest.Near(verb, known...))
	case slash:
		r.invalid = fmt.Sprintf("pass the subresource as a separate argument: On(%q, %q, %q)", verb, main, sub)
	case resource == "" || resource != strings.ToLower(resource):
		r.invalid = fmt.Sprintf("invalid resource %q: use a plural such as deployments", resource)
	case len(subresource) > 1:
		r.invalid = fmt.Sprintf("a rule matches a single subresource, or all by %q", "*")
	}
	return r
}

// limited returns the rule for at most n requests; strict requires all n.
func (r Rule) limited(n int, strict bool) Rule {
	if r.times, r.strict = n, strict; n < 1 && r.invalid == "" {
		r.invalid = fmt.Sprintf("the number of requests must be positive, not %d", n)
	}
	return r
}

// check ends the test if no request can match the rule.
func (r Rule) check(t testing.TB) {
	t.Helper()
	if r.invalid != "" {
		t.Fatalf("the rule on %s: %s", r, r.invalid)
	}
}

// In narrows the rule to a namespace.
func (r Rule) In(namespace string) Rule { r.namespace = namespace; return r }

// Named narrows the rule to an object. It matches a create if the name is in the first 64 KiB of the body, in
// JSON or Protobuf, and a list or watch that selects only that name.
func (r Rule) Named(name string) Rule { r.name = name; return r }

// By narrows the rule to a user. If a request impersonates a user, that user counts.
func (r Rule) By(user string) Rule { r.user = user; return r }

// Agent narrows the rule to clients with a User-Agent that contains a text.
func (r Rule) Agent(text string) Rule { r.agent = text; return r }

// Times makes the rule match n requests. The test fails if there are fewer when it ends.
func (r Rule) Times(n int) Rule { return r.limited(n, true) }

// AtMost makes the rule match at most n requests.
func (r Rule) AtMost(n int) Rule { return r.limited(n, false) }

// With adds effects for Fail, the outermost first: Slow, then Conflict, is a delayed refusal. An effect is a
// function of this package or any other middleware; the handler that it wraps executes the request.
func (r Rule) With(effects ...func(http.Handler) http.Handler) Rule {
	r.effects = slices.Concat(r.effects, effects)
	return r
}

func (r Rule) String() string {
	text := r.verb + " " + r.resource
	if r.subresource != "" {
		text += "/" + r.subresource
	}
	for _, p := range [][2]string{{" named ", r.name}, {" in ", r.namespace}, {" by ", r.user}, {" from ", r.agent}} {
		if p[1] != "" {
			text += p[0] + p[1]
		}
	}
	return text
}

// matches reports whether the rule matches a request.
func (r Rule) matches(c *call) bool {
	return r.mayMatch(c) && (r.name == "" || r.name == c.name()) && (r.user == "" || r.user == c.caller())
}

// mayMatch is like matches, but ignores the name and the user, which may not be known yet.
func (r Rule) mayMatch(c *call) bool {
	t, group := c.target, c.target.Resource
	if t.Group != "" {
		group += "." + t.Group
	}
	return t.Resource != "" && verbs(r.verb, t.Verb) &&
		(r.resource == "*" || r.resource == t.Resource || r.resource == group) &&
		(r.subresource == "*" || r.subresource == t.Subresource) &&
		(r.namespace == "" || r.namespace == t.Namespace) &&
		strings.Contains(c.agent, r.agent)
}

func verbs(want, verb string) bool {
	reads := verb == "get" || verb == "list" || verb == "watch"
	switch want {
	case "*", verb:
		return true
	case "patch":
		return verb == "apply"
	case "read":
		return reads
	case "write":
		return !reads
	}
	return false
}

// target has the attributes of a request. The verb of an apply patch is apply. The verb of a request that is not for a
// resource is the HTTP method in lower case.
type target struct{ requestinfo.Info }

func targetOf(r *http.Request) target {
	t := target{requestinfo.Parse(r)}
	switch {
	case t.Verb == "patch" && strings.Contains(r.Header.Get("Content-Type"), "apply-patch"):
		t.Verb = "apply"
	case t.Verb == "":
		t.Verb = strings.ToLower(r.Method)
	}
	t.Name += t.Selected // at least one is empty
	return t
}

func (t target) String() string {
	if t.Resource == "" {
		return t.Verb + " " + t.Path
	}
	text := t.Verb + " " + t.Resource
	if t.Group != "" {
		text += "." + t.Group
	}
	if t.Subresource != "" {
		text += "/" + t.Subresource
	}
	switch {
	case t.Namespace != "" && t.Resource != "namespaces":
		text += " " + t.Namespace + "/" + t.Name
	case t.Name != "":
		text += " " + t.Name
	}
	return text
}
