package flowcontrol

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/api/names"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// PriorityLevelConfigurationV1beta2 is a level as versions v1beta1 and v1beta2 show it:
// its part of the seats has another name.
type PriorityLevelConfigurationV1beta2 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is how many requests run at a time and what the others do.
	Spec PriorityLevelConfigurationSpecV1beta2 `json:"spec,omitempty" protobuf:"2"`
	// Status is what is wrong with it.
	Status PriorityLevelConfigurationStatus `json:"status,omitempty" protobuf:"3"`
}

// PriorityLevelConfigurationSpecV1beta2 is how many requests run at a time and what the
// others do.
type PriorityLevelConfigurationSpecV1beta2 struct {
	// Type is Limited, or Exempt for requests that are never held up.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Exempt|Limited"`
	// Limited is for that type.
	Limited *LimitedPriorityLevelConfigurationV1beta2 `json:"limited,omitempty" protobuf:"2"`
	// Exempt is for that type.
	Exempt *ExemptPriorityLevelConfiguration `json:"exempt,omitempty" protobuf:"3"`
}

// LimitedPriorityLevelConfigurationV1beta2 bounds the requests of a level.
type LimitedPriorityLevelConfigurationV1beta2 struct {
	// AssuredConcurrencyShares is the level's part of the seats; 30 by default.
	AssuredConcurrencyShares int32 `json:"assuredConcurrencyShares" protobuf:"1" schema:"optional,min=0,reason.min=must be a non-negative integer"`
	// LimitResponse is what becomes of requests that cannot run at once.
	LimitResponse LimitResponse `json:"limitResponse,omitempty" protobuf:"2"`
	// LendablePercent is how much of its seats others may have.
	LendablePercent *int32 `json:"lendablePercent,omitempty" protobuf:"3" schema:"default=0,range=0|100"`
	// BorrowingLimitPercent is how many seats of others it may have; unset: any.
	BorrowingLimitPercent *int32 `json:"borrowingLimitPercent,omitempty" protobuf:"4" schema:"min=0,reason.min=if specified\\, must be a non-negative integer"`
}

const usualShares = 30

func formerLevels() []registry.VersionOf[PriorityLevelConfiguration] {
	type level = PriorityLevelConfiguration
	of := func(version, introduced, deprecated, removed, use string) registry.VersionOf[level] {
		return registry.Spoke[PriorityLevelConfigurationV1beta2, level]{
			Version: version, ToHub: (*PriorityLevelConfigurationV1beta2).hub, FromHub: (*level).v1beta2,
			Lifetime:    registry.Lifetime{Introduced: introduced, Deprecated: deprecated, Removed: removed},
			Replacement: older.Use[level](names.GroupFlowControl + "/" + use),
			Default: func(w *registry.Change[PriorityLevelConfigurationV1beta2]) {
				if l := w.New.Spec.Limited; l != nil && l.AssuredConcurrencyShares == 0 {
					l.AssuredConcurrencyShares = usualShares
				}
			},
		}
	}
	last := older.Same[level]("v1beta3", "1.26", "1.29", "1.32", names.GroupFlowControl+"/v1")
	last.Default = func(w *registry.Change[level]) { // which has no pointer there
		if l := w.New.Spec.Limited; l != nil && l.NominalConcurrencyShares != nil && *l.NominalConcurrencyShares == 0 {
			*l.NominalConcurrencyShares = usualShares
		}
	}
	return []registry.VersionOf[level]{of("v1beta1", "1.20", "1.23", "1.26", "v1beta2"), of("v1beta2", "1.23", "1.26", "1.29", "v1beta3"), last}
}

func (in *PriorityLevelConfigurationV1beta2) hub(out *PriorityLevelConfiguration) error {
	out.Status = in.Status
	out.Spec = PriorityLevelConfigurationSpec{Type: in.Spec.Type, Exempt: in.Spec.Exempt}
	if l := in.Spec.Limited; l != nil {
		shares := l.AssuredConcurrencyShares
		out.Spec.Limited = &LimitedPriorityLevelConfiguration{&shares, l.LimitResponse, l.LendablePercent, l.BorrowingLimitPercent}
	}
	return nil
}

func (in *PriorityLevelConfiguration) v1beta2(out *PriorityLevelConfigurationV1beta2) error {
	out.Status = in.Status
	out.Spec = PriorityLevelConfigurationSpecV1beta2{Type: in.Spec.Type, Exempt: in.Spec.Exempt}
	if l := in.Spec.Limited; l != nil {
		out.Spec.Limited = &LimitedPriorityLevelConfigurationV1beta2{0, l.LimitResponse, l.LendablePercent, l.BorrowingLimitPercent}
		if l.NominalConcurrencyShares != nil {
			out.Spec.Limited.AssuredConcurrencyShares = *l.NominalConcurrencyShares
		}
	}
	return nil
}
