// Package cel compiles and evaluates the expressions that definitions, webhooks and
// policies hold, in the Common Expression Language.
//
// Everything is bounded: how much an expression may cost is estimated where it is written
// (size.go says how large values can be) and counted where it is evaluated. types.go and
// value.go are what expressions know of schemas and trees, rules.go and check.go the rules
// of a schema, and package library the functions that can be called.
package cel

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/cost"
	"cel.dev/cel-go/common/types/ref"

	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/cel/library"
)

// What expressions may cost: one call of an expression, all for one object (about a second),
// those that decide whether a webhook or policy is asked, and by their estimates one and all
// of a schema.
const (
	callCost       = 1_000_000
	ObjectCost     = 10_000_000
	ConditionsCost = 2_500_000
	ruleEstimate   = 10_000_000
	schemaEstimate = 100_000_000
)

// checkEvery is how many steps of a loop are made between looks at the context.
const checkEvery = 100

// Env is what expressions share.
type Env struct{ cel *cel.Env }

// environments are those of the profiles, made when somebody needs them and never changed.
var environments = map[names.Profile]func() (*Env, error){
	names.Orch:       sync.OnceValues(func() (*Env, error) { return newEnv(names.Orch) }),
	names.Kubernetes: sync.OnceValues(func() (*Env, error) { return newEnv(names.Kubernetes) }),
}

// For returns the Env of a profile, in whose names expressions see types.
func For(p names.Profile) (*Env, error) { return environments[p]() }

func newEnv(p names.Profile) (*Env, error) {
	env, err := cel.NewEnv(append(library.Options(p),
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		// Rules that were accepted once must not become too dear.
		cel.CostModelVersion(0), cel.CostEstimatorOptions(cost.PresenceTestHasCost(false)),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(), cel.ValidateHomogeneousAggregateLiterals()),
		cel.ParserExpressionSizeLimit(maxExpression),
	)...)
	if err != nil {
		return nil, fmt.Errorf("expressions: %w", err)
	}
	return &Env{env}, nil
}

// maxExpression bounds the text of an expression, in bytes.
const maxExpression = 100_000

// Program is a compiled expression.
type Program struct {
	cel  cel.Program
	most uint64          // that one call costs, as estimated
	uses map[string]bool // variables
	of   *cel.Type

	fault error // why it cannot be evaluated
}

// errCost ends an evaluation that cost too much.
var errCost = errors.New("validation failed due to running out of cost budget, no further validation rules will be run")

// compile compiles an expression that has one of some types; none is any.
func compile(env *cel.Env, text string, z sizes, want ...*cel.Type) (*Program, error) {
	ast, issues := env.CompileSource(source{cel.Source(common.NewTextSource(text))})
	if issues.Err() != nil {
		return nil, fmt.Errorf("compilation failed: %s", toldOf(issues))
	}
	if len(want) > 0 && !slices.ContainsFunc(want, ast.OutputType().IsExactType) {
		return nil, &typeError{got: ast.OutputType(), want: want}
	}
	p, err := env.Program(ast, cel.CostLimit(callCost), cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostTrackerOptions(cost.TrackerPresenceTestHasCost(false)), cel.InterruptCheckFrequency(checkEvery), cel.OptimizeRegex(library.Regexes()...))
	if err != nil {
		return nil, fmt.Errorf("program instantiation failed: %w", err)
	}
	estimate, err := env.EstimateCost(ast, z)
	if err != nil {
		return nil, fmt.Errorf("cost estimation failed: %w", err)
	}
	uses := map[string]bool{}
	for _, r := range ast.NativeRep().ReferenceMap() {
		uses[r.Name] = true
	}
	return &Program{cel: p, most: estimate.Max, uses: uses, of: ast.OutputType()}, nil
}

// source is the text of an expression. Faults do not show lines that are long: each points at
// a place with a line of its own.
type source struct{ cel.Source }

// Snippet implements cel.Source.
func (s source) Snippet(line int) (string, bool) {
	text, ok := s.Source.Snippet(line)
	return text, ok && len(text) <= 1<<10
}

// toldOf returns what is wrong with an expression as clients know it.
func toldOf(issues *cel.Issues) string {
	return undeclared.ReplaceAllString(issues.String(), "$0 (in container '')")
}

// undeclared is a fault as cel-go tells it. Clients know it with the container, which has no
// name here.
var undeclared = regexp.MustCompile(`undeclared reference to '[^']*'`)

// typeError says that an expression has another type than it should.
type typeError struct {
	got  *cel.Type
	want []*cel.Type
}

// Error implements error.
func (e *typeError) Error() string {
	if len(e.want) == 1 {
		return fmt.Sprintf("must evaluate to %s but got %s", e.want[0], e.got)
	}
	return fmt.Sprintf("must evaluate to one of %s but got %s", e.want, e.got)
}

// eval evaluates the expression and takes what that costs from what is left, which is less
// than nothing afterwards if it was not enough.
func (p *Program) eval(ctx context.Context, vars map[string]any, left *int64) (ref.Val, error) {
	if p.fault != nil {
		return nil, p.fault
	}
	v, details, err := p.cel.ContextEval(ctx, vars)
	spent := uint64(math.MaxInt64)
	if details != nil && details.ActualCost() != nil {
		spent = min(*details.ActualCost(), math.MaxInt64)
	}
	if int64(spent) > *left { // bounded above
		*left = -1
		return nil, errCost
	}
	*left -= int64(spent) // bounded above
	return v, err
}

// tooDear reports whether an expression was ended since one call cost too much.
func tooDear(err error) bool {
	return strings.HasPrefix(err.Error(), "operation cancelled: actual cost limit exceeded")
}
