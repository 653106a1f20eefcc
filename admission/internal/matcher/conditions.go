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

// Conditions are expressions of which all have to be true of a request.
type Conditions struct {
	env  *cel.RequestEnv
	list []condition
}

type condition struct {
	text    string
	program *cel.Program
	fault   error // why it cannot be evaluated
}

// NewConditions compiles the matchConditions of a webhook or policy; env is called only if
// there are some.
func NewConditions(env func() (*cel.RequestEnv, error), o *meta.Object) (c Conditions) {
	for _, m := range o.Objects("matchConditions") {
		one := condition{text: m.String("expression")}
		if c.env, one.fault = env(); one.fault == nil {
			one.program, one.fault = c.env.Compile(one.text, cel.Boolean)
		}
		c.list = append(c.list, one)
	}
	return c
}

// Match reports whether all conditions are true of a request as a version shows it.
func (c *Conditions) Match(ctx context.Context, r *Request, v *View) (bool, error) {
	if c.env == nil { // which cannot be made
		return c.True(ctx, nil)
	}
	left := int64(cel.ConditionsCost)
	return c.True(ctx, r.Vars(ctx, c.env, v, nil, nil, &left))
}

// True reports whether all conditions are true. If one is not, nobody asks for what is wrong
// with the others.
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

// Vars returns the variables of expressions about a request as a version shows it.
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
			decision, reason, err := authorizer.Authorize(ctx, auth.Action{
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
