package flowcontrol

import (
	"fmt"
	"math"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
)

// PriorityLevelConfiguration is a share of the server's concurrency, with the way to handle requests
// that exceed it.
type PriorityLevelConfiguration struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the configuration of the level.
	Spec PriorityLevelConfigurationSpec `json:"spec,omitempty" protobuf:"2"`
	// Status is the state of the level.
	Status PriorityLevelConfigurationStatus `json:"status,omitempty" protobuf:"3"`
}

// PriorityLevelConfigurationSpec is the configuration of a priority level.
type PriorityLevelConfigurationSpec struct {
	// Type is Limited, or Exempt for requests that are never queued or rejected. The level named exempt,
	// and no other, must be Exempt.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Exempt|Limited"`
	// Limited configures a level of type Limited, and must be set exactly for that type.
	Limited *LimitedPriorityLevelConfiguration `json:"limited,omitempty" protobuf:"2"`
	// Exempt configures the level of type Exempt, and may be set only for that type.
	Exempt *ExemptPriorityLevelConfiguration `json:"exempt,omitempty" protobuf:"3"`
}

// LimitedPriorityLevelConfiguration limits the concurrent requests of a priority level.
type LimitedPriorityLevelConfiguration struct {
	// NominalConcurrencyShares is the level's share of the server's concurrency limit, relative to the
	// shares of the other levels; default 30.
	NominalConcurrencyShares *int32 `json:"nominalConcurrencyShares" protobuf:"1" schema:"optional,default=30,min=0,reason.min=must be a non-negative integer"`
	// LimitResponse decides about requests that exceed the limit.
	LimitResponse LimitResponse `json:"limitResponse,omitempty" protobuf:"2"`
	// LendablePercent is the percentage of the level's seats that other levels may use while they are
	// free; default 0.
	LendablePercent *int32 `json:"lendablePercent,omitempty" protobuf:"3" schema:"default=0,range=0|100"`
	// BorrowingLimitPercent limits the seats that the level may borrow, in percent of its own seats.
	// Unset means no limit.
	BorrowingLimitPercent *int32 `json:"borrowingLimitPercent,omitempty" protobuf:"4" schema:"min=0,reason.min=if specified\\, must be a non-negative integer"`
}

// ExemptPriorityLevelConfiguration reserves seats that the exempt level lends to others. It does not
// limit the exempt level itself.
type ExemptPriorityLevelConfiguration struct {
	// NominalConcurrencyShares is the level's share of the server's concurrency limit, relative to the
	// shares of the other levels; default 0.
	NominalConcurrencyShares *int32 `json:"nominalConcurrencyShares,omitempty" protobuf:"1" schema:"default=0,min=0,reason.min=must be a non-negative integer"`
	// LendablePercent is the percentage of these seats that other levels may use; default 0.
	LendablePercent *int32 `json:"lendablePercent,omitempty" protobuf:"2" schema:"default=0,range=0|100"`
}

// LimitResponse decides about a request when the level has no free seat.
type LimitResponse struct {
	// Type is Queue, to let the request wait, or Reject, to refuse it with status 429.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Queue|Reject"`
	// Queuing configures the queues, and must be set exactly for type Queue.
	Queuing *QueuingConfiguration `json:"queuing,omitempty" protobuf:"2"`
}

// QueuingConfiguration configures shuffle sharding: each flow uses a few of the queues, its hand, so
// that a busy flow rarely fills all queues of another.
type QueuingConfiguration struct {
	// QueueLengthLimit is the largest number of requests in a queue; further requests are rejected.
	// Default 50.
	QueueLengthLimit int32 `json:"queueLengthLimit" protobuf:"3" schema:"optional,min=1,reason.min=must be positive"`
	// Queues is the number of queues: 1 to 10,000,000, default 64.
	Queues int32 `json:"queues" protobuf:"1" schema:"optional,min=1,reason.min=must be positive,max=10000000,reason.max=must not be greater than 10000000"`
	// HandSize is the number of queues that each flow uses: at least 1, at most queues, default 8.
	HandSize int32 `json:"handSize" protobuf:"2" schema:"optional,min=1,reason.min=must be positive"`
}

// PriorityLevelConfigurationStatus is the state of a priority level.
type PriorityLevelConfigurationStatus struct {
	// Conditions of the level, without repeated types.
	Conditions []PriorityLevelConfigurationCondition `json:"conditions,omitempty" protobuf:"1" patchStrategy:"merge" patchMergeKey:"type" schema:"listType=map,listMapKeys=type,repeats"`
}

