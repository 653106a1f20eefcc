package cel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/api/schema"
)

// Rules has the compiled rules of a schema and everything below it. A nil Rules has none. Rules
// is safe for concurrent use.
type Rules struct {
	schema        *schema.Schema
	rules         []rule
	items, values *Rules
	fields        map[string]*Rules
	also          []*Rules // from allOf

	count int // total number of rules; set for the root
}

// Count returns the total number of rules.
func (r *Rules) Count() int {
	if r == nil {
		return 0
	}
	return r.count
}

type rule struct {
	*schema.Rule
	holds   *Program
	message *Program // nil if the message is fixed
	fault   error    // why the rule cannot be evaluated, or nil
}

// The variables of rules.
const (
	self    = "self"
	oldSelf = "oldSelf"
)

func (r rule) transition() bool { return r.holds != nil && r.holds.uses[oldSelf] }
func (r rule) created() bool    { return r.Created != nil && *r.Created }

// MaxRules is the maximum number of rules in a schema. Compiling a rule takes about a
// millisecond and 30 kB.
const MaxRules = 1000

// Compile compiles the rules of the schema of a whole object. It returns nil Rules if there are
// none. The causes list invalid rules and rules that exceed cost limits; their paths begin with
// at, and words is the profile of the schema's extensions. An invalid rule rejects every value
// that it applies to. If the schema as a whole is rejected, or ctx ends, the result rejects
// every object.
func Compile(ctx context.Context, s *schema.Schema, words names.Profile, at *check.Path) (*Rules, []meta.StatusCause) {
	if !s.HasRules() {
		return nil, nil
	}
	e, err := For(words)
	if err != nil {
		return uncompiled(s, err), []meta.StatusCause{{Reason: meta.CauseInvalid, Field: at.String(), Message: err.Error()}}
	}
	p := newProvider(e.cel.CELTypeProvider())
	env, err := e.cel.Extend(cel.CustomTypeProvider(p))
	if err != nil {
		return uncompiled(s, err), []meta.StatusCause{{Reason: meta.CauseInvalid, Field: at.String(), Message: err.Error()}}
	}
	c := &compiler{env: env, types: p, extension: words.Extension("validations"), open: map[described]*Rules{}}
	root := *s
	root.Embedded = true // the same type for root and embedded objects
	r := c.schema(ctx, &root, &root, spot{path: at, most: 1, bounded: true})
	if c.full() {
		return uncompiled(&root, errors.New(c.faults[len(c.faults)-1].Message)), c.faults
	}
	if c.total(at); r != nil {
		r.count = c.count
	}
	return r, c.faults
}

// uncompiled returns Rules that every object violates. It stands for a schema that a server
// with more features accepted but this server cannot compile.
func uncompiled(s *schema.Schema, why error) *Rules {
	return &Rules{schema: s, rules: []rule{{Rule: &schema.Rule{}, fault: why}}}
}

// compiler compiles the rules of a schema.
type compiler struct {
	env       *cel.Env
	types     *provider
	extension string
	faults    check.Violations
	costs     []expressionCost
	values    int // schemas visited
	count     int // rules seen
	ended     bool
	open      map[described]*Rules // schemas in progress, because types of Go may be recursive
}

// described is a schema with rules, and the schema of the values that they apply to.
type described struct{ s, of *schema.Schema }

// stop adds a cause that concerns the whole schema and stops the compilation.
func (c *compiler) stop(at *check.Path, why string) {
	c.ended = true
	c.faults.Forbidden(at, why)
}

// full reports whether compilation stops.
func (c *compiler) full() bool { return c.ended || len(c.faults) >= mostFaults }

// mostFaults is the maximum number of causes for a schema or an object.
const mostFaults = 100

type expressionCost struct {
	at   *check.Path
	cost uint64
}

