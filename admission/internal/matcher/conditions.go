package matcher

import (
	"context"
	"errors"
	"fmt"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/auth"
	"orch.io/controlplane/internal/cel"
	"orch.io/controlplane/internal/cel/library"
)

// Conditions are compiled match conditions, all of which must be true. They are immutable.
type Conditions struct {
	env  *cel.RequestEnv
	list []condition
}

type condition struct {
	text    string
	program *cel.Program
	fault   error // compilation error
}

// NewConditions compiles the matchConditions of a webhook or policy. Errors are reported when the conditions
// are evaluated. env is called only if there are conditions.
func NewConditions(env func() (*cel.RequestEnv, error), o *meta.Object) (c Conditions) {
	for _, m := range o.Objects("matchConditions") {
		compiled := condition{text: m.String("expression")}
		if c.env, compiled.fault = env(); compiled.fault == nil {
			compiled.program, compiled.fault = c.env.Compile(compiled.text, cel.Boolean)
		}
		c.list = append(c.list, compiled)
	}
	return c
}

// Match reports whether all conditions are true for a request in the version of the view.
func (c *Conditions) Match(ctx context.Context, r *Request, v *View) (bool, error) {
	if c.env == nil { // there are no conditions, or env failed
		return c.True(ctx, nil)
	}
	left := int64(cel.ConditionsCost)
	return c.True(ctx, r.Vars(ctx, c.env, v, nil, nil, &left))
}

// True reports whether all conditions are true. If a condition is false, it returns false without an error, even if
// other conditions cannot be evaluated.
func (c *Conditions) True(ctx context.Context, vars map[string]any) (bool, error) {
	left := int64(cel.ConditionsCost)
	var faults []error
	for _, m := range c.list {
		if m.fault != nil {
			faults = append(faults, fmt.Errorf("compilation error: %w", m.fault))
			continue
		}
		switch ok, err := m.program.True(ctx, vars, &left); {
		case err != nil:
			faults = append(faults, fmt.Errorf("expression '%s' resulted in error: %w", m.text, err))
		case !ok:
			return false, nil
		}
		if left < 0 {
			break
		}
	}
	return len(faults) == 0, errors.Join(faults...)
}

// Empty reports whether there are no conditions.
func (c *Conditions) Empty() bool { return len(c.list) == 0 }

// Vars returns the variables for expressions about a request in the version of the view. left is the remaining cost
// budget, which lazily evaluated variables share.
func (r *Request) Vars(ctx context.Context, env *cel.RequestEnv, v *View, namespace, params *meta.Object, left *int64) map[string]any {
	about := r.About(v)
	if r.Options != nil {
		about["options"] = r.Options.Tree()
	}
	var ask library.Ask
	if authorizer := r.Server.Authorizer; authorizer != nil {
		ask = func(a library.Action) (bool, string, error) {
			user := a.User
			if a.Account.Name != "" {
				user = &auth.User{
					Name:   auth.ServiceAccountUser(a.Account.Namespace, a.Account.Name),
					Groups: auth.ServiceAccountGroups(a.Account.Namespace),
				}
			}
			decision, reason, err := authorizer.Authorize(ctx, auth.Attributes{
				User: user, Verb: a.Verb, Path: a.Path, Group: a.Group, Version: a.Version, Resource: a.Resource, Subresource: a.Subresource,
				Namespace: a.Namespace, Name: a.Name, Fields: a.Fields, Labels: a.Labels,
			})
			return decision == auth.Allow, reason, err
		}
	}
	return env.Vars(ctx, &cel.Request{
		Object: v.Object, Old: v.Old, Params: params, Namespace: namespace, About: about, Ask: ask,
		Action: library.Action{
			User: r.User, Group: r.RequestResource.Group, Version: r.RequestResource.Version, Resource: r.RequestResource.Resource,
			Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
		},
	}, left)
}