// PriorityLevelConfigurationCondition is an aspect of a level's state.
type PriorityLevelConfigurationCondition struct {
	// Type identifies the condition.
	Type string `json:"type,omitempty" protobuf:"1" schema:"required,optional"`
	// Status is True, False or Unknown.
	Status string `json:"status,omitempty" protobuf:"2"`
	// LastTransitionTime is the time at which the status last changed.
	LastTransitionTime meta.Time `json:"lastTransitionTime,omitempty" protobuf:"3"`
	// Reason is a CamelCase identifier of the cause, for programs.
	Reason string `json:"reason,omitempty" protobuf:"4"`
	// Message explains the status to people.
	Message string `json:"message,omitempty" protobuf:"5"`
}

// Values of spec.type and spec.limited.limitResponse.type.
const (
	exempt  = "Exempt"
	limited = "Limited"
	queue   = "Queue"
)

func levels() *registry.Kind {
	queuing := []string{"spec", "limited", "limitResponse", "queuing"}
	of := func(field string) []string { return append(queuing[:len(queuing):len(queuing)], field) }
	return registry.Of(registry.Definition[PriorityLevelConfiguration]{
		Group: wellknown.GroupFlowControl, Version: "v1", Scope: registry.Cluster, Status: true,
		Lifetime: registry.Lifetime{Introduced: "1.29"}, Versions: olderLevelVersions(),
		Columns: []registry.Column{
			registry.TextColumn("Type", "Limited or Exempt.", "spec", "type"),
			cell("NominalConcurrencyShares", "The level's share of the concurrency limit.", "spec", "limited", "nominalConcurrencyShares"),
			cell("Queues", "The number of queues.", of("queues")...),
			cell("HandSize", "The number of queues that each flow uses.", of("handSize")...),
			cell("QueueLengthLimit", "The largest number of requests in a queue.", of("queueLengthLimit")...),
			registry.AgeColumn(),
		},
		Behavior:  registry.Behavior{Default: defaultLevel},
		Validate:  validateLevel,
		Reference: reference(),
	})
}

// defaultLevel fills in the queuing parameters that are absent or 0.
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

// validateLevel checks that exactly the field of the type is set, and that the mandatory levels keep
// their configuration. Schema tags check the ranges.
func validateLevel(w *registry.Change[PriorityLevelConfiguration]) {
	s, at, types := &w.New.Spec, check.At("spec"), []string{}
	for _, c := range w.New.Status.Conditions {
		types = append(types, c.Type)
	}
	checkUniqueTypes(&w.Violations, types)
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
		s.Limited.LimitResponse.validate(&w.Violations, at.Field("limited").Field("limitResponse"))
	}
	switch fixed, given := mandatoryLevels()[w.New.Name], *s; {
	case w.New.Name == "exempt":
		if given.Exempt = nil; !check.SemanticEqual(given, fixed) {
			w.Invalid(at, s, "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value")
		}
	case fixed.Type != "" && !check.SemanticEqual(given, fixed):
		w.Invalid(at, s, "spec of '"+w.New.Name+"' must equal the fixed value")
	}
}

// validate checks that the queues are configured exactly for type Queue. The messages name the type
// Limited because kube-apiserver's do.
func (r *LimitResponse) validate(f *check.Violations, at *check.Path) {
	switch at := at.Field("queuing"); {
	case r.Type == queue && r.Queuing == nil:
		f.Required(at, "must not be empty if limited.limitResponse.type is Limited")
	case r.Type == queue:
		r.Queuing.validate(f, at.Field("handSize"))
	case r.Type != "" && r.Queuing != nil:
		f.Forbidden(at, "must be nil if limited.limitResponse.type is not Limited")
	}
}

// validate checks that handSize is at most queues and that a hand can be derived from a 60-bit hash. It
// skips values below 1, which the schema reports.
func (q *QueuingConfiguration) validate(f *check.Violations, at *check.Path) {
	const maxBits = 60
	if q.Queues < 1 || q.HandSize < 1 {
		return
	}
	switch bits := int32(math.Ceil(math.Log2(float64(q.Queues)) * float64(q.HandSize))); {
	case q.HandSize > q.Queues:
		f.Invalid(at, q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues))
	case bits > maxBits:
		f.Invalid(at, q.HandSize, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d", q.Queues, q.HandSize, maxBits))
	}
}
