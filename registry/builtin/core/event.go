package core

import (
	"cmp"
	"strings"
	"time"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/internal/compat"
	"orch.io/controlplane/registry"
)

// Event reports that something happened to an object. Events are kept for a
// limited time.
type Event struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata" protobuf:"1"`

	// InvolvedObject is the object that the event is about; an event lives in
	// its namespace.
	InvolvedObject ObjectReference `json:"involvedObject" protobuf:"2"`

	// Reason is a word for programs that says why it happened.
	Reason string `json:"reason,omitempty" protobuf:"3"`

	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"4"`

	// Source is the component that reports.
	Source EventSource `json:"source,omitempty" protobuf:"5"`

	// FirstTimestamp is when it was seen first.
	FirstTimestamp meta.Time `json:"firstTimestamp,omitempty" protobuf:"6"`

	// LastTimestamp is when it was seen last.
	LastTimestamp meta.Time `json:"lastTimestamp,omitempty" protobuf:"7"`

	// Count is how often it was seen.
	Count int32 `json:"count,omitempty" protobuf:"8"`

	// Type is Normal or Warning; new types may come.
	Type string `json:"type,omitempty" protobuf:"9"`

	// EventTime is when this event was first observed.
	EventTime meta.MicroTime `json:"eventTime,omitempty" protobuf:"10"`

	// Series sums up an event that goes on; unset for a single one.
	Series *EventSeries `json:"series,omitempty" protobuf:"11"`

	// Action is what was done or what failed.
	Action string `json:"action,omitempty" protobuf:"12"`

	// Related is a second object that had a part in it.
	Related *ObjectReference `json:"related,omitempty" protobuf:"13"`

	// ReportingController names the controller that reports, such as
	// example.com/scheduler.
	ReportingController string `json:"reportingComponent" protobuf:"14" schema:"optional"`

	// ReportingInstance names the instance of that controller.
	ReportingInstance string `json:"reportingInstance" protobuf:"15" schema:"optional"`
}

// EventSource says who reports an event.
type EventSource struct {
	// Component that reports.
	Component string `json:"component,omitempty" protobuf:"1"`

	// Host that the component runs on.
	Host string `json:"host,omitempty" protobuf:"2"`
}

// EventSeries counts the occurrences of an event that goes on.
type EventSeries struct {
	// Count of occurrences up to the last observed one.
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
		// Recorders name an event after its object, whose name may be any path segment.
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
			{Name: "source", Path: []string{"source", "component"}, Else: []string{"reportingComponent"}},
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
		{Name: "Last Seen", Type: "string", Doc: "How long ago it was seen last.", Cell: func(o *meta.Object) any {
			if o.Map("series") != nil {
				return age(o, []string{"series", "lastObservedTime"})
			}
			return age(o, []string{"lastTimestamp"}, []string{"firstTimestamp"}, []string{"eventTime"})
		}},
		registry.Text("Type", "Normal or Warning.", "type"),
		registry.Text("Reason", "Why it happened.", "reason"),
		{Name: "Object", Type: "string", Doc: "What it happened to.", Cell: func(o *meta.Object) any {
			kind, name := strings.ToLower(o.String("involvedObject", "kind")), o.String("involvedObject", "name")
			if name == "" {
				return kind
			}
			return kind + "/" + name
		}},
		{Name: "Subobject", Type: "string", Doc: "The part of the object.", Priority: 1, Cell: func(o *meta.Object) any {
			return o.String("involvedObject", "fieldPath")
		}},
		{Name: "Source", Type: "string", Doc: "Who reports it.", Priority: 1, Cell: eventSource},
		{Name: "Message", Type: "string", Doc: "What happened.", Cell: func(o *meta.Object) any {
			return strings.TrimSpace(o.String("message"))
		}},
		{Name: "First Seen", Type: "string", Doc: "How long ago it was seen first.", Priority: 1, Cell: func(o *meta.Object) any {
			return age(o, []string{"firstTimestamp"}, []string{"eventTime"})
		}},
		{Name: "Count", Type: "string", Doc: "How often it was seen.", Priority: 1, Cell: func(o *meta.Object) any {
			if o.Map("series") != nil {
				return o.Int("series", "count")
			}
			return cmp.Or(o.Int("count"), 1)
		}},
		// Names of events tell nothing: a client shows them last, if at all.
		{Name: "Name", Type: "string", Format: "name", Doc: "Name of the event.", Priority: 1, Cell: func(o *meta.Object) any { return o.Name() }},
	}
}

// age returns the age of the first time that is set.
func age(o *meta.Object, paths ...[]string) string {
	for _, p := range paths {
		if t := o.Time(p...); !t.IsZero() {
			return meta.FormatAge(t, time.Now())
		}
	}
	return "<unknown>"
}

// eventSource names the component that reports and its host, each in the old
// field or in the new one.
func eventSource(o *meta.Object) any {
	component := cmp.Or(o.String("source", "component"), o.String("reportingComponent"))
	if host := cmp.Or(o.String("source", "host"), o.String("reportingInstance")); host != "" {
		return component + ", " + host
	}
	return component
}

// validateEvent checks that an event lives in the namespace of its object, or in the
// default namespace if that has none. Events with an eventTime, which newer
// clients send, name their reporter and action; they may be anywhere, those of
// objects without a namespace also in the system's. Those who write through the group
// of events are held to its rules, too.
func validateEvent(w *registry.Change[Event]) {
	e, system := w.New, w.Names.SystemNamespace("system")
	in, at := e.InvolvedObject.Namespace, check.At("involvedObject", "namespace")
	switch {
	case in == "" && (e.Namespace == "default" || e.Namespace == system && !e.EventTime.IsZero()):
	case e.EventTime.IsZero() && in != e.Namespace, in == "":
		w.Invalid(at, in, "does not match event.namespace")
	}
	view, controller := w.Version.Group == w.Names.Group(names.GroupEvents), "reportingComponent"
	if view {
		controller = "reportingController"
	}
	if !e.EventTime.IsZero() {
		e.validateNew(&w.Faults, controller)
	}
	if view && w.Version.Version == "v1" {
		e.validateView(&w.Faults, w.Old)
	}
}

const (
	maxEventWord    = 128
	maxEventMessage = 1024
)

func (e *Event) validateNew(f *check.Faults, controller string) {
	if e.ReportingController == "" {
		f.Required(check.At(controller), "")
	}
	f.Format(check.At(controller), e.ReportingController, meta.CheckQualifiedName(e.ReportingController))
	for _, word := range []struct{ name, value string }{
		{"reportingInstance", e.ReportingInstance}, {"action", e.Action}, {"reason", e.Reason},
	} {
		if word.value == "" {
			f.Required(check.At(word.name), "")
		}
		if len(word.value) > maxEventWord {
			f.Invalid(check.At(word.name), "", "can have at most 128 characters")
		}
	}
	if len(e.Message) > maxEventMessage {
		f.Invalid(check.At("message"), "", "can have at most 1024 characters")
	}
}
