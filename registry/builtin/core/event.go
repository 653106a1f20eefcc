package core

import (
	"cmp"
	"strings"
	"time"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// Event reports an occurrence at an object. Events are deleted after a limited time.
type Event struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata" protobuf:"1"`

	// InvolvedObject is the object that the event is about. The event must be in its namespace.
	InvolvedObject ObjectReference `json:"involvedObject" protobuf:"2"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"3"`

	// Message explains the event to people.
	Message string `json:"message,omitempty" protobuf:"4"`

	// Source is the reporting component.
	Source EventSource `json:"source,omitempty" protobuf:"5"`

	// FirstTimestamp is the time of the first occurrence.
	FirstTimestamp meta.Time `json:"firstTimestamp,omitempty" protobuf:"6"`

	// LastTimestamp is the time of the last occurrence.
	LastTimestamp meta.Time `json:"lastTimestamp,omitempty" protobuf:"7"`

	// Count is the number of occurrences.
	Count int32 `json:"count,omitempty" protobuf:"8"`

	// Type is Normal or Warning; further types may be added.
	Type string `json:"type,omitempty" protobuf:"9"`

	// EventTime is the time of the first observation.
	EventTime meta.MicroTime `json:"eventTime,omitempty" protobuf:"10"`

	// Series describes a recurring event. Unset for a single occurrence.
	Series *EventSeries `json:"series,omitempty" protobuf:"11"`

	// Action that was taken or failed.
	Action string `json:"action,omitempty" protobuf:"12"`

	// Related is a second object that is involved.
	Related *ObjectReference `json:"related,omitempty" protobuf:"13"`

	// ReportingController is the name of the reporting controller, such as example.com/scheduler.
	ReportingController string `json:"reportingComponent" protobuf:"14" schema:"optional"`

	// ReportingInstance is the instance of that controller.
	ReportingInstance string `json:"reportingInstance" protobuf:"15" schema:"optional"`
}

// EventSource is the reporting component of an event.
type EventSource struct {
	// Component is the name of the component.
	Component string `json:"component,omitempty" protobuf:"1"`

	// Host that the component runs on.
	Host string `json:"host,omitempty" protobuf:"2"`
}

// EventSeries describes a recurring event.
type EventSeries struct {
	// Count is the number of occurrences up to the last observation.
	Count int32 `json:"count,omitempty" protobuf:"1"`

	// LastObservedTime is the time of the last occurrence.
	LastObservedTime meta.MicroTime `json:"lastObservedTime,omitempty" protobuf:"2"`
}

func events() *registry.Kind {
	return registry.Of(registry.Definition[Event]{
		Version:    version,
		Versions:   eventViews(),
		ShortNames: []string{"ev"},
		Columns:    eventColumns(),
		Validate:   validateEvent,
		// Recorders derive the name of an event from its object, whose name may be any path segment.
		ValidateName: meta.NameChecker(meta.CheckPathSegment),
		Fields: []registry.SelectableField{
			{Name: "involvedObject.kind"},
			{Name: "involvedObject.namespace"},
			{Name: "involvedObject.name"},
			{Name: "involvedObject.uid"},
			{Name: "involvedObject.apiVersion"},
			{Name: "involvedObject.resourceVersion"},
			{Name: "involvedObject.fieldPath"},
			{Name: "reason"},
			{Name: "reportingComponent"},
			{Name: "source", Path: []string{"source", "component"}, Fallback: []string{"reportingComponent"}},
			{Name: "type"},
		},
		Reference: &compat.Reference{
			NoGeneration:        true,
			DeleteAnswersStatus: true,
			CreateOnPut:         true,
			NoDependents:        true,
			FreeFinalizers:      true,
		},
	})
}

