package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/client"
	"orch.io/controlplane/internal/suggest"
)

// Chain runs the plugins of a server. It is immutable until Close, so its methods are safe for concurrent use. The
// zero Chain admits every request.
type Chain struct {
	server               PluginContext
	mutating, validating phase
	closers              []func()
}

// New returns a chain of the plugins of the table that are enabled by default or by the options, in the order of the
// table. If the rules or the options are invalid, it returns an error that joins all violations: words that no request
// can match, unknown names, configurations of a wrong type. Otherwise the error joins the errors of Setup, and the
// plugins that have neither Mutate nor Validate.
func New(table []Plugin, o Options, server PluginContext) (*Chain, error) {
	faults := o.validate(table)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	c := &Chain{server: server}
	counts, err := newCounts(server.Metrics)
	if err != nil {
		return nil, err
	}
	c.mutating.took = &timing{in: counts.steps, labels: []string{admit}}
	c.validating.took = &timing{in: counts.steps, labels: []string{validate}}
	for _, p := range table {
		if !o.runs(&p) {
			continue
		}
		server.Config = p.Config
		if config, ok := o.Config[p.Name]; ok {
			server.Config = config
		}
		if p.Setup != nil {
			if err := p.Setup(&p, server); err != nil {
				faults = append(faults, fmt.Errorf("admission plugin %s: %w", p.Name, err))
				continue
			}
		}
		if p.Deprecated != "" && server.Log != nil {
			server.Log.Warn("the admission plugin " + p.Name + " is deprecated: " + p.Deprecated)
		}
		if p.Close != nil {
			c.closers = append(c.closers, p.Close)
		}
		if p.Mutate == nil && p.Validate == nil {
			faults = append(faults, fmt.Errorf("admission plugin %s has neither Mutate nor Validate", p.Name))
		}
		rules := make([]Rule, len(p.Rules))
		for i, rule := range p.Rules {
			rules[i] = rule.wire(server.Names)
		}
		if p.Mutate != nil {
			c.mutating.add(step{rules, p.Mutate, &timing{in: counts.plugins, labels: []string{p.Name, admit}}})
		}
		if p.Validate != nil {
			c.validating.add(step{rules, p.Validate, &timing{in: counts.plugins, labels: []string{p.Name, validate}}})
		}
	}
	return c, errors.Join(faults...)
}

// Mutate runs the mutating phase of every plugin whose rules match, in order, and once more if a plugin calls
// Reinvoke. It stops at the first error and returns it; the error is a *meta.Status or the error of ctx.
func (c *Chain) Mutate(ctx context.Context, r *Request) (err error) {
	r.Server = &c.server
	begun := time.Now()
	defer func() { c.mutating.took.observe(r.Operation, err, time.Since(begun)) }()
	for r.Pass = 0; ; r.Pass++ {
		r.reinvoke = false
		if err = c.mutating.run(ctx, r); err != nil || !r.reinvoke || r.Pass == 1 {
			return err
		}
	}
}

// Validate runs the validating phase of every plugin whose rules match, in order. It stops at the first error and
// returns it; the error is a *meta.Status or the error of ctx.
func (c *Chain) Validate(ctx context.Context, r *Request) error {
	r.Server = &c.server
	begun := time.Now()
	err := c.validating.run(ctx, r)
	c.validating.took.observe(r.Operation, err, time.Since(begun))
	return err
}

// Close closes the plugins. The caller must ensure that no request uses the chain. A second call does nothing.
func (c *Chain) Close() {
	for _, closePlugin := range c.closers {
		closePlugin()
	}
	c.closers = nil
}

// phase has the steps of a phase in order, by resource, because most plugins match few resources and most resources
// match few plugins.
type phase struct {
	byResource map[string][]step
	others     []step  // for resources not in byResource
	took       *timing // of the whole phase; nil: not measured
}

type step struct {
	rules []Rule
	run   func(ctx context.Context, r *Request) error
	took  *timing
}

