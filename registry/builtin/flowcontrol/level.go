package flowcontrol

import (
	"fmt"
	"math"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
)

// PriorityLevelConfiguration is a part of the server's seats, and what happens to
// requests for which none is free.
type PriorityLevelConfiguration struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is what the level has.
	Spec PriorityLevelConfigurationSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is what the server makes of it.
	Status PriorityLevelConfigurationStatus `json:"status,omitempty" protobuf:"3"`
}

// PriorityLevelConfigurationSpec is what a level has.
type PriorityLevelConfigurationSpec struct {
	// Type is Limited, or Exempt for the level whose requests never wait.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Exempt|Limited"`
	// Limited are the bounds of a level of that type.
	Limited *LimitedPriorityLevelConfiguration `json:"limited,omitempty" protobuf:"2"`
	// Exempt are the seats that the exempt level lends to others.
	Exempt *ExemptPriorityLevelConfiguration `json:"exempt,omitempty" protobuf:"3"`
}

// LimitedPriorityLevelConfiguration are the bounds of a level.
type LimitedPriorityLevelConfiguration struct {
	// NominalConcurrencyShares are the level's part of the server's seats, in proportion to those of the other levels; 30 by default.
	NominalConcurrencyShares *int32 `json:"nominalConcurrencyShares" protobuf:"1" schema:"optional,default=30,min=0,reason.min=must be a non-negative integer"`
	// LimitResponse says what happens to a request that finds no free seat.
	LimitResponse LimitResponse `json:"limitResponse,omitempty" protobuf:"2"`
	// LendablePercent of its seats may be used by other levels while they are free; none by default.
	LendablePercent *int32 `json:"lendablePercent,omitempty" protobuf:"3" schema:"default=0,range=0|100"`
	// BorrowingLimitPercent bounds the seats of other levels that the level may use, in percent of its own; unset: no bound.
	BorrowingLimitPercent *int32 `json:"borrowingLimitPercent,omitempty" protobuf:"4" schema:"min=0,reason.min=if specified\\, must be a non-negative integer"`
}

// ExemptPriorityLevelConfiguration are seats that the exempt level does not need.
type ExemptPriorityLevelConfiguration struct {
	// NominalConcurrencyShares are the level's part of the server's seats; none by default.
	NominalConcurrencyShares *int32 `json:"nominalConcurrencyShares,omitempty" protobuf:"1" schema:"default=0,min=0,reason.min=must be a non-negative integer"`
	// LendablePercent of these seats may be used by other levels; none by default.
	LendablePercent *int32 `json:"lendablePercent,omitempty" protobuf:"2" schema:"default=0,range=0|100"`
}

// LimitResponse says what happens to a request that finds no free seat.
type LimitResponse struct {
	// Type is Queue, the request waits, or Reject, it is refused with 429.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Queue|Reject"`
	// Queuing says how requests wait.
	Queuing *QueuingConfiguration `json:"queuing,omitempty" protobuf:"2"`
}

// QueuingConfiguration says how requests wait. Each flow has a few of the queues, its hand, so that
// it rarely shares all of them with another.
type QueuingConfiguration struct {
	// QueueLengthLimit is how many requests wait in one queue at most; 50 by default. Further ones are refused.
	QueueLengthLimit int32 `json:"queueLengthLimit" protobuf:"3" schema:"optional,min=1,reason.min=must be positive"`
	// Queues of the level; 64 by default.
	Queues int32 `json:"queues" protobuf:"1" schema:"optional,min=1,reason.min=must be positive,max=10000000,reason.max=must not be greater than 10000000"`
	// HandSize is how many of the queues a flow has; 8 by default.
	HandSize int32 `json:"handSize" protobuf:"2" schema:"optional,min=1,reason.min=must be positive"`
}

