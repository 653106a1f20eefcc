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

// Rule chooses requests, by what they ask for and who sends them, and says what becomes
// of them. Make it with On; its methods return a rule that is changed by one thing.
type Rule struct {
	verb, resource, subresource string
	namespace, name             string
	user, agent                 string

	times   int // 0: every one, and at least one
	strict  bool
	effects []func(http.Handler) http.Handler

	wrong string // why there can be no such request
}

// On returns the rule for requests with a verb of the API (get, list, watch, create,
// update, patch, apply, delete, deletecollection) about a resource. apply is a patch, too;
// read and write stand for several verbs. The resource is a plural, such as deployments,
// or deployments.apps where that has to be clear. Requests about a sub-resource are others:
// it is named, or "*" to mean the object and all below it. "*" stands for any verb and any
// resource. What is not about a resource, such as /version, no rule chooses. A rule that can
// choose nothing ends the test where it is used.
func On(verb, resource string, subresource ...string) Rule {
	r := Rule{verb: verb, resource: resource}
	if len(subresource) > 0 {
		r.subresource = subresource[0]
	}
	known := []string{"*", "read", "write", "get", "list", "watch", "create", "update", "patch", "apply", "delete", "deletecollection"}
	main, sub, slash := strings.Cut(resource, "/")
	switch {
	case !slices.Contains(known, verb):
		r.wrong = fmt.Sprintf("%q is no verb of the API%s", verb, suggest.Near(verb, known...))
	case slash:
		r.wrong = fmt.Sprintf("a sub-resource is named by itself: On(%q, %q, %q)", verb, main, sub)
	case resource == "" || resource != strings.ToLower(resource):
		r.wrong = fmt.Sprintf("%q is no resource, which is a plural such as deployments", resource)
	case len(subresource) > 1:
		r.wrong = fmt.Sprintf("a rule is about one sub-resource, or all of them by %q", "*")
	}
	return r
}

// limited is the rule for n requests.
func (r Rule) limited(n int, strict bool) Rule {
	if r.times, r.strict = n, strict; n < 1 && r.wrong == "" {
		r.wrong = fmt.Sprintf("%d requests are none", n)
	}
	return r
}

// check ends a test that uses a rule that can choose nothing.
func (r Rule) check(t testing.TB) {
	t.Helper()
	if r.wrong != "" {
		t.Fatalf("the rule on %s: %s", r, r.wrong)
	}
}

// In narrows the rule to a namespace.
func (r Rule) In(namespace string) Rule { r.namespace = namespace; return r }

// Named narrows the rule to an object, also to its creation, if the name stands in the
// first 64 KiB of a body in JSON or Protobuf. A list or watch of that name alone counts.
func (r Rule) Named(name string) Rule { r.name = name; return r }

// By narrows the rule to a user. An impersonated one counts, not who impersonates him.
func (r Rule) By(user string) Rule { r.user = user; return r }

// Agent narrows the rule to clients whose User-Agent contains a text.
func (r Rule) Agent(text string) Rule { r.agent = text; return r }

// Times ends the rule after n requests. A test that ends before that fails: what was
// to be tested did not happen.
func (r Rule) Times(n int) Rule { return r.limited(n, true) }

// AtMost ends the rule after n requests. There may be fewer of them, or none.
func (r Rule) AtMost(n int) Rule { return r.limited(n, false) }

// With says what happens to the requests, from the outside in: Slow, then Conflict, is a
// late refusal. Effects are those of this package, or any other middleware; the handler
// that they get carries the request out.
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

// chooses reports whether the rule is for a request.
func (r Rule) chooses(c *call) bool {
	return r.mayChoose(c) && (r.name == "" || r.name == c.name()) && (r.user == "" || r.user == c.caller())
}

// mayChoose reports whether the rule is for a request as far as its head tells: the
// name of a creation and the caller are known later.
func (r Rule) mayChoose(c *call) bool {
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

// target is what a request asks for; patches that apply have a verb of their own, and
// what is no verb of the API is called by its method.
type target struct{ requestinfo.Info }

func targetOf(r *http.Request) target {
	t := target{requestinfo.Of(r)}
	switch {
	case t.Verb == "patch" && strings.Contains(r.Header.Get("Content-Type"), "apply-patch"):
		t.Verb = "apply"
	case t.Verb == "":
		t.Verb = strings.ToLower(r.Method)
	}
	t.Name += t.Selected // one of them is empty
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
