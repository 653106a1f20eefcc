package fairqueue

import (
	"cmp"
	"slices"
	"sync"

	"github.com/google/uuid"

	"orch.io/controlplane/auth"
	"orch.io/controlplane/server/flowcontrol"
)

// plan is a compiled configuration that classifies requests. It is immutable.
type plan struct {
	schemas []*schema // in the order of matching
}

type schema struct {
	flowcontrol.FlowSchema
	level    *level
	levelUID string
	exempt   bool
	counts   *counts
	counted  sync.Once
	handles  counters // set by counted
}

// counters returns the metrics of the schema. They are created for its first request, because most
// schemas never have a request.
func (s *schema) counters() *counters {
	s.counted.Do(func() { s.handles = s.counts.countersFor(s.Name, s.Level) })
	return &s.handles
}

// Flow is the flow that a request belongs to. Requests of a flow are served in order of arrival;
// the flows of a level share its seats fairly.
type Flow struct {
	plan   *plan
	schema *schema
	action *auth.Attributes
}

// SchemaUID returns the UID of the flow's schema.
func (f Flow) SchemaUID() string { return f.schema.UID }

// LevelUID returns the UID of the flow's priority level.
func (f Flow) LevelUID() string { return f.schema.levelUID }

// Level returns the name of the flow's priority level; "" for the zero Flow.
func (f Flow) Level() string {
	if f.schema == nil {
		return ""
	}
	return f.schema.Level
}

// watches reports whether the request is a watch, which holds its seat only until its stream
// begins.
func (f Flow) watches() bool { return f.action.Verb == "watch" }

// Exempt reports whether requests of the flow take no seats and never wait.
func (f Flow) Exempt() bool { return f.schema.exempt }

// key returns the names that identify the flow within its level.
func (f Flow) key() (schema, flow string) {
	switch f.schema.Distinguisher {
	case flowcontrol.ByUser:
		flow = f.action.User.Name
	case flowcontrol.ByNamespace:
		flow = f.action.Namespace
	}
	return f.schema.Name, flow
}

// Classify returns the flow of a request. The caller must not change the Attributes afterwards.
func (c *Controller) Classify(a *auth.Attributes) Flow { return c.plan.Load().classify(a) }

// classify returns the flow of the first schema that matches, or else of the last schema.
func (p *plan) classify(a *auth.Attributes) Flow {
	for _, s := range p.schemas {
		if s.Match(a) {
			return Flow{p, s, a}
		}
	}
	return Flow{p, p.schemas[len(p.schemas)-1], a}
}

// compile returns the plan of a valid configuration over the given levels.
func compile(config flowcontrol.Config, levels map[string]*level, m *counts) *plan {
	p := &plan{}
	for _, s := range config.Schemas {
		l := levels[s.Level]
		s.UID = cmp.Or(s.UID, uid("schema", s.Name))
		p.schemas = append(p.schemas, &schema{
			FlowSchema: s, level: l, levelUID: cmp.Or(l.config.UID, uid("level", l.config.Name)), exempt: l.config.Exempt, counts: m,
		})
	}
	slices.SortFunc(p.schemas, func(a, b *schema) int {
		return cmp.Or(cmp.Compare(a.Precedence, b.Precedence), cmp.Compare(a.Name, b.Name))
	})
	return p
}

// uid derives a UID from a name. It is the same on every server and after every start.
func uid(kind, name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("flowcontrol/"+kind+"/"+name)).String()
}
