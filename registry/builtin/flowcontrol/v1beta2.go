package flowcontrol

import (
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/internal/wellknown"
	"orch.io/controlplane/registry"
	"orch.io/controlplane/registry/builtin/internal/older"
)

// PriorityLevelConfigurationV1beta2 is a priority level in versions v1beta1 and v1beta2, which call the
// concurrency shares assuredConcurrencyShares.
type PriorityLevelConfigurationV1beta2 struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata,omitempty" protobuf:"1"`

	// Spec is the configuration of the level.
	Spec PriorityLevelConfigurationSpecV1beta2 `json:"spec,omitempty" protobuf:"2"`
	// Status is the state of the level.
	Status PriorityLevelConfigurationStatus `json:"status,omitempty" protobuf:"3"`
}

// PriorityLevelConfigurationSpecV1beta2 is the configuration of a priority level.
type PriorityLevelConfigurationSpecV1beta2 struct {
	// Type is Limited, or Exempt for requests that are never queued or rejected.
	Type string `json:"type" protobuf:"1" schema:"required,enum=Exempt|Limited"`
	// Limited configures a level of type Limited, and must be set exactly for that type.
	Limited *LimitedPriorityLevelConfigurationV1beta2 `json:"limited,omitempty" protobuf:"2"`
	// Exempt configures the level of type Exempt, and may be set only for that type.
	Exempt *ExemptPriorityLevelConfiguration `json:"exempt,omitempty" protobuf:"3"`
}

// LimitedPriorityLevelConfigurationV1beta2 limits the concurrent requests of a priority level.
type LimitedPriorityLevelConfigurationV1beta2 struct {
	// AssuredConcurrencyShares is the level's share of the server's concurrency limit, relative to the
	// shares of the other levels; default 30.
	AssuredConcurrencyShares int32 `json:"assuredConcurrencyShares" protobuf:"1" schema:"optional,min=0,reason.min=must be a non-negative integer"`
	// LimitResponse decides about requests that exceed the limit.
	LimitResponse LimitResponse `json:"limitResponse,omitempty" protobuf:"2"`
	// LendablePercent is the percentage of the level's seats that other levels may use while they are
	// free; default 0.
	LendablePercent *int32 `json:"lendablePercent,omitempty" protobuf:"3" schema:"default=0,range=0|100"`
	// BorrowingLimitPercent limits the seats that the level may borrow, in percent of its own seats.
	// Unset means no limit.
	BorrowingLimitPercent *int32 `json:"borrowingLimitPercent,omitempty" protobuf:"4" schema:"min=0,reason.min=if specified\\, must be a non-negative integer"`
}

// defaultShares is the default of nominalConcurrencyShares of a Limited level.
const defaultShares = 30

// olderLevelVersions returns the beta versions of PriorityLevelConfiguration. In all of them 0 shares
// mean the default, because the field has no pointer there; in v1 only an absent field does.
func olderLevelVersions() []registry.VersionOf[PriorityLevelConfiguration] {
	type level = PriorityLevelConfiguration
	of := func(version, introduced, deprecated, removed, use string) registry.VersionOf[level] {
		return registry.Spoke[PriorityLevelConfigurationV1beta2, level]{
			Version: version, ToHub: (*PriorityLevelConfigurationV1beta2).hub, FromHub: (*level).v1beta2,
			Lifetime:    registry.Lifetime{Introduced: introduced, Deprecated: deprecated, Removed: removed},
			Replacement: older.Use[level](wellknown.GroupFlowControl + "/" + use),
			Default: func(w *registry.Change[PriorityLevelConfigurationV1beta2]) {
				if l := w.New.Spec.Limited; l != nil && l.AssuredConcurrencyShares == 0 {
					l.AssuredConcurrencyShares = defaultShares
				}
			},
		}
	}
	last := older.Same[level]("v1beta3", "1.26", "1.29", "1.32", wellknown.GroupFlowControl+"/v1")
	last.Default = func(w *registry.Change[level]) { // 0 is the default here, unlike in v1
		if l := w.New.Spec.Limited; l != nil && l.NominalConcurrencyShares != nil && *l.NominalConcurrencyShares == 0 {
			*l.NominalConcurrencyShares = defaultShares
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
