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

// Chain is the plugins that run in one server. It never changes until Close. The zero Chain
// admits everything.
type Chain struct {
	server               PluginContext
	mutating, validating phase
	closers              []func()
}

// New makes the chain of a table. Its order is that of the table: the one in
// which plugins are enabled does not matter. The error holds every fault of the
// rules and the options: a word that no request has, a name that is no plugin's, a
// configuration that does not fit; or, if there is none, what every Setup said, and
// which plugins do nothing.
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

// Mutate runs the mutating phase of every plugin that the request concerns, in
// order, and once more if one of them asks for that. The first error ends it; it is a
// *meta.Status, or that of a context that ended.
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

// Validate runs the validating phase of every plugin that the request concerns, in
// order. The first error ends it; it is as those of Mutate.
func (c *Chain) Validate(ctx context.Context, r *Request) error {
	r.Server = &c.server
	begun := time.Now()
	err := c.validating.run(ctx, r)
	c.validating.took.observe(r.Operation, err, time.Since(begun))
	return err
}

// Close frees what plugins hold. No request may run any more. A second call does nothing.
func (c *Chain) Close() {
	for _, free := range c.closers {
		free()
	}
	c.closers = nil
}

// phase holds the steps of one phase in order, by the plural of a resource:
// most plugins concern few resources, and most resources few plugins.
type phase struct {
	of     map[string][]step
	others []step  // of every resource that is not in of
	took   *timing // of all of them; nil: there are none
}

type step struct {
	rules []Rule
	run   func(ctx context.Context, r *Request) error
	took  *timing
}

// add appends a step wherever one of the rules may match.
func (p *phase) add(s step) {
	others, named := len(s.rules) == 0, map[string]bool{}
	for i := range s.rules {
		list, all := s.rules[i].plurals()
		others = others || all
		for _, plural := range list {
			named[plural] = true
		}
	}
	if p.of == nil {
		p.of = map[string][]step{}
	}
	for plural := range named {
		if p.of[plural] == nil {
			p.of[plural] = slices.Clone(p.others)
		}
	}
	for plural := range p.of {
		if others || named[plural] {
			p.of[plural] = append(p.of[plural], s)
		}
	}
	if others {
		p.others = append(p.others, s)
	}
}

func (p *phase) run(ctx context.Context, r *Request) error {
	steps, ok := p.of[r.Resource.Resource]
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

// runs reports whether a plugin is chosen.
func (o *Options) runs(p *Plugin) bool {
	switch p.Default {
	case Required:
		return true
	case Off:
		return slices.Contains(o.Enable, p.Name)
	}
	return !slices.Contains(o.Disable, p.Name)
}

// validate returns what is wrong with a table and the choice of its plugins.
func (o *Options) validate(table []Plugin) (faults []error) {
	known := map[string]*Plugin{}
	for i, p := range table {
		if p.Name == "" || known[p.Name] != nil {
			faults = append(faults, fmt.Errorf("admission plugin %d of the table is called %q, which is no name of its own", i+1, p.Name))
		}
		known[p.Name] = &table[i]
		for n := range p.Rules {
			for _, err := range p.Rules[n].faults() {
				faults = append(faults, fmt.Errorf("rule %d of the admission plugin %s: %w", n+1, p.Name, err))
			}
		}
	}
	told := func(field, name string) {
		if known[name] == nil {
			faults = append(faults, fmt.Errorf("%s: there is no admission plugin %q%s", field, name, suggest.Near(name, slices.Sorted(maps.Keys(known))...)))
		}
	}
	for i, name := range o.Enable {
		told(fmt.Sprintf("Options.Enable[%d]", i), name)
	}
	for i, name := range o.Disable {
		told(fmt.Sprintf("Options.Disable[%d]", i), name)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Config)) {
		told(fmt.Sprintf("Options.Config[%q]", name), name)
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
			faults = append(faults, fmt.Errorf("the configuration of the admission plugin %s is a %v, not a %v", name, want, got))
		}
		if !o.runs(p) {
			faults = append(faults, fmt.Errorf("the admission plugin %s is configured, but does not run", name))
		}
	}
	return faults
}