// spot is the place of a schema.
type spot struct {
	path    *check.Path
	depth   int
	most    uint64 // maximum number of such values in an object, if bounded
	bounded bool   // the schema limits the number; otherwise it follows from the size of requests

	// within is the path of the outermost enclosing list without keys, or nil. Items of such a
	// list have no known previous value.
	within *check.Path
}

func (p spot) field(name string) spot {
	p.path, p.depth = p.path.Field("properties").Key(name), p.depth+1
	return p
}

// elements returns the spot of the items of a list or the values of a map.
func (p spot) elements(of *schema.Schema, name string, limit *int64) spot {
	if limit == nil {
		p.bounded = false
	} else {
		p.most = multiply(p.most, bound(limit))
	}
	if p.within == nil && of.Type == schema.Array && of.ListType != "map" {
		p.within = p.path
	}
	p.path, p.depth = p.path.Field(name), p.depth+1
	return p
}

// maxValues is the maximum number of values in a schema with rules.
const maxValues = 50_000

// schema compiles the rules of s for values of the schema of. The two differ in allOf.
func (c *compiler) schema(ctx context.Context, s, of *schema.Schema, at spot) *Rules {
	if s == nil || of == nil || c.full() {
		return nil
	}
	if r := c.open[described{s, of}]; r != nil {
		return r
	}
	if c.values++; c.values > maxValues || at.depth > maxDepth {
		c.stop(at.path, fmt.Sprintf("a schema with rules may have at most %d values, %d deep", maxValues, maxDepth))
		return nil
	}
	r := &Rules{schema: of}
	c.open[described{s, of}] = r
	defer delete(c.open, described{s, of})
	r.rules = c.rules(ctx, s, of, at)
	if s.Struct != nil {
		for _, f := range s.Struct.Fields {
			if below := of.Struct.Field(f.Name); below != nil {
				if rules := c.schema(ctx, f.Schema, below.Schema, at.field(f.Name)); rules != nil {
					if r.fields == nil {
						r.fields = map[string]*Rules{}
					}
					r.fields[f.Name] = rules
				}
			}
		}
	}
	r.items = c.schema(ctx, s.Items, of.Items, at.elements(of, "items", of.MaxItems))
	r.values = c.schema(ctx, s.Values, of.Values, at.elements(of, "additionalProperties", of.MaxProperties))
	for i, branch := range s.AllOf {
		spot := at
		spot.path = at.path.Field("allOf").Index(i)
		if rules := c.schema(ctx, branch, of, spot); rules != nil {
			r.also = append(r.also, rules)
		}
	}
	if len(r.rules)+len(r.fields)+len(r.also) == 0 && r.items == nil && r.values == nil {
		return nil
	}
	return r
}

func (c *compiler) rules(ctx context.Context, s, of *schema.Schema, at spot) []rule {
	if len(s.Rules) == 0 {
		return nil
	}
	path := at.path.Field(c.extension)
	if c.count += len(s.Rules); c.count > MaxRules {
		c.stop(path, fmt.Sprintf("a schema may have at most %d rules", MaxRules))
		return nil
	}
	t, ok := c.types.typeOf(of)
	if !ok {
		c.faults.Invalid(path, nil, "expressions cannot see values of this type")
		return nil
	}
	var plain, created *cel.Env // built when the first rule needs it
	out := make([]rule, 0, len(s.Rules))
	for i := range s.Rules {
		if err := ctx.Err(); err != nil {
			c.stop(path, fmt.Sprintf("the rules were not compiled: %v", err))
		}
		if c.full() {
			return nil
		}
		r := rule{Rule: &s.Rules[i]}
		env, before := &plain, t
		if r.created() {
			env, before = &created, cel.OptionalType(t)
		}
		if *env == nil {
			var err error
			if *env, err = c.env.Extend(cel.Variable(self, t), cel.Variable(oldSelf, before)); err != nil {
				c.faults.Invalid(path, nil, err.Error())
				return nil
			}
		}
		c.rule(&r, *env, sizes{self: of, oldSelf: of}, at, path.Index(i))
		out = append(out, r)
	}
	return out
}

