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

// Rules are the compiled rules of a schema and of all below it; nil has none.
type Rules struct {
	schema        *schema.Schema
	rules         []rule
	items, values *Rules
	fields        map[string]*Rules
	also          []*Rules // of allOf

	count int // in all, of a whole object
}

// Count returns how many rules a schema and all below it have.
func (r *Rules) Count() int {
	if r == nil {
		return 0
	}
	return r.count
}

type rule struct {
	*schema.Rule
	holds   *Program
	message *Program // nil: the message is a text
	fault   error    // why the rule cannot be evaluated
}

// The variables of rules.
const (
	self    = "self"
	oldSelf = "oldSelf"
)

func (r rule) transition() bool { return r.holds != nil && r.holds.uses[oldSelf] }
func (r rule) created() bool    { return r.Created != nil && *r.Created }

// MaxRules bounds how many rules a schema may have. Each takes about a millisecond to compile,
// and 30 kB.
const MaxRules = 1000

// Compile compiles the rules of the schema of a whole object, nil if it has none. The causes
// say which are broken, or cost too much; the path of each begins with at, where the schema
// is described in the words of a profile. It ends with the context, which is a cause, too.
func Compile(ctx context.Context, s *schema.Schema, words names.Profile, at *check.Path) (*Rules, []meta.Cause) {
	if !s.HasRules() {
		return nil, nil
	}
	e, err := For(words)
	if err != nil {
		return uncompiled(s, err), []meta.Cause{{Reason: meta.CauseInvalid, Field: at.String(), Message: err.Error()}}
	}
	p := newProvider(e.cel.CELTypeProvider())
	env, err := e.cel.Extend(cel.CustomTypeProvider(p))
	if err != nil {
		return uncompiled(s, err), []meta.Cause{{Reason: meta.CauseInvalid, Field: at.String(), Message: err.Error()}}
	}
	c := &compiler{env: env, types: p, extension: words.Extension("validations"), open: map[described]*Rules{}}
	root := *s
	root.Embedded = true // whole objects are alike, embedded or not
	r := c.schema(ctx, &root, &root, spot{path: at, most: 1, bounded: true})
	if c.full() {
		return uncompiled(&root, errors.New(c.faults[len(c.faults)-1].Message)), c.faults
	}
	if c.total(at); r != nil {
		r.count = c.count
	}
	return r, c.faults
}

// uncompiled are rules that no object follows: those of a schema cannot be compiled, though a
// server that knew better accepted them.
func uncompiled(s *schema.Schema, why error) *Rules {
	return &Rules{schema: s, rules: []rule{{Rule: &schema.Rule{}, fault: why}}}
}

// compiler compiles the rules of a schema.
type compiler struct {
	env       *cel.Env
	types     *provider
	extension string
	faults    check.Faults
	costs     []expressionCost
	values    int // looked at
	count     int // of rules
	ended     bool
	open      map[described]*Rules // being compiled: types of Go can hold themselves
}

// described is a schema, and the one whose values it has rules for.
type described struct{ s, of *schema.Schema }

// end keeps the rest from being compiled, since there is something wrong with the whole.
func (c *compiler) end(at *check.Path, why string) {
	c.ended = true
	c.faults.Forbidden(at, why)
}

// full reports whether nobody is told of further faults.
func (c *compiler) full() bool { return c.ended || len(c.faults) >= mostFaults }

// mostFaults is how many faults of a schema are told.
const mostFaults = 100

type expressionCost struct {
	at   *check.Path
	cost uint64
}

// spot is where a schema stands.
type spot struct {
	path    *check.Path
	depth   int
	most    uint64 // how many such values there can be in an object
	bounded bool   // most is said by the schema; else it follows from the size of requests

	// within is the path of the list or map above, whose items say nothing about which
	// they were before; nil: there is none.
	within *check.Path
}

func (p spot) field(name string) spot {
	p.path, p.depth = p.path.Field("properties").Key(name), p.depth+1
	return p
}

// every returns the spot of the items or values of a list or map.
func (p spot) every(of *schema.Schema, name string, limit *int64) spot {
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

// maxValues bounds how many values a schema with rules may describe.
const maxValues = 50_000

// schema compiles the rules that one schema has for values that another describes, which
// is another one in allOf.
func (c *compiler) schema(ctx context.Context, s, of *schema.Schema, at spot) *Rules {
	if s == nil || of == nil || c.full() {
		return nil
	}
	if r := c.open[described{s, of}]; r != nil {
		return r
	}
	if c.values++; c.values > maxValues || at.depth > maxDepth {
		c.end(at.path, fmt.Sprintf("a schema with rules may have at most %d values, %d deep", maxValues, maxDepth))
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
	r.items = c.schema(ctx, s.Items, of.Items, at.every(of, "items", of.MaxItems))
	r.values = c.schema(ctx, s.Values, of.Values, at.every(of, "additionalProperties", of.MaxProperties))
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
		c.end(path, fmt.Sprintf("a schema may have at most %d rules", MaxRules))
		return nil
	}
	t, ok := c.types.of(of)
	if !ok {
		c.faults.Invalid(path, nil, "expressions cannot see values of this type")
		return nil
	}
	var plain, created *cel.Env // made once, if a rule needs it
	out := make([]rule, 0, len(s.Rules))
	for i := range s.Rules {
		if err := ctx.Err(); err != nil {
			c.end(path, fmt.Sprintf("the rules were not compiled: %v", err))
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
		c.faults.Invalid(path.Field("rule"), told(r.Rule), r.fault.Error())
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
			c.faults.Invalid(path.Field("messageExpression"), told(r.Rule), "messageExpression "+err.Error())
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

// told is a rule as faults show it.
func told(r *schema.Rule) any {
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

// spend refuses an expression that costs too much, by estimate.
func (c *compiler) spend(what string, estimate uint64, at *check.Path) {
	c.costs = append(c.costs, expressionCost{at, estimate})
	if estimate > ruleEstimate {
		c.faults.Forbidden(at, exceeded("estimated "+what+" cost", estimate, ruleEstimate))
	}
}

// total refuses a schema whose rules together cost too much.
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

// exceeded says by how much something costs too much.
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