func eventColumns() []registry.Column {
	return []registry.Column{
		{Name: "Last Seen", Type: "string", Doc: "The time since the last occurrence.", Cell: func(o *meta.Object) any {
			if o.Map("series") != nil {
				return age(o, []string{"series", "lastObservedTime"})
			}
			return age(o, []string{"lastTimestamp"}, []string{"firstTimestamp"}, []string{"eventTime"})
		}},
		registry.TextColumn("Type", "Normal or Warning.", "type"),
		registry.TextColumn("Reason", "The reason of the event.", "reason"),
		{Name: "Object", Type: "string", Doc: "The object that the event is about.", Cell: func(o *meta.Object) any {
			kind, name := strings.ToLower(o.String("involvedObject", "kind")), o.String("involvedObject", "name")
			if name == "" {
				return kind
			}
			return kind + "/" + name
		}},
		{Name: "Subobject", Type: "string", Doc: "The part of the object.", Priority: 1, Cell: func(o *meta.Object) any {
			return o.String("involvedObject", "fieldPath")
		}},
		{Name: "Source", Type: "string", Doc: "The reporting component.", Priority: 1, Cell: eventSource},
		{Name: "Message", Type: "string", Doc: "The message of the event.", Cell: func(o *meta.Object) any {
			return strings.TrimSpace(o.String("message"))
		}},
		{Name: "First Seen", Type: "string", Doc: "The time since the first occurrence.", Priority: 1, Cell: func(o *meta.Object) any {
			return age(o, []string{"firstTimestamp"}, []string{"eventTime"})
		}},
		{Name: "Count", Type: "string", Doc: "The number of occurrences.", Priority: 1, Cell: func(o *meta.Object) any {
			if o.Map("series") != nil {
				return o.Int("series", "count")
			}
			return cmp.Or(o.Int("count"), 1)
		}},
		// the last column, because names of events are not informative
		{Name: "Name", Type: "string", Format: "name", Doc: "Name of the event.", Priority: 1, Cell: func(o *meta.Object) any { return o.Name() }},
	}
}

// age returns the time since the first timestamp that is set.
func age(o *meta.Object, paths ...[]string) string {
	for _, p := range paths {
		if t := o.Time(p...); !t.IsZero() {
			return meta.FormatAge(t, time.Now())
		}
	}
	return "<unknown>"
}

// eventSource shows the reporting component and its host, from the old fields or the new ones.
func eventSource(o *meta.Object) any {
	component := cmp.Or(o.String("source", "component"), o.String("reportingComponent"))
	if host := cmp.Or(o.String("source", "host"), o.String("reportingInstance")); host != "" {
		return component + ", " + host
	}
	return component
}

// validateEvent checks that an event is in the namespace of its object, or in the default namespace if
// the object has none. Events with an eventTime, from newer clients, need a reporter and an action;
// without a namespace of the object they may also be in the system namespace. Writes through the events
// group must satisfy the rules of its version v1.
func validateEvent(w *registry.Change[Event]) {
	e, system := w.New, w.Names.SystemNamespace("system")
	in, at := e.InvolvedObject.Namespace, check.At("involvedObject", "namespace")
	switch {
	case in == "" && (e.Namespace == "default" || e.Namespace == system && !e.EventTime.IsZero()):
	case e.EventTime.IsZero() && in != e.Namespace, in == "":
		w.Invalid(at, in, "does not match event.namespace")
	}
	view, controller := w.Version.Group == w.Names.Group(wellknown.GroupEvents), "reportingComponent"
	if view {
		controller = "reportingController"
	}
	if !e.EventTime.IsZero() {
		e.validateNew(&w.Violations, controller)
	}
	if view && w.Version.Version == "v1" {
		e.validateView(&w.Violations, w.Old)
	}
}

// Limits of the texts of an event, in bytes.
const (
	maxEventText    = 128
	maxEventMessage = 1024
)

func (e *Event) validateNew(f *check.Violations, controller string) {
	if e.ReportingController == "" {
		f.Required(check.At(controller), "")
	}
	f.Format(check.At(controller), e.ReportingController, meta.CheckQualifiedName(e.ReportingController))
	for _, field := range []struct{ name, value string }{
		{"reportingInstance", e.ReportingInstance}, {"action", e.Action}, {"reason", e.Reason},
	} {
		if field.value == "" {
			f.Required(check.At(field.name), "")
		}
		if len(field.value) > maxEventText {
			f.Invalid(check.At(field.name), "", "can have at most 128 characters")
		}
	}
	if len(e.Message) > maxEventMessage {
		f.Invalid(check.At("message"), "", "can have at most 1024 characters")
	}
}
