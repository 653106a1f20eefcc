package admissionregistration

import (
	"slices"
	"strings"
	"sync"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	expr "orch.io/controlplane/internal/cel"
)

// all is the wildcard of rules.
const all = "*"

// RuleWithOperations selects operations on resources.
type RuleWithOperations struct {
	// Operations are CREATE, UPDATE, DELETE and CONNECT. The entry * means all and must be the only
	// entry.
	Operations []string `json:"operations,omitempty" protobuf:"1" schema:"required,optional,listType=atomic,items.enum=*|CONNECT|CREATE|DELETE|UPDATE"`
	// Rule selects the resources.
	Rule `json:",inline" protobuf:"2"`
}

// Rule selects resources by group, version and name. The entry * means all and must be the only entry
// of a list.
type Rule struct {
	// APIGroups of the resources; the empty string is the core group.
	APIGroups []string `json:"apiGroups,omitempty" protobuf:"1" schema:"required,optional,listType=atomic"`
	// APIVersions of the resources.
	APIVersions []string `json:"apiVersions,omitempty" protobuf:"2" schema:"required,optional,listType=atomic"`
	// Resources by plural name. Subresources are separate: pods/status is a subresource, pods/* are all
	// subresources of pods, */scale is the subresource scale of all resources, and */* are all
	// resources and subresources.
	Resources []string `json:"resources,omitempty" protobuf:"3" schema:"required,optional,listType=atomic"`
	// Scope of the resources: Cluster, Namespaced, or * (default) for both.
	Scope *string `json:"scope,omitempty" protobuf:"4" schema:"default=*,enum=*|Cluster|Namespaced"`
}

func (r *RuleWithOperations) setDefaults() {
	if r.Scope == nil {
		scope := all
		r.Scope = &scope
	}
}

func (r *RuleWithOperations) validate(f *check.Violations, at *check.Path) {
	checkWildcard(f, at.Field("operations"), r.Operations, "operations")
	checkWildcard(f, at.Field("apiGroups"), r.APIGroups, "API groups")
	checkWildcard(f, at.Field("apiVersions"), r.APIVersions, "API versions")
	checkNonEmpty(f, at.Field("apiVersions"), r.APIVersions)
	checkNonEmpty(f, at.Field("resources"), r.Resources)
	checkResources(f, at.Field("resources"), r.Resources)
}

// checkNonEmpty reports empty entries.
func checkNonEmpty(f *check.Violations, at *check.Path, list []string) {
	for i, entry := range list {
		if entry == "" {
			f.Required(at.Index(i), "")
		}
	}
}

// checkWildcard checks that the wildcard, if present, is the only entry of the list. noun names the
// entries in the message.
func checkWildcard(f *check.Violations, at *check.Path, list []string, noun string) {
	if len(list) > 1 && slices.Contains(list, all) {
		f.Invalid(at, list, "if '*' is present, must not specify other "+noun)
	}
}

// checkResources reports entries that a wildcard earlier in the list includes. An entry before its
// wildcard is not reported, as at kube-apiserver.
func checkResources(f *check.Violations, at *check.Path, list []string) {
	ofAll, allOf, everything, bare := map[string]bool{}, map[string]bool{}, false, 0
	for i, entry := range list {
		resource, sub, below := strings.Cut(entry, "/")
		switch {
		case !below:
			bare++
			continue
		case everything:
			f.Invalid(at.Index(i), entry, "if '*/*' is present, must not specify "+entry)
		case allOf[resource]:
			f.Invalid(at.Index(i), entry, "if '"+resource+"/*' is present, must not specify "+entry)
		case ofAll[sub]:
			f.Invalid(at.Index(i), entry, "if '*/"+sub+"' is present, must not specify "+entry)
		}
		everything = everything || entry == "*/*"
		if sub == all && resource != all {
			allOf[resource] = true
		}
		if resource == all && sub != all {
			ofAll[sub] = true
		}
	}
	if len(list) > 1 && everything {
		f.Invalid(at, list, "if '*/*' is present, must not specify other resources")
	} else if bare > 1 && slices.Contains(list, all) {
		f.Invalid(at, list, "if '*' is present, must not specify other resources without subresources")
	}
}

// checkWebhookName checks that a name is a domain with at least 3 segments.
func checkWebhookName(f *check.Violations, at *check.Path, name string) {
	faults := meta.CheckDNSSubdomain(name)
	if f.Format(at, name, faults); len(faults) == 0 && strings.Count(name, ".") < 2 {
		f.Invalid(at, name, "should be a domain with at least three segments separated by dots")
	}
}

// maxExpression limits the length of an expression in bytes.
const maxExpression = 64 << 10

// checkText reports an expression that is missing or too long. why explains a missing expression.
func checkText(f *check.Violations, at *check.Path, text, why string) {
	switch {
	case strings.TrimSpace(text) == "":
		f.Required(at, why)
	case len(text) > maxExpression:
		f.TooLong(at, maxExpression)
	}
}

// expressions compiles the expressions of an object and reports errors. The environment is created for
// the first expression, because creating it is expensive and many objects have none.
type expressions struct {
	faults *check.Violations
	env    func() (*expr.RequestEnv, error) // memoized
}

func newExpressions(f *check.Violations, p names.Profile, sees expr.Sees) expressions {
	return expressions{f, sync.OnceValues(func() (*expr.RequestEnv, error) { return expr.NewRequestEnv(p, sees) })}
}

// check compiles an expression for a value of type want. why explains a missing expression.
func (e expressions) check(at *check.Path, text, why string, want expr.Type) {
	e.compiles(at, text, why, func(env *expr.RequestEnv) error {
		_, err := env.Compile(text, want)
		return err
	})
}

// variable compiles an expression and declares its value as a variable for the expressions that follow.
func (e expressions) variable(at *check.Path, name, text, why string) {
	e.compiles(at, text, why, func(env *expr.RequestEnv) error { return env.Variable(name, text) })
}

func (e expressions) compiles(at *check.Path, text, why string, compile func(*expr.RequestEnv) error) {
	before := len(*e.faults)
	if checkText(e.faults, at, text, why); len(*e.faults) > before {
		return
	}
	env, err := e.env()
	if err == nil {
		err = compile(env)
	}
	if err != nil {
		e.faults.Invalid(at, text, err.Error())
	}
}

// conditions checks match conditions and that their names are unique.
func (e expressions) conditions(at *check.Path, list []MatchCondition) {
	seen := map[string]bool{}
	for i, c := range list {
		e.check(at.Index(i).Field("expression"), c.Expression, "", expr.Boolean)
		switch at := at.Index(i).Field("name"); {
		case c.Name == "":
			e.faults.Required(at, "")
		case seen[c.Name]:
			e.faults.Duplicate(at, c.Name)
		default:
			e.faults.Format(at, c.Name, meta.CheckQualifiedName(c.Name))
		}
		seen[c.Name] = true
	}
}
