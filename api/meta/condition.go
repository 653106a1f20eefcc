package meta

import (
	"slices"
	"time"
)

// Condition describes one aspect of an object's state, in the format that most kinds
// share.
type Condition struct {
	// Type names the aspect, in CamelCase or as domain/CamelCase.
	Type string `json:"type" protobuf:"bytes,1,opt,name=type" schema:"required"`

	// Status is True, False or Unknown.
	Status string `json:"status" protobuf:"bytes,2,opt,name=status" schema:"required"`

	// ObservedGeneration is the generation of the object that the condition describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty" protobuf:"varint,3,opt,name=observedGeneration"`

	// LastTransitionTime is when the status last changed.
	LastTransitionTime Time `json:"lastTransitionTime" protobuf:"bytes,4,opt,name=lastTransitionTime" schema:"required"`

	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason" protobuf:"bytes,5,opt,name=reason" schema:"required"`

	// Message is a text for people.
	Message string `json:"message" protobuf:"bytes,6,opt,name=message" schema:"required"`
}

// HasCondition reports whether status.conditions has a condition of the type with status True.
func (o *Object) HasCondition(kind string) bool {
	return slices.ContainsFunc(o.List("status", "conditions"), func(v any) bool {
		m, _ := v.(map[string]any)
		return m["type"] == kind && m["status"] == "True"
	})
}

// SetCondition adds a condition to status.conditions, or replaces the condition of the same
// type. lastTransitionTime is the current time, or the previous value if the status does not
// change. The list is replaced, so that copies of the object that share it do not change.
func (o *Object) SetCondition(kind, status, reason, message string) {
	c := map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": FormatTime(time.Now())}
	list := slices.Clone(o.List("status", "conditions"))
	i := slices.IndexFunc(list, func(v any) bool { m, _ := v.(map[string]any); return m["type"] == kind })
	if i < 0 {
		o.Set(append(list, c), "status", "conditions")
		return
	}
	if old, _ := list[i].(map[string]any); old["status"] == status {
		c["lastTransitionTime"] = old["lastTransitionTime"]
	}
	list[i] = c
	o.Set(list, "status", "conditions")
}
