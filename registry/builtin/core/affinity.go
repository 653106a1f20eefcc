package core

import "orch.io/controlplane/api/meta"

// Affinity says where a pod shall be placed.
type Affinity struct {
	// NodeAffinity is about the node.
	NodeAffinity *NodeAffinity `json:"nodeAffinity,omitempty" protobuf:"1"`

	// PodAffinity is about pods to be near to.
	PodAffinity *PodAffinity `json:"podAffinity,omitempty" protobuf:"2"`

	// PodAntiAffinity is about pods to be far from.
	PodAntiAffinity *PodAntiAffinity `json:"podAntiAffinity,omitempty" protobuf:"3"`
}

// NodeAffinity says which nodes a pod shall be placed on.
type NodeAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution must hold when the pod is
	// placed.
	RequiredDuringSchedulingIgnoredDuringExecution *NodeSelector `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"1"`

	// PreferredDuringSchedulingIgnoredDuringExecution are wishes with weights;
	// the node with the highest sum wins.
	PreferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// PreferredSchedulingTerm is a wish about the node.
type PreferredSchedulingTerm struct {
	// Weight of the wish, 1 to 100.
	Weight int32 `json:"weight" protobuf:"1" schema:"range=1|100,reason.range=must be in the range 1-100"`

	// Preference is what is wished for.
	Preference NodeSelectorTerm `json:"preference" protobuf:"2"`
}

// NodeSelector chooses nodes: one of its terms must match.
type NodeSelector struct {
	_ struct{} `schema:"mapType=atomic"`

	// NodeSelectorTerms, of which one must match.
	NodeSelectorTerms []NodeSelectorTerm `json:"nodeSelectorTerms" protobuf:"1" schema:"required,reason.required=must have at least one node selector term,listType=atomic"`
}

// NodeSelectorTerm chooses nodes: all of it must match; an empty one matches
// none.
type NodeSelectorTerm struct {
	_ struct{} `schema:"mapType=atomic"`

	// MatchExpressions are about labels.
	MatchExpressions []NodeSelectorRequirement `json:"matchExpressions,omitempty" protobuf:"1" schema:"listType=atomic"`

	// MatchFields are about fields.
	MatchFields []NodeSelectorRequirement `json:"matchFields,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// NodeSelectorRequirement is a condition on a label or field.
type NodeSelectorRequirement struct {
	// Key is the label or field.
	Key string `json:"key" protobuf:"1"`

	// Operator is In, NotIn, Exists, DoesNotExist, Gt or Lt.
	Operator string `json:"operator" protobuf:"2"`

	// Values belong to In and NotIn; Gt and Lt have one, an integer.
	Values []string `json:"values,omitempty" protobuf:"3" schema:"listType=atomic"`
}

// PodAffinity says which pods a pod shall be near to.
type PodAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution must all hold when the pod
	// is placed.
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"1" schema:"listType=atomic"`

	// PreferredDuringSchedulingIgnoredDuringExecution are wishes with weights.
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// PodAntiAffinity says which pods a pod shall be far from.
type PodAntiAffinity struct {
	// RequiredDuringSchedulingIgnoredDuringExecution must all hold when the pod
	// is placed.
	RequiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm `json:"requiredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"1" schema:"listType=atomic"`

	// PreferredDuringSchedulingIgnoredDuringExecution are wishes with weights.
	PreferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm `json:"preferredDuringSchedulingIgnoredDuringExecution,omitempty" protobuf:"2" schema:"listType=atomic"`
}

// WeightedPodAffinityTerm is a wish about other pods.
type WeightedPodAffinityTerm struct {
	// Weight of the wish, 1 to 100.
	Weight int32 `json:"weight" protobuf:"1" schema:"range=1|100,reason.range=must be in the range 1-100"`

	// PodAffinityTerm is what is wished for.
	PodAffinityTerm PodAffinityTerm `json:"podAffinityTerm" protobuf:"2"`
}

// PodAffinityTerm chooses pods, and what near means.
type PodAffinityTerm struct {
	// LabelSelector chooses the pods.
	LabelSelector *meta.Selector `json:"labelSelector,omitempty" protobuf:"1" schema:"format=label-selector"`

	// Namespaces of the pods; none and no namespaceSelector: this pod's.
	Namespaces []string `json:"namespaces,omitempty" protobuf:"2" schema:"listType=atomic"`

	// TopologyKey is the node label whose equal values mean near.
	TopologyKey string `json:"topologyKey" protobuf:"3"`

	// NamespaceSelector chooses further namespaces by label; {} is all.
	NamespaceSelector *meta.Selector `json:"namespaceSelector,omitempty" protobuf:"4" schema:"format=label-selector"`

	// MatchLabelKeys are labels in which the pods must equal this one.
	MatchLabelKeys []string `json:"matchLabelKeys,omitempty" protobuf:"5" schema:"listType=atomic,items.format=qualified-name"`

	// MismatchLabelKeys are labels in which the pods must differ from this one.
	MismatchLabelKeys []string `json:"mismatchLabelKeys,omitempty" protobuf:"6" schema:"listType=atomic,items.format=qualified-name"`
}
