package cel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/schema"
)

// LongestMessage is the maximum size of the result of a messageExpression, in bytes. Longer
// results are ignored.
const LongestMessage = 5 << 10

// Check evaluates the rules for an object. old is its previous state, or nil if the object is
// new. If a value did not change and a rule without oldSelf is violated, Check returns a
// warning instead of a cause, because the stored object is accepted with that value. At most
// 100 causes and 100 warnings are returned. If ctx ends or the cost limit of an object is
// exceeded, Check stops and returns a cause.
func (r *Rules) Check(ctx context.Context, obj, old map[string]any) (faults []meta.StatusCause, warnings []string) {
	if r == nil {
		return nil, nil
	}
	c := &checker{left: ObjectCost}
	v := visit{now: obj}
	if old != nil {
		v.old, v.known = old, true
	}
	c.value(ctx, r, v, nil)
	return c.faults, c.warnings
}

// checker evaluates rules for one object. It stops when left is negative.
type checker struct {
	left     int64
	faults   check.Violations
	warnings []string
}

// visit is a value with its previous value.
type visit struct {
	now, old any
	known    bool // old is the previous value, or nil if there was none; otherwise it cannot be determined
	same     bool // if known is false: whether the nearest ancestor with a known previous value did not change
}

// unchanged reports whether the value did not change.
func (v visit) unchanged() bool {
	if v.known {
		return v.old != nil && meta.Equal(v.now, v.old)
	}
	return v.same
}

// below returns the visit of a value directly below v.
func (v visit) below(now, old any, known bool) visit {
	next := visit{now: now, old: old, known: known && v.known}
	if !next.known {
		next.same = v.unchanged()
	}
	return next
}

func (c *checker) value(ctx context.Context, r *Rules, v visit, at *check.Path) {
	if r == nil || v.now == nil || c.left < 0 {
		return
	}
	if err := ctx.Err(); err != nil {
		c.left = -1
		c.faults.Invalid(wholeObject(), r.schema.Type.String(), fmt.Sprintf("the rules were not evaluated: %v", err))
		return
	}
	c.rules(ctx, r, v, at)
	for _, more := range r.also {
		c.value(ctx, more, v, at)
	}
	switch now := v.now.(type) {
	case []any:
		c.list(ctx, r, v, now, at)
	case map[string]any:
		old, _ := v.old.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(now)) {
			if r.values != nil {
				c.value(ctx, r.values, v.below(now[name], old[name], true), at.Key(name))
			}
			if below := r.fields[name]; below != nil {
				c.value(ctx, below, v.below(now[name], old[name], true), at.Field(name))
			}
		}
	}
}

// list checks the items of a list. Only items of a list with keys have a known previous value.
func (c *checker) list(ctx context.Context, r *Rules, v visit, now []any, at *check.Path) {
	if r.items == nil {
		return
	}
	byKeys := r.schema.ListType == "map"
	before := map[string]any{}
	if old, ok := v.old.([]any); ok && byKeys {
		for _, item := range old {
			before[r.schema.ItemKey(item)] = item
		}
	}
	if !byKeys { // compare the list once instead of for each item
		v.same, v.known = v.unchanged(), false
	}
	for i, item := range now {
		var old any
		if byKeys {
			old = before[r.schema.ItemKey(item)]
		}
		c.value(ctx, r.items, v.below(item, old, byKeys), at.Index(i))
	}
}

// wholeObject returns the path for causes that concern the whole object.
func wholeObject() *check.Path { return check.At("<nil>") }

func (c *checker) rules(ctx context.Context, r *Rules, v visit, at *check.Path) {
	if len(r.rules) == 0 {
		return
	}
	if at == nil {
		at = wholeObject()
	}
	vars := map[string]any{self: Value(r.schema, v.now)}
	created := map[string]any{self: vars[self], oldSelf: types.OptionalNone}
	if v.old != nil {
		old := Value(r.schema, v.old)
		vars[oldSelf], created[oldSelf] = old, types.OptionalOf(old)
	}
	unchanged := sync.OnceValue(v.unchanged)
	for _, rule := range r.rules {
		if c.left < 0 {
			return
		}
		given := vars
		switch {
		case rule.fault != nil: // a server with more features accepted the rule
			c.faults.Invalid(at, r.schema.Type.String(), fmt.Sprintf("rule compile error: %v", rule.fault))
			continue
		case rule.created():
			given = created
		case rule.transition() && v.old == nil:
			continue
		}
		c.rule(ctx, r.schema, rule, given, v.now, unchanged, at)
	}
}

func (c *checker) rule(ctx context.Context, s *schema.Schema, r rule, vars map[string]any, now any, unchanged func() bool, at *check.Path) {
	shown := strings.TrimSpace(r.Message)
	if shown == "" {
		shown = strings.TrimSpace(r.Expression)
	}
	holds, err := r.holds.eval(ctx, vars, &c.left)
	switch {
	case errors.Is(err, errCost):
		c.faults.Invalid(at, s.Type.String(), errCost.Error())
	case err != nil && exceedsCallCost(err):
		c.left = -1
		c.faults.Invalid(at, s.Type.String(), fmt.Sprintf("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %s", err, shown))
	case err != nil && strings.HasPrefix(err.Error(), "no such overload"):
		c.faults.Invalid(at, s.Type.String(), fmt.Sprintf("'%v': call arguments did not match a supported operator, function or macro signature for rule: %s", err, shown))
	case err != nil:
		c.faults.Invalid(at, s.Type.String(), fmt.Sprintf("%v evaluating rule: %s", err, shown))
	case holds != ref.Val(types.True):
		c.violated(ctx, s, r, vars, now, unchanged, at)
	}
}

// violated adds a cause or a warning for a violated rule.
func (c *checker) violated(ctx context.Context, s *schema.Schema, r rule, vars map[string]any, now any, unchanged func() bool, at *check.Path) {
	message := strings.TrimSpace(r.Message)
	if message == "" {
		message = "failed rule: " + strings.TrimSpace(r.Expression)
	}
	if r.message != nil {
		made, err := r.message.eval(ctx, vars, &c.left)
		switch {
		case errors.Is(err, errCost):
			message = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
		case err != nil && exceedsCallCost(err):
			c.left = -1
			message = fmt.Sprintf("no further validation rules will be run due to call cost exceeds limit for messageExpression: %q", r.MessageExpression)
		case err == nil:
			text, _ := made.Value().(string)
			if text = strings.TrimSpace(text); text != "" && len(text) <= LongestMessage && !strings.Contains(text, "\n") {
				message = text
			}
		}
	}
	from := at
	if from.String() == wholeObject().String() {
		from = nil
	}
	if below := s.Below(from, r.FieldPath); below != nil {
		at = below
	}
	shown := now
	switch now.(type) {
	case map[string]any, []any:
		shown = check.Hidden{}
	}
	var causes check.Violations
	switch r.Reason {
	case "FieldValueForbidden":
		causes.Forbidden(at, message)
	case "FieldValueRequired":
		causes.Required(at, message)
	case "FieldValueDuplicate":
		causes.Duplicate(at, shown)
	default:
		causes.Invalid(at, shown, message)
	}
	switch {
	case c.left >= 0 && !r.transition() && unchanged(): // without budget left, a cause must report that evaluation stopped
		if len(c.warnings) < mostFaults {
			c.warnings = append(c.warnings, causes[0].Field+": "+causes[0].Message)
		}
	case len(c.faults) < mostFaults:
		c.faults = append(c.faults, causes...)
	}
}
