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

// all stands for everything.
const all = "*"

// RuleWithOperations covers what is done with resources.
type RuleWithOperations struct {
	// Operations that are covered: CREATE, UPDATE, DELETE, CONNECT, or * alone for all.
	Operations []string `json:"operations,omitempty" protobuf:"1" schema:"required,optional,listType=atomic,items.enum=*|CONNECT|CREATE|DELETE|UPDATE"`
	// Rule says of which resources.
	Rule `json:",inline" protobuf:"2"`
}

// Rule covers resources by group, version and name. In each list * alone is everything.
type Rule struct {
	// APIGroups of the resources; an empty text is the core group.
	APIGroups []string `json:"apiGroups,omitempty" protobuf:"1" schema:"required,optional,listType=atomic"`
	// APIVersions of the resources.
	APIVersions []string `json:"apiVersions,omitempty" protobuf:"2" schema:"required,optional,listType=atomic"`
	// Resources by their plural names. Sub-resources are named apart, as pods/status; pods/* are all
	// of pods, */scale is that one of all, and */* is everything.
	Resources []string `json:"resources,omitempty" protobuf:"3" schema:"required,optional,listType=atomic"`
	// Scope of the resources: Cluster, Namespaced, or * for both.
	Scope *string `json:"scope,omitempty" protobuf:"4" schema:"default=*,enum=*|Cluster|Namespaced"`
}

func (r *RuleWithOperations) setDefaults() {
	if r.Scope == nil {
		scope := all
		r.Scope = &scope
	}
}

func (r *RuleWithOperations) validate(f *check.Faults, at *check.Path) {
	alone(f, at.Field("operations"), r.Operations, "operations")
	alone(f, at.Field("apiGroups"), r.APIGroups, "API groups")
	alone(f, at.Field("apiVersions"), r.APIVersions, "API versions")
	filled(f, at.Field("apiVersions"), r.APIVersions)
	filled(f, at.Field("resources"), r.Resources)
	checkResources(f, at.Field("resources"), r.Resources)
}

// filled checks that no word is empty.
func filled(f *check.Faults, at *check.Path, list []string) {
	for i, word := range list {
		if word == "" {
			f.Required(at.Index(i), "")
		}
	}
}

// alone checks that what stands for everything has nothing beside it.
func alone(f *check.Faults, at *check.Path, list []string, what string) {
	if len(list) > 1 && slices.Contains(list, all) {
		f.Invalid(at, list, "if '*' is present, must not specify other "+what)
	}
}

// checkResources checks that no resource is covered by another one in the list.
func checkResources(f *check.Faults, at *check.Path, list []string) {
	ofAll, allOf, everything, bare := map[string]bool{}, map[string]bool{}, false, 0
	for i, word := range list {
		resource, sub, below := strings.Cut(word, "/")
		switch {
		case !below:
			bare++
			continue
		case everything:
			f.Invalid(at.Index(i), word, "if '*/*' is present, must not specify "+word)
		case allOf[resource]:
			f.Invalid(at.Index(i), word, "if '"+resource+"/*' is present, must not specify "+word)
		case ofAll[sub]:
			f.Invalid(at.Index(i), word, "if '*/"+sub+"' is present, must not specify "+word)
		}
		everything = everything || word == "*/*"
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

// fullName checks a domain of three parts.
func fullName(f *check.Faults, at *check.Path, name string) {
	faults := meta.CheckDNSSubdomain(name)
	if f.Format(at, name, faults); len(faults) == 0 && strings.Count(name, ".") < 2 {
		f.Invalid(at, name, "should be a domain with at least three segments separated by dots")
	}
}

// maxExpression bounds an expression, in bytes.
const maxExpression = 64 << 10

// expression checks that there is an expression, and that it is not too long.
func expression(f *check.Faults, at *check.Path, text, why string) {
	switch {
	case strings.TrimSpace(text) == "":
		f.Required(at, why)
	case len(text) > maxExpression:
		f.TooLong(at, maxExpression)
	}
}

// expressions checks the expressions of one object.
type expressions struct {
	faults *check.Faults
	env    func() (*expr.RequestEnv, error) // called with the first expression
}

func newExpressions(f *check.Faults, p names.Profile, sees expr.Sees) expressions {
	return expressions{f, sync.OnceValues(func() (*expr.RequestEnv, error) { return expr.NewRequestEnv(p, sees) })}
}

// check checks that there is an expression which can be compiled.
func (e expressions) check(at *check.Path, text, why string, want expr.Type) {
	e.compiles(at, text, why, func(env *expr.RequestEnv) error {
		_, err := env.Compile(text, want)
		return err
	})
}

// variable checks an expression that others use by name.
func (e expressions) variable(at *check.Path, name, text, why string) {
	e.compiles(at, text, why, func(env *expr.RequestEnv) error { return env.Variable(name, text) })
}

func (e expressions) compiles(at *check.Path, text, why string, compile func(*expr.RequestEnv) error) {
	before := len(*e.faults)
	if expression(e.faults, at, text, why); len(*e.faults) > before {
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

// conditions checks those that say about which requests a webhook or policy is asked.
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
