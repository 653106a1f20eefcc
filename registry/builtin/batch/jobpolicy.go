package batch

import (
	"fmt"
	"slices"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/meta"
	"orch.io/controlplane/registry/builtin/core"
)

// PodFailurePolicy decides about failed pods.
type PodFailurePolicy struct {
	// Rules are evaluated in order; the first that matches a failed pod applies. A pod that matches
	// none counts towards backoffLimit. At most 20.
	Rules []PodFailurePolicyRule `json:"rules" protobuf:"1" schema:"listType=atomic,maxItems=20"`
}

// PodFailurePolicyRule selects failed pods and decides about them. Exactly one of onExitCodes and
// onPodConditions must be set.
type PodFailurePolicyRule struct {
	// Action is FailJob, which fails the Job, FailIndex, which fails the index of the pod and requires
	// backoffLimitPerIndex, Ignore, which replaces the pod without counting it, or Count, which counts
	// it towards backoffLimit.
	Action string `json:"action" protobuf:"1" schema:"required,reason.required=valid values: [\"Count\" \"FailIndex\" \"FailJob\" \"Ignore\"],enum=Count|FailIndex|FailJob|Ignore"`

	// OnExitCodes matches the exit codes of containers.
	OnExitCodes *PodFailurePolicyOnExitCodesRequirement `json:"onExitCodes,omitempty" protobuf:"2"`

	// OnPodConditions matches conditions of the pod; any of them suffices. At most 20.
	OnPodConditions []PodFailurePolicyOnPodConditionsPattern `json:"onPodConditions,omitempty" protobuf:"3" schema:"listType=atomic,maxItems=20"`
}

// PodFailurePolicyOnExitCodesRequirement matches exit codes.
type PodFailurePolicyOnExitCodesRequirement struct {
	// ContainerName restricts the match to a container of the template. Unset means all containers.
	ContainerName *string `json:"containerName,omitempty" protobuf:"1"`

	// Operator is In or NotIn. Exit code 0 never matches.
	Operator string `json:"operator" protobuf:"2" schema:"required,reason.required=valid values: [\"In\" \"NotIn\"],enum=In|NotIn"`

	// Values are exit codes in ascending order, without duplicates: 1 to 255 entries. With In, 0 is not
	// allowed.
	Values []int32 `json:"values" protobuf:"3" schema:"listType=set,maxItems=255"`
}

// PodFailurePolicyOnPodConditionsPattern matches a condition of a pod.
type PodFailurePolicyOnPodConditionsPattern struct {
	// Type of the condition.
	Type string `json:"type" protobuf:"1" schema:"format=qualified-name"`

	// Status of the condition: True (default), False or Unknown.
	Status string `json:"status" protobuf:"2" schema:"optional,default=True,enum=False|True|Unknown"`
}

// SuccessPolicy declares an Indexed Job successful before all indexes have succeeded.
type SuccessPolicy struct {
	// Rules each suffice to make the Job successful. Pods that are still running are then deleted. At
	// most 20.
	Rules []SuccessPolicyRule `json:"rules" protobuf:"1" schema:"listType=atomic,maxItems=20"`
}

// SuccessPolicyRule requires successful indexes. At least one field must be set.
type SuccessPolicyRule struct {
	// SucceededIndexes are the indexes to consider, such as "0,3-5", in ascending order. Unset means
	// all.
	SucceededIndexes *string `json:"succeededIndexes,omitempty" protobuf:"1"`

	// SucceededCount is the number of these indexes that must have succeeded. Unset means all of them.
	SucceededCount *int32 `json:"succeededCount,omitempty" protobuf:"2" schema:"min=0"`
}

// maxIndexesBytes limits the length of a list of indexes.
const maxIndexesBytes = 64 << 10

// validate checks the rules in relation to the Job. The schema checks the single values.
func (p *PodFailurePolicy) validate(f *check.Violations, at *check.Path, s *JobSpec) {
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
			addViolation(f, at, "specifying both OnExitCodes and OnPodConditions is not supported")
		case r.OnExitCodes == nil && len(r.OnPodConditions) == 0:
			addViolation(f, at, "specifying one of OnExitCodes and OnPodConditions is required")
		}
	}
}

func (r *PodFailurePolicyOnExitCodesRequirement) validate(f *check.Violations, at *check.Path, pod *core.PodSpec) {
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

func (p *SuccessPolicy) validate(f *check.Violations, at *check.Path, s *JobSpec) {
	if !s.isIndexed() {
		f.Invalid(at, p, "requires indexed completion mode")
		return
	}
	if at = at.Field("rules"); len(p.Rules) == 0 {
		f.Required(at, "at least one rules must be specified when the successPolicy is specified")
	}
	if s.Completions == nil {
		return // validateJob reports the missing completions
	}
	for i := range p.Rules {
		p.Rules[i].validate(f, at.Index(i), *s.Completions)
	}
}

func (r *SuccessPolicyRule) validate(f *check.Violations, at *check.Path, completions int32) {
	if r.SucceededCount == nil && r.SucceededIndexes == nil {
		f.Required(at, "at least one of succeededCount or succeededIndexes must be specified")
		return
	}
	limit, meaning := completions, "the number of specified completions"
	if text := r.SucceededIndexes; text != nil {
		at := at.Field("succeededIndexes")
		if len(*text) > maxIndexesBytes {
			f.TooLong(at, maxIndexesBytes)
		}
		list, err := parseIndexes(*text, completions)
		if err != nil {
			f.Invalid(at, *text, "error parsing succeededIndexes: "+err.Error())
		} else if r.SucceededCount != nil && *r.SucceededCount <= completions {
			limit, meaning = list.count(), "the number of indexes in the specified succeededIndexes field"
		}
	}
	if n := r.SucceededCount; n != nil && *n > limit {
		f.Invalid(at.Field("succeededCount"), *n, fmt.Sprintf("must be less than or equal to %d (%s)", limit, meaning))
	}
}

// addViolation reports a violation that concerns several fields, without a value.
func addViolation(f *check.Violations, at *check.Path, why string) {
	*f = append(*f, meta.StatusCause{Reason: meta.CauseInvalid, Field: at.String(), Message: "Invalid value: " + why})
}
