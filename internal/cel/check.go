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

// LongestMessage bounds what a messageExpression may make, in bytes.
const LongestMessage = 5 << 10

// Check evaluates the rules for an object; old is nil if it is new. What a rule says of a
// value that stays as it was is a warning, not a fault: the object was accepted with it.
func (r *Rules) Check(ctx context.Context, obj, old map[string]any) (faults []meta.Cause, warnings []string) {
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

// checker goes through an object. It ends when nothing is left to spend.
type checker struct {
	left     int64
	faults   check.Faults
	warnings []string
}

// visit is a value and what it was.
type visit struct {
	now, old any
	known    bool // old is what the value was; else nobody can tell
	same     bool // the nearest value above of which that is known stayed as it was
}

// unchanged reports whether the value stayed as it was.
func (v visit) unchanged() bool {
	if v.known {
		return v.old != nil && meta.Equal(v.now, v.old)
	}
	return v.same
}

// below returns the visit of a value in v.
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

// list visits the items of a list. Those of a list by keys are known by them.
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
	if !byKeys { // what holds for the list holds for its items: it is compared once
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

// wholeObject is the place of faults of a whole object.
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
		case rule.fault != nil: // it was accepted by a server that knew better
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
	said := strings.TrimSpace(r.Message)
	if said == "" {
		said = strings.TrimSpace(r.Expression)
	}
	holds, err := r.holds.eval(ctx, vars, &c.left)
	switch {
	case errors.Is(err, errCost):
		c.faults.Invalid(at, s.Type.String(), errCost.Error())
	case err != nil && tooDear(err):
		c.left = -1
		c.faults.Invalid(at, s.Type.String(), fmt.Sprintf("'%v': no further validation rules will be run due to call cost exceeds limit for rule: %s", err, said))
	case err != nil && strings.HasPrefix(err.Error(), "no such overload"):
		c.faults.Invalid(at, s.Type.String(), fmt.Sprintf("'%v': call arguments did not match a supported operator, function or macro signature for rule: %s", err, said))
	case err != nil:
		c.faults.Invalid(at, s.Type.String(), fmt.Sprintf("%v evaluating rule: %s", err, said))
	case holds != ref.Val(types.True):
		c.broken(ctx, s, r, vars, now, unchanged, at)
	}
}

// broken tells of a rule that a value breaks.
func (c *checker) broken(ctx context.Context, s *schema.Schema, r rule, vars map[string]any, now any, unchanged func() bool, at *check.Path) {
	message := strings.TrimSpace(r.Message)
	if message == "" {
		message = "failed rule: " + strings.TrimSpace(r.Expression)
	}
	if r.message != nil {
		made, err := r.message.eval(ctx, vars, &c.left)
		switch {
		case errors.Is(err, errCost):
			message = "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
		case err != nil && tooDear(err):
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
	var told check.Faults
	switch r.Reason {
	case "FieldValueForbidden":
		told.Forbidden(at, message)
	case "FieldValueRequired":
		told.Required(at, message)
	case "FieldValueDuplicate":
		told.Duplicate(at, shown)
	default:
		told.Invalid(at, shown, message)
	}
	switch {
	case c.left >= 0 && !r.transition() && unchanged(): // else the rules that follow are not evaluated
		if len(c.warnings) < mostFaults {
			c.warnings = append(c.warnings, told[0].Field+": "+told[0].Message)
		}
	case len(c.faults) < mostFaults:
		c.faults = append(c.faults, told...)
	}
}