// rule compiles one rule.
func (c *compiler) rule(r *rule, env *cel.Env, z sizes, at spot, path *check.Path) {
	of := z[self]
	if r.holds, r.fault = compile(env, r.Expression, z, cel.BoolType); r.fault != nil {
		if mistyped := (*typeError)(nil); errors.As(r.fault, &mistyped) {
			r.fault = errors.New("cel expression must evaluate to a bool")
		}
		c.faults.Invalid(path.Field("rule"), ruleText(r.Rule), r.fault.Error())
		return
	}
	most := at.most
	if !at.bounded {
		most = largestRequest / (leastSize(of) + 1)
	}
	c.spend("rule", multiply(r.holds.most, most), path.Field("rule"))
	if r.MessageExpression != "" {
		var err error
		if r.message, err = compile(env, r.MessageExpression, z, cel.StringType); err != nil {
			if mistyped := (*typeError)(nil); errors.As(err, &mistyped) {
				err = errors.New("must evaluate to a string")
			}
			c.faults.Invalid(path.Field("messageExpression"), ruleText(r.Rule), "messageExpression "+err.Error())
			return
		}
		c.spend("messageExpression", r.message.most, path.Field("messageExpression"))
	}
	if r.FieldPath != "" && of.Below(nil, r.FieldPath) == nil {
		c.faults.Invalid(path.Field("fieldPath"), r.FieldPath, "must be a valid path")
	}
	switch {
	case r.transition() && at.within != nil:
		c.faults.Invalid(path.Field("rule"), r.Expression, fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %s", at.within))
	case !r.transition() && r.Created != nil:
		c.faults.Invalid(path.Field("optionalOldSelf"), *r.Created, "may not be set if oldSelf is not used in rule")
	}
}

// ruleText returns a rule as causes show it.
func ruleText(r *schema.Rule) any {
	var reason *string
	if r.Reason != "" {
		reason = &r.Reason
	}
	text, err := json.Marshal(struct {
		Rule, Message, MessageExpression string
		Reason                           *string
		FieldPath                        string
		OptionalOldSelf                  *bool
	}{r.Expression, r.Message, r.MessageExpression, reason, r.FieldPath, r.Created})
	if err != nil {
		return r.Expression
	}
	return json.RawMessage(text)
}

// spend records the estimated cost of an expression and adds a cause if it exceeds the limit of
// one rule.
func (c *compiler) spend(what string, estimate uint64, at *check.Path) {
	c.costs = append(c.costs, expressionCost{at, estimate})
	if estimate > ruleEstimate {
		c.faults.Forbidden(at, exceeded("estimated "+what+" cost", estimate, ruleEstimate))
	}
}

// total adds a cause if all rules of the schema together exceed the limit.
func (c *compiler) total(at *check.Path) {
	var sum uint64
	for _, e := range c.costs {
		if sum += e.cost; sum < e.cost {
			sum = ^uint64(0)
			break
		}
	}
	if sum <= schemaEstimate {
		return
	}
	slices.SortStableFunc(c.costs, func(a, b expressionCost) int {
		if a.cost > b.cost {
			return -1
		}
		return 1
	})
	for _, e := range c.costs[:min(4, len(c.costs))] {
		if e.cost > schemaEstimate/100 {
			c.faults.Forbidden(e.at, "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema")
		}
	}
	c.faults.Forbidden(at, exceeded(c.extension+" estimated rule cost total for entire OpenAPIv3 schema", sum, schemaEstimate))
}

// exceeded returns the message for a cost above a limit.
func exceeded(what string, cost, limit uint64) string {
	factor := float64(cost) / float64(limit)
	text := fmt.Sprintf("%.1fx", factor)
	switch {
	case factor > 100:
		text = "more than 100x"
	case factor < 1.5:
		text = fmt.Sprintf("%fx", factor)
	}
	return what + " exceeds budget by factor of " + text +
		" (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
}