// add appends a step to the list of each resource that its rules can match.
func (p *phase) add(s step) {
	others, named := len(s.rules) == 0, map[string]bool{}
	for i := range s.rules {
		list, all := s.rules[i].plurals()
		others = others || all
		for _, plural := range list {
			named[plural] = true
		}
	}
	if p.byResource == nil {
		p.byResource = map[string][]step{}
	}
	for plural := range named {
		if p.byResource[plural] == nil {
			p.byResource[plural] = slices.Clone(p.others)
		}
	}
	for plural := range p.byResource {
		if others || named[plural] {
			p.byResource[plural] = append(p.byResource[plural], s)
		}
	}
	if others {
		p.others = append(p.others, s)
	}
}

func (p *phase) run(ctx context.Context, r *Request) error {
	steps, ok := p.byResource[r.Resource.Resource]
	if !ok {
		steps = p.others
	}
	for i := range steps {
		if !steps[i].concerns(r) {
			continue
		}
		begun := time.Now()
		err := steps[i].run(ctx, r)
		steps[i].took.observe(r.Operation, err, time.Since(begun))
		if err != nil {
			return denied(r, err)
		}
	}
	return nil
}

func (s *step) concerns(r *Request) bool {
	for i := range s.rules {
		if s.rules[i].Matches(r) {
			return true
		}
	}
	return len(s.rules) == 0
}

func denied(r *Request, err error) error {
	var st *meta.Status
	var unreadable *client.UnreadableError
	switch {
	case errors.As(err, &st):
		return st
	case errors.As(err, &unreadable):
		return meta.Internal(err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return err
	}
	return meta.Forbidden(r.Resource.GroupResource(), r.Name, err.Error())
}

// runs reports whether a plugin is enabled by its default and the options.
func (o *Options) runs(p *Plugin) bool {
	switch p.Default {
	case Required:
		return true
	case Off:
		return slices.Contains(o.Enable, p.Name)
	}
	return !slices.Contains(o.Disable, p.Name)
}

// validate returns the errors of a table and of the options.
func (o *Options) validate(table []Plugin) (faults []error) {
	known := map[string]*Plugin{}
	for i, p := range table {
		if p.Name == "" || known[p.Name] != nil {
			faults = append(faults, fmt.Errorf("admission plugin %d of the table has an empty or duplicate name: %q", i+1, p.Name))
		}
		known[p.Name] = &table[i]
		for n := range p.Rules {
			for _, err := range p.Rules[n].faults() {
				faults = append(faults, fmt.Errorf("rule %d of the admission plugin %s: %w", n+1, p.Name, err))
			}
		}
	}
	checkName := func(field, name string) {
		if known[name] == nil {
			faults = append(faults, fmt.Errorf("%s: there is no admission plugin %q%s", field, name, suggest.Near(name, slices.Sorted(maps.Keys(known))...)))
		}
	}
	for i, name := range o.Enable {
		checkName(fmt.Sprintf("Options.Enable[%d]", i), name)
	}
	for i, name := range o.Disable {
		checkName(fmt.Sprintf("Options.Disable[%d]", i), name)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Config)) {
		checkName(fmt.Sprintf("Options.Config[%q]", name), name)
	}
	for _, name := range o.Disable {
		if slices.Contains(o.Enable, name) {
			faults = append(faults, fmt.Errorf("the admission plugin %s is both enabled and disabled", name))
		}
		if p := known[name]; p != nil && p.Default == Required {
			faults = append(faults, fmt.Errorf("the admission plugin %s cannot be disabled", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.Config)) {
		p := known[name]
		if p == nil {
			continue
		}
		if got, want := reflect.TypeOf(o.Config[name]), reflect.TypeOf(p.Config); got != want {
			faults = append(faults, fmt.Errorf("the configuration of the admission plugin %s must be a %v, not a %v", name, want, got))
		}
		if !o.runs(p) {
			faults = append(faults, fmt.Errorf("the admission plugin %s is configured, but does not run", name))
		}
	}
	return faults
}
