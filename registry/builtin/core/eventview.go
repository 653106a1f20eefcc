package core

import (
	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// EventView is an Event in the events group.
type EventView struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata" protobuf:"1"`

	// EventTime is the time of the first observation. Required.
	EventTime meta.MicroTime `json:"eventTime" protobuf:"2"`

	// Series describes a recurring event. Unset for a single occurrence.
	Series *EventViewSeries `json:"series,omitempty" protobuf:"3"`

	// ReportingController is the name of the reporting controller, such as example.com/scheduler.
	ReportingController string `json:"reportingController,omitempty" protobuf:"4"`

	// ReportingInstance is the instance of that controller, in at most 128 bytes.
	ReportingInstance string `json:"reportingInstance,omitempty" protobuf:"5"`

	// Action that was taken or failed, in at most 128 bytes.
	Action string `json:"action,omitempty" protobuf:"6"`

	// Reason is a CamelCase identifier of the cause, for programs, in at most 128 bytes.
	Reason string `json:"reason,omitempty" protobuf:"7"`

	// Regarding is the object that the event is about, usually the object that the controller
	// reconciles.
	Regarding ObjectReference `json:"regarding,omitempty" protobuf:"8"`

	// Related is a second object that is involved.
	Related *ObjectReference `json:"related,omitempty" protobuf:"9"`

	// Note explains the event to people, in at most 1024 bytes.
	Note string `json:"note,omitempty" protobuf:"10"`

	// Type is Normal or Warning.
	Type string `json:"type,omitempty" protobuf:"11"`

	// DeprecatedSource is the source of an event of the core group.
	DeprecatedSource EventSource `json:"deprecatedSource,omitempty" protobuf:"12"`

	// DeprecatedFirstTimestamp is the firstTimestamp of an event of the core group.
	DeprecatedFirstTimestamp meta.Time `json:"deprecatedFirstTimestamp,omitempty" protobuf:"13"`

	// DeprecatedLastTimestamp is the lastTimestamp of an event of the core group.
	DeprecatedLastTimestamp meta.Time `json:"deprecatedLastTimestamp,omitempty" protobuf:"14"`

	// DeprecatedCount is the count of an event of the core group.
	DeprecatedCount int32 `json:"deprecatedCount,omitempty" protobuf:"15"`
}

// EventViewSeries describes a recurring event.
type EventViewSeries struct {
	// Count is the number of occurrences up to the last observation; at least 2.
	Count int32 `json:"count" protobuf:"1"`

	// LastObservedTime is the time of the last occurrence.
	LastObservedTime meta.MicroTime `json:"lastObservedTime" protobuf:"2"`
}

func eventViews() []registry.VersionOf[Event] {
	v1, v1beta1 := eventView("v1"), eventView("v1beta1")
	v1.Lifetime = registry.Lifetime{Introduced: "1.19"}
	v1beta1.Lifetime = registry.Lifetime{Introduced: "1.8", Deprecated: "1.22", Removed: "1.25"}
	return []registry.VersionOf[Event]{v1, v1beta1}
}

func eventView(version string) registry.Spoke[EventView, Event] {
	return registry.Spoke[EventView, Event]{
		Group: wellknown.GroupEvents, Version: version, ToHub: (*EventView).event, FromHub: (*Event).view,
		Fields: map[string]string{
			"regarding.kind":            "involvedObject.kind",
			"regarding.namespace":       "involvedObject.namespace",
			"regarding.name":            "involvedObject.name",
			"regarding.uid":             "involvedObject.uid",
			"regarding.apiVersion":      "involvedObject.apiVersion",
			"regarding.resourceVersion": "involvedObject.resourceVersion",
			"regarding.fieldPath":       "involvedObject.fieldPath",
			"reason":                    "reason",
			"reportingController":       "reportingComponent",
			"type":                      "type",
		},
	}
}