// PriorityLevelConfigurationStatus is what the server makes of a level.
type PriorityLevelConfigurationStatus struct {
	// Conditions of the level.
	Conditions []PriorityLevelConfigurationCondition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// PriorityLevelConfigurationCondition is one aspect of a level's state.
type PriorityLevelConfigurationCondition struct {
	// Type names the aspect.
	Type string `json:"type,omitempty" protobuf:"1" schema:"required,optional"`
	// Status is True, False or Unknown.
	Status string `json:"status,omitempty" protobuf:"2"`
	// LastTransitionTime is when the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`
	// Reason is a word for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`
	// Message is a text for people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

// The words of levels that code knows.
const (
	exempt  = "Exempt"
	limited = "Limited"
	queue   = "Queue"
)

func levels() *registry.Kind {
	queuing := []string{"spec", "limited", "limitResponse", "queuing"}
	of := func(field string) []string { return append(queuing[:len(queuing):len(queuing)], field) }
	return registry.Of(registry.Definition[PriorityLevelConfiguration]{
		Group: names.GroupFlowControl, Version: "v1", Scope: registry.Cluster, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.29"}, Versions: formerLevels(),
		Columns: []registry.Column{
			registry.Text("Type", "Whether requests are bounded.", "spec", "type"),
			cell("NominalConcurrencyShares", "The level's part of the seats.", "spec", "limited", "nominalConcurrencyShares"),
			cell("Queues", "How many queues there are.", of("queues")...),
			cell("HandSize", "How many of them a flow has.", of("handSize")...),
			cell("QueueLengthLimit", "How many requests wait in one.", of("queueLengthLimit")...),
			registry.Age(),
		},
		Behavior:  registry.Behavior{Default: defaultLevel},
		Validate:  validateLevel,
		Reference: reference(),
	})
}

func defaultLevel(w *registry.Change[meta.Object]) {
	q := w.New.Map("spec", "limited", "limitResponse", "queuing")
	if q == nil {
		return
	}
	const queues, hand, length = int64(64), int64(8), int64(50)
	for _, d := range []struct {
		field string
		value int64
	}{{"queues", queues}, {"handSize", hand}, {"queueLengthLimit", length}} {
		if v, there := q[d.field]; !there || v == int64(0) {
			q[d.field] = d.value
		}
	}
}

// validateLevel keeps to the fields of the type, and the two levels without which no server works.
func validateLevel(w *registry.Change[PriorityLevelConfiguration]) {
	s, at, types := &w.New.Spec, check.At("spec"), []string{}
	for _, c := range w.New.Status.Conditions {
		types = append(types, c.Type)
	}
	once(&w.Faults, types)
	if (s.Type == exempt || s.Type == limited) && (s.Type == exempt) != (w.New.Name == "exempt") {
		w.Invalid(at.Field("type"), s.Type, "must be 'Exempt' if and only if `name` is 'exempt'")
	}
	if s.Type != limited && s.Limited != nil {
		w.Forbidden(at.Field("limited"), "must be nil if the type is not Limited")
	}
	if s.Type != exempt && s.Exempt != nil {
		w.Forbidden(at.Field("exempt"), "must be nil if the type is not Exempt")
	}
	if s.Type == limited && s.Limited == nil {
		w.Required(at.Field("limited"), "must not be empty when type is Limited")
	}
	if s.Type == limited && s.Limited != nil {
		s.Limited.LimitResponse.validate(&w.Faults, at.Field("limited").Field("limitResponse"))
	}
	switch fixed, given := mandatoryLevels()[w.New.Name], *s; {
	case w.New.Name == "exempt":
		if given.Exempt = nil; !check.Same(given, fixed) {
			w.Invalid(at, s, "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value")
		}
	case fixed.Type != "" && !check.Same(given, fixed):
		w.Invalid(at, s, "spec of '"+w.New.Name+"' must equal the fixed value")
	}
}

func (r *LimitResponse) validate(f *check.Faults, at *check.Path) {
	switch at := at.Field("queuing"); {
	case r.Type == queue && r.Queuing == nil:
		f.Required(at, "must not be empty if limited.limitResponse.type is Limited")
	case r.Type == queue:
		r.Queuing.validate(f, at.Field("handSize"))
	case r.Type != "" && r.Queuing != nil:
		f.Forbidden(at, "must be nil if limited.limitResponse.type is not Limited")
	}
}

// validate checks that a hand can be dealt: it is found by a hash of so many bits.
func (q *QueuingConfiguration) validate(f *check.Faults, at *check.Path) {
	const most = 60
	if q.Queues < 1 || q.HandSize < 1 {
		return
	}
	switch bits := int32(math.Ceil(math.Log2(float64(q.Queues)) * float64(q.HandSize))); {
	case q.HandSize > q.Queues:
		f.Invalid(at, q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues))
	case bits > most:
		f.Invalid(at, q.HandSize, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, most))
	}
}
