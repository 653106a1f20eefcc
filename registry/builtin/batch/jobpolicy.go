package batch

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/builtin/core"
)

// PodFailurePolicy says what failed pods mean for a job.
type PodFailurePolicy struct {
	// Rules are asked in order; the first that fits a failed pod decides. A pod that
	// none fits counts against backoffLimit.
	Rules []PodFailurePolicyRule `json:"rules" protobuf:"1" schema:"listType=atomic,maxItems=20"`
}

// PodFailurePolicyRule says what becomes of a job when pods fail in one way: by exit
// codes or by conditions, one of which is set.
type PodFailurePolicyRule struct {
	// Action is FailJob, FailIndex (the pod's index alone; needs backoffLimitPerIndex),
	// Ignore (a new pod, nothing is counted) or Count (as without a rule).
	Action string `json:"action" protobuf:"1" schema:"required,reason.required=valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"],enum=Count|FailIndex|FailJob|Ignore"`

	// OnExitCodes fits pods by how their containers ended.
	OnExitCodes *PodFailurePolicyOnExitCodesRequirement `json:"onExitCodes,omitempty" protobuf:"2"`

	// OnPodConditions fits pods that have one of these conditions.
	OnPodConditions []PodFailurePolicyOnPodConditionsPattern `json:"onPodConditions,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=20"`
}

// PodFailurePolicyOnExitCodesRequirement fits exit codes of containers.
type PodFailurePolicyOnExitCodesRequirement struct {
	// ContainerName is the one container whose code counts; unset: any.
	ContainerName *string `json:"containerName,omitempty" protobuf:"1"`

	// Operator is In or NotIn. A code of 0 never fits.
	Operator string `json:"operator" protobuf:"2" schema:"required,reason.required=valid values: [\"In\" \"NotIn\"],enum=In|NotIn"`

	// Values are the codes, in rising order; at least one, at most 255.
	Values []int32 `json:"values" protobuf:"3" schema:"listType=set,maxItems=255"`
}

// PodFailurePolicyOnPodConditionsPattern fits a condition of a pod.
type PodFailurePolicyOnPodConditionsPattern struct {
	// Type of the condition.
	Type string `json:"type" protobuf:"1" schema:"format=qualified-name"`

	// Status of the condition: True, by default, False or Unknown.
	Status string `json:"status" protobuf:"2" schema:"optional,default=True,enum=False|True|Unknown"`
}

// SuccessPolicy says when an Indexed job has succeeded before all indexes have.
type SuccessPolicy struct {
	// Rules of which one must hold. Then the pods that still run are ended.
	Rules []SuccessPolicyRule `json:"rules" protobuf:"1" schema:"listType=atomic,maxItems=20"`
}

// SuccessPolicyRule holds when enough of some indexes have succeeded.
type SuccessPolicyRule struct {
	// SucceededIndexes are the indexes that count, as numbers and ranges in rising
	// order: 0,3-5. Unset: all.
	SucceededIndexes *string `json:"succeededIndexes,omitempty" protobuf:"1"`

	// SucceededCount is how many of them must have succeeded; unset: all.
	SucceededCount *int32 `json:"succeededCount,omitempty" protobuf:"2" schema:"min=0"`
}

// maxIndexes bounds the text of a list of indexes, in bytes.
const maxIndexes = 64 << 10

func (p *PodFailurePolicy) validate(f *check.Faults, at *check.Path, s *JobSpec) {
	for i := range p.Rules {
		at, r := at.Field("rules").Index(i), &p.Rules[i]
		if r.Action == "FailIndex" && s.BackoffLimitPerIndex == nil {
			f.Invalid(at.Field("action"), r.Action, "requires the backoffLimitPerIndex to be set")
		}
		if r.OnExitCodes != nil {
			r.OnExitCodes.validate(f, at.Field("onExitCodes"), &s.Template.Spec)
		}
		switch {
		case r.OnExitCodes != nil && len(r.OnPodConditions) > 0:
			broken(f, at, "specifying both OnExitCodes and OnPodConditions is not supported")
		case r.OnExitCodes == nil && len(r.OnPodConditions) == 0:
			broken(f, at, "specifying one of OnExitCodes and OnPodConditions is required")
		}
	}
}

func (r *PodFailurePolicyOnExitCodesRequirement) validate(f *check.Faults, at *check.Path, pod *core.PodSpec) {
	if name := r.ContainerName; name != nil {
		named := func(c core.Container) bool { return c.Name == *name }
		if !slices.ContainsFunc(pod.Containers, named) && !slices.ContainsFunc(pod.InitContainers, named) {
			f.Invalid(at.Field("containerName"), *name, "must be one of the container or initContainer names in the pod template")
		}
	}
	at = at.Field("values")
	if len(r.Values) == 0 {
		f.Invalid(at, r.Values, "at least one value is required")
		return
	}
	for i, code := range r.Values {
		if code == 0 && r.Operator == "In" {
			f.Invalid(at.Index(i), code, "must not be 0 for the In operator")
		}
	}
	if !slices.IsSorted(r.Values) {
		f.Invalid(at, r.Values, "must be ordered")
	}
}

func (p *SuccessPolicy) validate(f *check.Faults, at *check.Path, s *JobSpec) {
	if !s.isIndexed() {
		f.Invalid(at, p, "requires indexed completion mode")
		return
	}
	if at = at.Field("rules"); len(p.Rules) == 0 {
		f.Required(at, "at least one rules must be specified when the successPolicy is specified")
	}
	if s.Completions == nil {
		return // which is told already
	}
	for i := range p.Rules {
		p.Rules[i].validate(f, at.Index(i), *s.Completions)
	}
}

func (r *SuccessPolicyRule) validate(f *check.Faults, at *check.Path, completions int32) {
	if r.SucceededCount == nil && r.SucceededIndexes == nil {
		f.Required(at, "at least one of succeededCount or succeededIndexes must be specified")
		return
	}
	most, of := completions, "the number of specified completions"
	if text := r.SucceededIndexes; text != nil {
		at := at.Field("succeededIndexes")
		if len(*text) > maxIndexes {
			f.TooLong(at, maxIndexes)
		}
		list, err := parseIndexes(*text, completions)
		if err != nil {
			f.Invalid(at, *text, "error parsing succeededIndexes: "+err.Error())
		} else if r.SucceededCount != nil && *r.SucceededCount <= completions {
			most, of = list.count(), "the number of indexes in the specified succeededIndexes field"
		}
	}
	if n := r.SucceededCount; n != nil && *n > most {
		f.Invalid(at.Field("succeededCount"), *n, fmt.Sprintf("must be less than or equal to %d (%s)", most, of))
	}
}

// broken says that what is at a path breaks a rule that is not about one value.
func broken(f *check.Faults, at *check.Path, why string) {
	*f = append(*f, meta.Cause{Reason: meta.CauseInvalid, Field: at.String(), Message: "Invalid value: " + why})
}