func (in *EventView) event(out *Event) error {
	out.InvolvedObject, out.Related, out.Reason, out.Message = in.Regarding, in.Related, in.Reason, in.Note
	out.Source, out.FirstTimestamp, out.LastTimestamp, out.Count = in.DeprecatedSource, in.DeprecatedFirstTimestamp, in.DeprecatedLastTimestamp, in.DeprecatedCount
	out.Type, out.EventTime, out.Action = in.Type, in.EventTime, in.Action
	out.ReportingController, out.ReportingInstance = in.ReportingController, in.ReportingInstance
	if s := in.Series; s != nil {
		out.Series = &EventSeries{s.Count, s.LastObservedTime}
	}
	return nil
}

func (in *Event) view(out *EventView) error {
	out.Regarding, out.Related, out.Reason, out.Note = in.InvolvedObject, in.Related, in.Reason, in.Message
	out.DeprecatedSource, out.DeprecatedFirstTimestamp, out.DeprecatedLastTimestamp, out.DeprecatedCount = in.Source, in.FirstTimestamp, in.LastTimestamp, in.Count
	out.Type, out.EventTime, out.Action = in.Type, in.EventTime, in.Action
	out.ReportingController, out.ReportingInstance = in.ReportingController, in.ReportingInstance
	if s := in.Series; s != nil {
		out.Series = &EventViewSeries{s.Count, s.LastObservedTime}
	}
	return nil
}

// validateView checks a write through version v1 of the events group, in addition to the rules of all
// groups: a new event has none of the deprecated fields, and of an existing event only the series can
// change. An unchanged series may violate the rules, because the core group does not have them.
func (e *Event) validateView(f *check.Violations, old *Event) {
	if s := e.Series; s != nil && (old == nil || !check.SemanticEqual(s, old.Series)) {
		if s.Count < 2 {
			f.Invalid(check.At("series", "count"), "", "should be at least 2")
		}
		if s.LastObservedTime.IsZero() {
			f.Required(check.At("series", "lastObservedTime"), "")
		}
	}
	if old != nil {
		e.validateUnchanged(f, old)
		return
	}
	// version v1 requires the name of a new event to be a DNS subdomain
	if e.GenerateName != "" {
		f.Format(check.At("metadata", "generateName"), e.GenerateName, meta.NameChecker(meta.CheckDNSSubdomain)(e.GenerateName, true))
	}
	f.Format(check.At("metadata", "name"), e.Name, meta.CheckDNSSubdomain(e.Name))
	if e.EventTime.IsZero() {
		f.Required(check.At("eventTime"), "")
	}
	if e.Type != "Normal" && e.Type != "Warning" {
		f.Invalid(check.At("type"), "", "has invalid value: "+e.Type)
	}
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"firstTimestamp", !e.FirstTimestamp.IsZero()}, {"lastTimestamp", !e.LastTimestamp.IsZero()},
		{"count", e.Count != 0}, {"source", e.Source != EventSource{}},
	} {
		if field.set {
			f.Invalid(check.At(field.name), "", "needs to be unset")
		}
	}
}

func (e *Event) validateUnchanged(f *check.Violations, old *Event) {
	for _, field := range []struct {
		name     string
		new, old any
	}{
		{"involvedObject", e.InvolvedObject, old.InvolvedObject},
		{"reason", e.Reason, old.Reason},
		{"message", e.Message, old.Message},
		{"source", e.Source, old.Source},
		{"firstTimestamp", e.FirstTimestamp, old.FirstTimestamp},
		{"lastTimestamp", e.LastTimestamp, old.LastTimestamp},
		{"count", e.Count, old.Count},
		{"reason", e.Reason, old.Reason}, // repeated, as at kube-apiserver
		{"type", e.Type, old.Type},
		{"eventTime", e.EventTime, old.EventTime},
		{"action", e.Action, old.Action},
		{"related", e.Related, old.Related},
		{"reportingController", e.ReportingController, old.ReportingController},
		{"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		f.Unchanged(check.At(field.name), field.new, field.old)
	}
}
