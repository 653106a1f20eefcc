// Package cel compiles and evaluates the expressions of custom resource definitions, webhooks
// and policies, in the Common Expression Language (CEL).
//
// All costs are limited: they are estimated when an expression is written, for the largest
// values that the schema allows (size.go), and counted during evaluation. types.go and value.go
// map schemas and trees to CEL types and values, rules.go and check.go compile and evaluate the
// rules of a schema, and package library has the functions beyond the language.
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

// Cost limits: for one evaluation of an expression, for all rules of an object (about a
// second), for the match conditions of a webhook or policy, and for the estimates of a single
// rule and of all rules of a schema.
const (
	callCost       = 1_000_000
	ObjectCost     = 10_000_000
	ConditionsCost = 2_500_000
	ruleEstimate   = 10_000_000
	schemaEstimate = 100_000_000
)

// checkEvery is the number of loop iterations between checks of the context.
const checkEvery = 100

// Env is the CEL environment of a profile. It is safe for concurrent use.
type Env struct{ cel *cel.Env }

// environments has a constructor for each profile. The environment is built on first use.
var environments = map[names.Profile]func() (*Env, error){
	names.Orch:       sync.OnceValues(func() (*Env, error) { return newEnv(names.Orch) }),
	names.Kubernetes: sync.OnceValues(func() (*Env, error) { return newEnv(names.Kubernetes) }),
}

// For returns the Env of a profile, which determines the names of types.
func For(p names.Profile) (*Env, error) { return environments[p]() }

func newEnv(p names.Profile) (*Env, error) {
	env, err := cel.NewEnv(append(library.Options(p),
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true), cel.CrossTypeNumericComparisons(true),
		// A fixed cost model: stored rules must stay within their limits.
		cel.CostModelVersion(0), cel.CostEstimatorOptions(cost.PresenceTestHasCost(false)),
		cel.ASTValidators(cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals(), cel.ValidateRegexLiterals(), cel.ValidateHomogeneousAggregateLiterals()),
		cel.ParserExpressionSizeLimit(maxExpression),
	)...)
	if err != nil {
		return nil, fmt.Errorf("expressions: %w", err)
	}
	return &Env{env}, nil
}

// maxExpression is the maximum length of an expression, in bytes.
const maxExpression = 100_000

// Program is a compiled expression. It is safe for concurrent use.
type Program struct {
	cel  cel.Program
	most uint64          // estimated maximum cost of one evaluation
	uses map[string]bool // names of the variables that the expression uses
	of   *cel.Type

	fault error // why the expression cannot be evaluated, or nil
}

// errCost is returned if an evaluation exceeds the remaining cost budget.
var errCost = errors.New("validation failed due to running out of cost budget, no further validation rules will be run")

// compile compiles an expression. Its type must be one of want, unless want is empty.
func compile(env *cel.Env, text string, z sizes, want ...*cel.Type) (*Program, error) {
	ast, issues := env.CompileSource(source{cel.Source(common.NewTextSource(text))})
	if issues.Err() != nil {
		return nil, fmt.Errorf("compilation failed: %s", issueText(issues))
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

// source is the text of an expression. Error messages do not quote lines of more than 1 KiB,
// because each error repeats the line.
type source struct{ cel.Source }

// Snippet implements cel.Source.
func (s source) Snippet(line int) (string, bool) {
	text, ok := s.Source.Snippet(line)
	return text, ok && len(text) <= 1<<10
}

// issueText returns the error message of an expression in the format of the reference server.
func issueText(issues *cel.Issues) string {
	return undeclared.ReplaceAllString(issues.String(), "$0 (in container '')")
}

// undeclared matches an error message of cel-go. In the reference server, the message also has
// the container name, which is empty here.
var undeclared = regexp.MustCompile(`undeclared reference to '[^']*'`)

// typeError is returned for an expression of the wrong type.
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

// eval evaluates the expression and subtracts the cost from *left. If the cost exceeds *left,
// it sets *left to a negative value and returns errCost.
func (p *Program) eval(ctx context.Context, vars map[string]any, left *int64) (ref.Val, error) {
	if p.fault != nil {
		return nil, p.fault
	}
	v, details, err := p.cel.ContextEval(ctx, vars)
	spent := uint64(math.MaxInt64)
	if details != nil && details.ActualCost() != nil {
		spent = min(*details.ActualCost(), math.MaxInt64)
	}
	if int64(spent) > *left { // at most MaxInt64, see above
		*left = -1
		return nil, errCost
	}
	*left -= int64(spent) // at most MaxInt64, see above
	return v, err
}

// exceedsCallCost reports whether err means that one evaluation exceeded callCost.
func exceedsCallCost(err error) bool {
	return strings.HasPrefix(err.Error(), "operation cancelled: actual cost limit exceeded")
}
